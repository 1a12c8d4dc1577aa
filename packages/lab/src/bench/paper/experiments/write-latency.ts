/** Paper §3: writes to several targets, one after the other or in parallel. */

import { FRAME_WORDS } from 'tram-multicast/internal/memory/record.js';
import { MESSAGE } from 'tram-multicast/internal/protocol/layout.js';
import { type Awaited, measureWriteLatency } from '../../raw/write-latency.js';
import { duration, times } from '../../text/words.js';
import type { Experiment, Finding, Task } from '../experiment.js';
import type { Profile } from '../profiles.js';
import type { Summary } from '../summary.js';

const NAME = 'write-latency';
const PAYLOAD_BYTES = 64;
const RECORD_BYTES = (FRAME_WORDS + MESSAGE.payload) * 4 + PAYLOAD_BYTES;
const MOST = 8;
const START_SECONDS = 0.1;

interface Way {
  readonly series: string;
  readonly awaits: Awaited;
  readonly isTogether: boolean;
}

const WAYS: readonly Way[] = [
  { series: 'acknowledged, one after the other', awaits: 'acknowledgement', isTogether: false },
  { series: 'acknowledged, together', awaits: 'acknowledgement', isTogether: true },
  { series: 'completed, one after the other', awaits: 'completion', isTogether: false },
  { series: 'completed, together', awaits: 'completion', isTogether: true },
];

interface WriteTask extends Task {
  readonly way: Way;
}

function tasksOf({ destinations, timing }: Profile): WriteTask[] {
  return destinations.flatMap((targets) =>
    WAYS.map((way) => ({
      way,
      seconds: START_SECONDS + timing.warmUpSeconds + timing.seconds,
      point: {
        experiment: NAME,
        measure: 'latency',
        system: 'memory',
        series: way.series,
        x: targets,
        conditions: { memory: 'threads', recordBytes: RECORD_BYTES, ...timing },
      },
    })),
  );
}

function findings(summary: Summary): Finding[] {
  const at = (way: number, targets: number) => summary.median('latency', WAYS[way].series, targets);
  const [oneEach, allEach, oneTogether, allTogether] = [
    at(0, 1),
    at(0, MOST),
    at(1, 1),
    at(1, MOST),
  ];
  const [each, together] = [at(2, MOST), at(3, MOST)];
  const serial: Finding = {
    paper: 'One after the other, latency grows linearly with the number of targets.',
    ...(oneEach !== undefined &&
      allEach !== undefined && {
        here: `Acknowledged one after the other, ${MOST} targets take ${duration(allEach)}: ${times(allEach / oneEach)} as long as one.`,
        agrees: allEach / oneEach > MOST / 2 && allEach / oneEach < MOST * 2,
        why: 'A reader that polls many places finds several records in one pass.',
      }),
  };
  const batched: Finding = {
    paper: 'Issued together and awaited collectively, writes take significantly less time.',
    ...(oneTogether !== undefined &&
      allTogether !== undefined &&
      allEach !== undefined && {
        here: `Acknowledged together, ${MOST} targets take ${duration(allTogether)}: ${times(allTogether / oneTogether)} as long as one. One after the other takes ${times(allEach / allTogether)} as long as together.`,
        agrees: allEach / allTogether > 1.5,
        why: 'The latency between two cores is little longer than the time that the writer needs for the next record.',
      }),
  };
  const completed: Finding[] =
    each === undefined || together === undefined
      ? []
      : [
          {
            here: `Until completion as our memory defines it, ${MOST} targets take ${duration(each)} one after the other and ${duration(together)} together. In shared memory a write has completed as soon as the writer has checked the permission: there is nothing to wait for, so waiting for all at once gains little. It pays off where targets must answer.`,
          },
        ];
  return [serial, batched, ...completed];
}

export const writeLatency: Experiment = {
  name: NAME,
  title: 'Latency of writes to several targets',
  section: '§3',
  about: `A record with ${PAYLOAD_BYTES} B of payload (${RECORD_BYTES} B in all) is written into the regions of 1 to ${MOST} targets: waiting for each before the next one, or writing to all and then waiting for all. “Completed” has the meaning of the memory contract: the record is in the target’s region, and after that the target still permitted the write. “Acknowledged” means that the thread of the targets has seen the record and written a word back. That is closer to a completion of RDMA: one round trip. One thread writes, another thread has all targets. The figure shows the median time until all targets have the record.`,
  systems: [],
  sessions: ({ profile }) => [
    {
      system: 'memory',
      startSeconds: 0,
      tasks: tasksOf(profile),
      start: async () => ({
        take: async ({ point, ...task }) => {
          const { awaits, isTogether } = (task as WriteTask).way;
          const { latencyNsP50 } = await measureWriteLatency({
            ...{ targets: point.x, recordBytes: RECORD_BYTES, awaits, isTogether },
            ...profile.timing,
          });
          return { value: latencyNsP50, details: {} };
        },
        close: async () => undefined,
      }),
    },
  ],
  figures: (summary) => {
    const lines = summary.lines('latency', 1);
    const x = { label: 'targets', kind: 'linear', ticks: summary.xsOf('latency') } as const;
    const y = { label: 'latency (ns)', kind: 'linear' } as const;
    const named = (word: string) => lines.filter(({ name }) => name.startsWith(word));
    return [
      {
        name: NAME,
        title: 'Writing a record to several targets',
        panels: [
          { title: 'Until every target has answered', x, y, series: named('acknowledged') },
          { title: 'Until completion in shared memory', x, y, series: named('completed') },
        ],
      },
    ];
  },
  findings,
};
