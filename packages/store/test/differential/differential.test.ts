/**
 * Draws commands and runs them at a real redis-server and at the store: the replies have to be the same, in RESP 2 and 3.
 *
 * | variable | |
 * |---|---|
 * | `TRAM_DIFFERENTIAL_COMMANDS` | about how many commands to run |
 * | `TRAM_DIFFERENTIAL_ONLY` | names of the only commands to draw, with commas |
 * | `TRAM_DIFFERENTIAL_SEED` | draws the same again |
 * | `TRAM_DIFFERENTIAL_PORT` | the port of a running store to test, instead of the engine in this process |
 */

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/commands/table.js';
import { Connection } from './connection.js';
import { EngineTarget } from './engine-target.js';
import { DRAWN, runsOf } from './families/all.js';
import { hasRedisServer, MISSING, startRedisServer } from './redis-server.js';
import { differenceOf, explain } from './run.js';

const { env } = process;
const commands = Number(env['TRAM_DIFFERENTIAL_COMMANDS'] ?? 5_000);
const only = env['TRAM_DIFFERENTIAL_ONLY']?.split(',') ?? [];
const port = env['TRAM_DIFFERENTIAL_PORT'];

const PER_RUN = 40;

/** Categories whose families are still to be written, or that have a test of their own: `scripts.test.ts`. */
const TO_COME = ['pubsub', 'scripting'];

describe('the differential test', () => {
  test('draws every command that the engine runs', () => {
    const missing = COMMANDS.filter(
      ({ name, run, category }) => run && !DRAWN.has(name) && !TO_COME.includes(category),
    );
    expect(missing.map(({ name }) => name)).toEqual([]);
  });

  test.for([2, 3] as const)(
    'finds no difference in RESP %i',
    { timeout: 3_600_000 },
    async (protocol, context) => {
      if (!hasRedisServer()) {
        if (env['CI']) throw new Error(MISSING);
        console.warn(MISSING);
        context.skip(true, MISSING);
      }
      const server = await startRedisServer();
      const ours = port ? await Connection.open({ port: Number(port) }) : new EngineTarget();
      const seed = env['TRAM_DIFFERENTIAL_SEED'];
      try {
        await fc.assert(
          fc.asyncProperty(runsOf(only, PER_RUN), async (steps) => {
            const difference = await differenceOf(server.connection, ours, steps, protocol);
            if (difference) throw new Error(explain(steps, protocol, difference));
          }),
          {
            // Half of the commands for each protocol; a run has half of the longest length on average.
            numRuns: Math.ceil(commands / PER_RUN),
            ...(seed === undefined ? {} : { seed: Number(seed) }),
          },
        );
      } finally {
        ours.close();
        await server.stop();
      }
    },
  );
});
