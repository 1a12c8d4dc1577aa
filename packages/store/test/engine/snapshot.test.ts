/** Snapshots show the keyspace at the time of the call, whatever commands do while they are written. */

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ByteWriter } from '../../src/engine/bytes.js';
import { encodeEntry } from '../../src/engine/codec.js';
import { Keyspace } from '../../src/engine/keyspace.js';
import { EngineTarget } from '../differential/engine-target.js';
import { stepsOf } from '../differential/families/all.js';

const NOW_MS = 1_700_000_000_000;

function keyspaceWithRunner() {
  const engine = new EngineTarget();
  const { keyspace } = engine;
  keyspace.nowMs = NOW_MS;
  const run = (command: readonly string[], seed: number) => engine.reply(command, seed);
  return { keyspace, run };
}

/** Everything that replicas must agree on. */
function stateOf(keyspace: Keyspace) {
  const entries = keyspace.entries.keys().map((key, position) => {
    const writer = new ByteWriter();
    encodeEntry(keyspace.entries.valueAt(position), writer);
    return [key, writer.copy().toString('hex')];
  });
  const { memory, expiring, nowMs } = keyspace;
  return { entries, memory, expiring, nowMs, absent: keyspace.versionOf('was never there') };
}

function whole(pieces: Iterable<Uint8Array>): Uint8Array {
  return Buffer.concat([...pieces]);
}

function restored(bytes: Uint8Array): Keyspace {
  const keyspace = new Keyspace({ changed: () => undefined });
  keyspace.restore(bytes);
  return keyspace;
}

const commands = fc.array(
  stepsOf().map((step) => step[step.length - 1]),
  { minLength: 10, maxLength: 60, size: 'max' },
);

/** What happens in between: a command, the next piece of the first or second snapshot, or a second snapshot begins. */
const events = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: stepsOf().map((step) => step[step.length - 1]) },
    { weight: 2, arbitrary: fc.constantFrom('first', 'second') },
  ),
  { minLength: 10, maxLength: 60, size: 'max' },
);

describe('a snapshot', () => {
  test('has the memory of a value that a command has opened to write, and has not changed', () => {
    const { keyspace, run } = keyspaceWithRunner();
    const elements = Array.from({ length: 5000 }, (_, i) => `element ${i}`);
    run(['PFADD', 'sketch', ...elements], 0);
    const bytes = keyspace.readString('sketch')!;
    run(['SET', 'copy', bytes], 0);
    expect(run(['PFADD', 'copy', 'element 1'], 0)).toBe(0);
    expect(restored(whole(keyspace.snapshot())).memory).toBe(keyspace.memory);
  });

  test('shows the keyspace at the time of the call while commands go on', () => {
    fc.assert(
      fc.property(commands, events, (before, during) => {
        const { keyspace, run } = keyspaceWithRunner();
        before.forEach((command, i) => {
          run(command, i);
        });
        const taken: {
          state: ReturnType<typeof stateOf>;
          pieces: Uint8Array[];
          rest: Iterator<Uint8Array>;
        }[] = [];
        const take = () =>
          taken.push({ state: stateOf(keyspace), pieces: [], rest: keyspace.snapshot(1) });
        const advance = (index: number) => {
          if (taken[index] === undefined) take();
          const { pieces, rest } = taken[index];
          const { done, value } = rest.next();
          if (!done) pieces.push(value);
          return !done;
        };
        take();
        during.forEach((event, i) => {
          if (event === 'first' || event === 'second') advance(event === 'first' ? 0 : 1);
          else run(event, 1_000 + i);
        });
        for (let index = 0; index < taken.length; index++) {
          while (advance(index));
          const copy = restored(whole(taken[index].pieces));
          expect(stateOf(copy)).toEqual(taken[index].state);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('leaves a replica that goes on like the others', () => {
    fc.assert(
      fc.property(commands, commands, fc.integer({ min: 0, max: 20 }), (before, after, max) => {
        const { keyspace, run } = keyspaceWithRunner();
        before.forEach((command, i) => {
          run(command, i);
        });
        const other = keyspaceWithRunner();
        other.keyspace.restore(whole(keyspace.snapshot()));
        const later = [keyspace, other.keyspace].map((one) => {
          one.nowMs = 4_500_000_000_000;
          return one.expireSome(max, (key) => key === 's1');
        });
        expect(later[0]).toBe(later[1]);
        after.forEach((command, i) => {
          expect(other.run(command, i)).toEqual(run(command, i));
        });
        expect(stateOf(other.keyspace)).toEqual(stateOf(keyspace));
      }),
      { numRuns: 200 },
    );
  });

  test('that is not needed any more keeps nothing', () => {
    const { keyspace, run } = keyspaceWithRunner();
    run(['HSET', 'h', 'a', '1'], 1);
    const unused = keyspace.snapshot();
    unused.return?.();
    expect(unused.next().done).toBe(true);
    const entry = keyspace.entries.get('h');
    run(['SET', 'h', '1'], 1);
    expect(keyspace.entries.get('h')).toBe(entry);
  });

  test('has the versions of keys that are absent', () => {
    const { keyspace, run } = keyspaceWithRunner();
    run(['SET', 'a', '1'], 1);
    run(['DEL', 'a'], 1);
    const copy = restored(whole(keyspace.snapshot()));
    expect(copy.versionOf('a')).toBe(keyspace.versionOf('a'));
    expect(copy.versionOf('a')).toBeGreaterThan(0);
  });
});
