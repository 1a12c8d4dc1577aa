import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ReplyWriter } from '../../src/resp/writer.js';
import { EngineTarget } from '../differential/engine-target.js';
import { runsOf } from '../differential/families/all.js';

/** The reply to a command, as bytes. */
function reply(engine: EngineTarget, command: readonly string[], seed: number): string {
  const writer = new ReplyWriter();
  writer.write(engine.reply(command, seed), 3);
  return writer.written().toString('latin1');
}

function snapshotOf({ keyspace }: EngineTarget): Buffer {
  return Buffer.concat([...keyspace.snapshot()].map((piece) => Buffer.from(piece)));
}

describe('a replica that was restored', () => {
  test('replies as one that has run all commands, and has the same state', () => {
    fc.assert(
      fc.property(runsOf([], 80, 'engine'), fc.nat(), (steps, at) => {
        const commands = steps.flat();
        const restoredAt = at % (commands.length + 1);
        const engine = new EngineTarget();
        let other: EngineTarget | undefined;
        for (const [i, command] of commands.entries()) {
          if (i === restoredAt) {
            other = new EngineTarget();
            other.keyspace.restore(snapshotOf(engine));
          }
          engine.keyspace.nowMs = 1_700_000_000_000 + 7 * i;
          const expected = reply(engine, command, i);
          if (other === undefined) continue;
          other.keyspace.nowMs = engine.keyspace.nowMs;
          expect(reply(other, command, i), command.join(' ')).toBe(expected);
          expect(other.keyspace.memory, command.join(' ')).toBe(engine.keyspace.memory);
        }
        if (other !== undefined) expect(snapshotOf(other).equals(snapshotOf(engine))).toBe(true);
      }),
      { numRuns: 600 },
    );
  });
});
