/**
 * Draws commands and runs them at a real redis-server and at ours: the replies have to be the same.
 *
 * | variable | |
 * |---|---|
 * | `TRAM_DIFFERENTIAL_COMMANDS` | about how many commands each test runs |
 * | `TRAM_DIFFERENTIAL_ONLY` | names of the only commands to draw, with commas |
 * | `TRAM_DIFFERENTIAL_SEED` | draws the same again |
 */

import * as fc from 'fast-check';
import type { TestContext } from 'vitest';
import { runsOf, type StoreKind } from './families/all.js';
import { hasRedisServer, MISSING, startRedisServer } from './redis-server.js';
import { differenceOf, explain } from './run.js';
import type { Target } from './target.js';

const { env } = process;
const only = env['TRAM_DIFFERENTIAL_ONLY']?.split(',') ?? [];
const seed = env['TRAM_DIFFERENTIAL_SEED'];

const PER_RUN = 40;
export const DRAWING_MS_MAX = 3_600_000;

/** Skips the test where there is no redis-server. */
export function requireRedisServer(context: TestContext): void {
  if (hasRedisServer()) return;
  if (env['CI']) throw new Error(MISSING);
  console.warn(MISSING);
  context.skip(true, MISSING);
}

/** @param commands  about how many to run, unless the environment tells */
export async function expectNoDifference(
  ours: Target,
  protocol: 2 | 3,
  kind: StoreKind,
  commands: number,
): Promise<void> {
  const server = await startRedisServer();
  const wanted = Number(env['TRAM_DIFFERENTIAL_COMMANDS'] ?? commands);
  try {
    await fc.assert(
      fc.asyncProperty(runsOf(only, PER_RUN, kind), async (steps) => {
        const difference = await differenceOf(server.connection, ours, steps, protocol);
        if (difference) throw new Error(explain(steps, protocol, difference));
      }),
      {
        // Half of the commands for each protocol; a run has half of the longest length on average.
        numRuns: Math.ceil(wanted / PER_RUN),
        ...(seed === undefined ? {} : { seed: Number(seed) }),
      },
    );
  } finally {
    await server.stop();
  }
}
