/** RamCast on real threads and processes under the load of the benchmarks: the judge checks its deliveries. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type History, judge, parseTrace } from 'tram-multicast/check';
import { expect, test } from 'vitest';
import { setOf } from '../../../../src/bench/load/destinations.js';
import type { ramcast as Ramcast } from '../../../../src/bench/systems/ramcast/system.js';

const module = new URL('../../../../dist/bench/systems/ramcast/system.js', import.meta.url);
if (!existsSync(module)) throw new Error('run `npm run build` first');
const { ramcast } = (await import(module.href)) as { ramcast: typeof Ramcast };

const GROUPS = 3;
const SETS = [[0], [1, 2], [0, 1, 2], [2], [0, 2], [1]].map(setOf);

test.each([
  { memory: 'threads', hosts: 1, replicas: 3, acknowledges: false },
  { memory: 'threads', hosts: 3, replicas: 3, acknowledges: true },
  { memory: 'processes', hosts: 3, replicas: 3, acknowledges: false },
  { memory: 'processes', hosts: 2, replicas: 1, acknowledges: true },
] as const)('$memory, $hosts hosts, groups of $replicas, $acknowledges', async (run) => {
  const { replicas, ...options } = run;
  const directory = mkdtempSync(join(tmpdir(), 'ramcast-'));
  try {
    const setup = {
      groups: GROUPS,
      replicas,
      clientsMax: 3,
      outstandingMax: 16,
      payloadBytesMax: 64,
    };
    const system = await ramcast({ ...options, trace: directory }).start(setup);
    let messages = 0;
    try {
      // The second load reuses slots of the first.
      for (const clients of [3, 2]) {
        const report = await system.measure({
          ...{ clients, outstanding: 16, sets: SETS, payloadBytes: 40 },
          ...{ warmUpSeconds: 0.1, seconds: 0.2 },
        });
        expect(report.unanswered).toBe(0);
        messages += report.messages;
      }
    } finally {
      await system.close();
    }
    const history = historyIn(directory);
    const verdict = judge(history);
    // RamCast promises neither FIFO nor real-time order, and a history without entry groups cannot decide the first.
    const failed = verdict.properties.filter(
      ({ property, outcome }) =>
        property !== 'fifo-order' && outcome !== 'holds' && outcome !== 'not-promised',
    );
    expect(failed).toEqual([]);
    expect(verdict.counts.messages).toBeGreaterThanOrEqual(messages);
    expect(messages).toBeGreaterThan(0);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

/** The files of a trace, in an order in which multicasts precede deliveries. */
function historyIn(directory: string): History {
  const rank = (name: string): number =>
    ['groups', 'client', 'replica', 'end'].findIndex((kind) => name.startsWith(kind));
  const names = readdirSync(directory).sort((one, other) => rank(one) - rank(other));
  return parseTrace(names.map((name) => readFileSync(join(directory, name), 'utf8')).join(''));
}
