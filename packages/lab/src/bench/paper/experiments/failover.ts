/** Paper §8.7: the delay of messages by a leader change in all groups at once. */
import { benchFailover, type FailoverOptions, type FailoverResult } from '../../failover.js';
import type { SpanReport } from '../../load/span-delays.js';
import { capital, significant, times } from '../../text/words.js';
import type { Experiment, Finding, Table } from '../experiment.js';
import type { Summary } from '../summary.js';

const NAME = 'failover';
const SHAPE = { groups: 8, replicas: 3, tree: 'breadth', clients: 100, payloadBytes: 64 } as const;
const PAPER_MEAN_MS = 28.251;
const PAPER_MAX_MS = 50.73;
const CAUSES = { request: 'requested', kill: 'by SIGKILL' } as const;

/** Two clusters, each with a start, a second of load, and one and a half seconds for each change. */
function secondsOf({ changes }: FailoverOptions): number {
  return 2 * (3 + 1.5 * changes);
}

function outcome(summary: Summary): FailoverResult | undefined {
  return summary.results.at(-1)?.details.failover;
}

function row(name: string, report: SpanReport): string[] {
  const { messages, meanMs, deviationMs, minMs, maxMs } = report;
  return [name, String(messages), ...[meanMs, deviationMs, minMs, maxMs].map(significant)];
}

function tables(summary: Summary): Table[] {
  const head = ['leader change', 'messages', 'average', 'st. dev.', 'min', 'max'];
  const ours = outcome(summary)?.causes.map(
    ({ cause, changes, total, usualMsP50 }): Table => ({
      title: `Delay of messages in flight, changes ${CAUSES[cause]} (ms; usual median ${significant(usualMsP50)})`,
      head,
      rows: [...changes.map((change, i) => row(`#${i + 1}`, change)), row('total', total)],
    }),
  );
  const paper: Table = {
    title: 'The paper’s table (ms)',
    head,
    rows: [
      ['#1', '', '22.5', '17.4', '4.42', '50.7'],
      ['#2', '', '39.3', '9.4', '29.9', '48.8'],
      ['#3', '', '28.2', '7.04', '21.9', '41.8'],
      ['total', '', '28.3', '13.4', '4.42', '50.7'],
    ],
  };
  return [...(ours ?? []), paper];
}

function findings(summary: Summary): Finding[] {
  const mean = `Messages that a leader change delays take ${significant(PAPER_MEAN_MS)} ms on average and ${significant(PAPER_MAX_MS)} ms at most.`;
  const orders = 'That is about three orders of magnitude above the usual latency.';
  const causes = outcome(summary)?.causes;
  if (causes === undefined) return [{ paper: mean }, { paper: orders }];
  const say = (words: (cause: FailoverResult['causes'][number]) => string): string =>
    causes.map((each) => `${CAUSES[each.cause]}: ${words(each)}`).join('; ');
  return [
    {
      paper: mean,
      here: `${capital(say(({ total: { meanMs, maxMs } }) => `${significant(meanMs)} ms on average, ${times(meanMs / PAPER_MEAN_MS)} of the paper’s, and ${significant(maxMs)} ms at most`))}.`,
      agrees: causes.every(({ total }) => total.meanMs < 2 * PAPER_MEAN_MS),
      why: 'The delay here includes the time until a crash is suspected, which the paper’s table leaves out (its changes are triggered), and on few cores the time to be scheduled.',
    },
    {
      paper: orders,
      here: `${capital(say(({ total, usualMsP50 }) => `${times(total.meanMs / usualMsP50)} the usual median under the same load`))}.`,
      agrees: causes.every(({ total, usualMsP50 }) => total.meanMs / usualMsP50 > 100),
      why: 'Here a permission is a word in shared memory: to revoke it costs a store, not a reconnection. And the usual latency is that of 100 clients on few cores; the paper compares with that of one client.',
    },
  ];
}

export const failover: Experiment = {
  name: NAME,
  title: 'Leader changes',
  section: '§8.7',
  about: `${SHAPE.groups} groups of ${SHAPE.replicas} on the breadth tree, as processes; ${SHAPE.clients} clients send to all groups, one message at a time each. The leader changes in every group at once: on request, and because the process of all leaders is killed. The table counts the messages that were in flight during a change.`,
  systems: ['TRAM breadth'],
  rounds: () => 1,
  sessions: ({ profile, systems }) => {
    if (systems['TRAM breadth'] === undefined) return [];
    const options = { ...SHAPE, changes: profile.changes };
    const point = {
      ...{ experiment: NAME, measure: 'delay', system: 'TRAM breadth', series: 'TRAM breadth' },
      x: options.changes,
      conditions: { memory: 'processes', ...options },
    };
    return [
      {
        system: 'TRAM breadth',
        startSeconds: 0,
        tasks: [{ point, seconds: secondsOf(options) }],
        start: async () => ({
          take: async () => {
            const result = await benchFailover(options, () => undefined);
            const requested = result.causes.find(({ cause }) => cause === 'request')!;
            return { value: requested.total.meanMs * 1e6, details: { failover: result } };
          },
          close: async () => undefined,
        }),
      },
    ];
  },
  figures: (summary) => {
    const causes = outcome(summary)?.causes ?? [];
    const series = causes.map(({ cause, changes }) => ({
      name: CAUSES[cause],
      points: changes.map(({ meanMs, minMs, maxMs }, i) => ({
        ...{ x: i + 1, y: meanMs, low: minMs, high: maxMs },
      })),
    }));
    return [
      {
        name: NAME,
        title: 'Delay of messages during leader changes',
        panels: [
          {
            title: 'Average, least and greatest delay',
            x: {
              label: 'leader change',
              kind: 'linear',
              ticks: (causes[0]?.changes ?? []).map((_, i) => i + 1),
            },
            y: { label: 'delay (ms)', kind: 'linear' },
            series,
            isUnconnected: true,
            reference: { y: PAPER_MEAN_MS, label: 'average in the paper' },
          },
        ],
      },
    ];
  },
  findings,
  tables,
};
