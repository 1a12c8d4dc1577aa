/** Paper §8.6: shared memory against message passing. */

import { times } from '../../text/words.js';
import {
  GROUPS,
  latencyPanel,
  PAYLOAD_BYTES,
  sessionsByDestinations,
  throughputPanel,
} from '../by-destinations.js';
import type { Context, Experiment, Finding } from '../experiment.js';
import type { Summary } from '../summary.js';

const NAME = 'passing';
const PAPER_RATE = 5.9;
/** Each shared-memory system with its message-passing counterpart. */
const PAIRS = [
  ['TRAM base', 'ByzCast'],
  ['RamCast', 'Skeen'],
] as const;

function ratios(summary: Summary, measure: string, above: string, below: string) {
  return summary.xsOf(measure).flatMap((x) => {
    const [a, b] = [above, below].map((name) => summary.median(measure, name, x));
    return a === undefined || b === undefined ? [] : [a / b];
  });
}

function between(values: readonly number[]): string {
  return `${times(Math.min(...values))} to ${times(Math.max(...values))}`;
}

function advantage(summary: Summary): Finding[] {
  const paper =
    'Shared memory outperforms message passing by orders of magnitude: up to 106× in latency.';
  const paperRate = `Up to ${PAPER_RATE}× in throughput.`;
  const pairs = PAIRS.flatMap(([shared, passing]) => {
    const latency = ratios(summary, 'latency', passing, shared);
    const rate = ratios(summary, 'throughput', shared, passing);
    return latency.length === 0 || rate.length === 0 ? [] : [{ shared, passing, latency, rate }];
  });
  if (pairs.length === 0) return [{ paper }, { paper: paperRate }];
  const say = (read: (pair: (typeof pairs)[number]) => readonly number[]): string =>
    pairs
      .map((pair) => `${pair.shared} against ${pair.passing}: ${between(read(pair))}`)
      .join('; ');
  const most = Math.max(...pairs.flatMap((pair) => pair.rate));
  return [
    {
      paper,
      here: `${say(({ latency }) => latency)}.`,
      agrees: pairs.some(({ latency }) => Math.max(...latency) > 10),
      why: 'A message within one machine takes some ten microseconds, less than through a network; and here all systems are written in the same language.',
    },
    {
      paper: paperRate,
      here: `${say(({ rate }) => rate)}.`,
      agrees: most > PAPER_RATE / 2 && most < PAPER_RATE * 2,
      why:
        most < PAPER_RATE
          ? 'With thousands of messages in flight many share a system call, so message passing loses little throughput; the table of all points has the latency at that load. And the shared-memory systems have three replicas of every group, the others one.'
          : 'Sending a message costs time of the same few cores that do all other work; in the paper network cards and the cores of other machines do part of it.',
    },
  ];
}

function trend(summary: Summary, { setting }: Context): Finding[] {
  return PAIRS.map(([shared, passing]) => {
    const paper =
      shared === 'RamCast'
        ? 'Skeen parallels RamCast.'
        : 'ByzCast exhibits a trend similar to TRAM.';
    const growth = [shared, passing].map((name) => {
      const [first, last] = [1, GROUPS].map((x) => summary.median('latency', name, x));
      return first === undefined || last === undefined ? undefined : last / first;
    });
    const [ours, theirs] = growth;
    if (ours === undefined || theirs === undefined) return { paper };
    return {
      paper,
      here: `From one destination to ${GROUPS} latency grows ${times(ours)} with ${shared} and ${times(theirs)} with ${passing}.`,
      agrees: Math.max(ours / theirs, theirs / ours) < 2,
      why: `Over connections the fixed cost of a hop hides the work for each group; in shared memory that work is nearly all of the latency, and ${setting.cores} cores do it for all groups.`,
    };
  });
}

export const passing: Experiment = {
  name: NAME,
  title: 'Shared memory against message passing',
  section: '§8.6',
  about: `TRAM on the base tree and RamCast, with 3 replicas a group, against their message-passing counterparts ByzCast (base tree) and Skeen, which are not replicated, as in the paper. ${GROUPS} groups, ${PAYLOAD_BYTES} B, destinations drawn uniformly. All run as processes: those of TRAM and RamCast share memory, the others are connected by TCP.`,
  systems: ['TRAM base', 'RamCast', 'ByzCast', 'Skeen'],
  sessions: (plan) =>
    sessionsByDestinations(NAME, plan, 'processes', 'random', [
      { name: 'TRAM base', replicas: 3 },
      { name: 'RamCast', replicas: 3 },
      { name: 'ByzCast', replicas: 1 },
      { name: 'Skeen', replicas: 1 },
    ]),
  figures: (summary) => [
    {
      name: NAME,
      title: 'Shared memory against message passing',
      panels: [latencyPanel(summary, 'log'), throughputPanel(summary)],
    },
  ],
  findings: (summary, context) => [...advantage(summary), ...trend(summary, context)],
};
