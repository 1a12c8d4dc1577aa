import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { claimOf } from '../../src/commands/claims.js';
import { ErrorReply } from '../../src/resp/reply.js';
import { EngineTarget, specOf } from '../differential/engine-target.js';
import { runsOf } from '../differential/families/all.js';

/** Records the keys that commands look at, however they do it. */
class Watchful extends EngineTarget {
  readonly touched = new Set<string>();

  constructor() {
    super();
    const { entries } = this.keyspace;
    for (const name of ['get', 'set', 'delete'] as const) {
      const original = entries[name].bind(entries) as (key: string, ...rest: unknown[]) => unknown;
      Object.assign(entries, {
        [name]: (key: string, ...rest: unknown[]) => {
          this.touched.add(key);
          return original(key, ...rest);
        },
      });
    }
  }
}

describe('the claim of a command', () => {
  test('has all keys that the command looks at', () => {
    fc.assert(
      fc.property(runsOf([], 60, 'engine'), (steps) => {
        const engine = new Watchful();
        engine.keyspace.nowMs = 1_700_000_000_000;
        for (const command of steps.flat()) {
          const found = specOf(command);
          if (found instanceof ErrorReply) continue;
          const claim = claimOf(found.spec.name, found.args);
          engine.touched.clear();
          engine.reply(command);
          if (claim === undefined) continue;
          const others = [...engine.touched].filter((key) => !claim.includes(key));
          expect(others, command.join(' ')).toEqual([]);
        }
      }),
      { numRuns: 400 },
    );
  });

  test('is nothing for texts that help', () => {
    for (const name of ['xgroup|help', 'xinfo|help', 'object|help']) {
      expect(claimOf(name, [])).toEqual([]);
    }
    expect(claimOf('dbsize', [])).toBeUndefined();
  });

  test('is the whole shard if the command looks at keys that it does not name', () => {
    expect(claimOf('sort', ['l', 'BY', 'weight_*'])).toBeUndefined();
    expect(claimOf('sort', ['l', 'GET', '#', 'get', 'h_*->f', 'STORE', 'd'])).toBeUndefined();
    expect(claimOf('sort_ro', ['l', 'limit', '0', '1', 'by', 'w*'])).toBeUndefined();
    expect(claimOf('sort', ['l', 'BY', 'nosort', 'GET', '#', 'STORE', 'd'])).toEqual(['l', 'd']);
  });
});
