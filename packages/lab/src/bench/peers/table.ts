/** The output of `tram-lab bench peers` for people. */

import type { Spread } from '../load/spread.js';
import { align, GAP, WIDTH, wrap } from '../text/columns.js';
import type { Disk, PeersResult, SystemResult } from './peers.js';

type Measured = Extract<SystemResult, { status: 'measured' }>;

export function formatPeers(result: PeersResult): string {
  const measured = result.systems.filter(
    (system): system is Measured => system.status === 'measured',
  );
  const blocks = [
    `${result.options.payloadBytes} B messages, three copies of everything, acknowledged after ` +
      (result.options.isSynced ? 'two of three have synced them to disk' : 'replication'),
    ...(measured.length > 0
      ? [
          figures('to one of eight shards', 'one', measured, result),
          figures('to all eight shards', 'eight', measured, result),
        ]
      : []),
    ...result.systems.flatMap(noteOn),
    definitions(
      'Across shards:',
      measured.map(({ name, guarantee }) => [name, guarantee.full]),
    ),
    conditions(result, measured),
  ];
  return `${blocks.filter(Boolean).join('\n\n')}\n`;
}

function figures(
  title: string,
  kind: 'one' | 'eight',
  systems: readonly Measured[],
  { advantages }: PeersResult,
): string {
  const head = [
    ...[title, 'throughput', 'in flight', 'TRAM/it'],
    ...['p50 alone', 'p99 alone', 'it/TRAM', 'across shards'],
  ];
  const rows = systems.map((system) => {
    const { spread, outstanding, alone } = system[kind];
    const advantage = advantages[system.id]?.[kind];
    return [
      nameOf(system),
      ...[withSpread(spread.messagesPerSecond, rate), String(outstanding)],
      times(advantage?.throughput),
      ...[withSpread(spread.latencyNsP50, micros), micros(alone.latencyNsP99)],
      times(advantage?.latencyP50),
      system.guarantee.brief,
    ];
  });
  return align(
    [head, ...rows],
    ['left', 'right', 'right', 'right', 'right', 'right', 'right', 'left'],
  );
}

/** The note on a system that was not measured. */
function noteOn(system: SystemResult): string[] {
  switch (system.status) {
    case 'measured':
      return [];
    case 'missing':
      return [`${system.name} is not installed: ${system.install}`];
    case 'failed':
      return [
        [
          `${nameOf(system)} failed: ${system.reason}`,
          ...system.log.map((line) => `  ${line}`),
        ].join('\n'),
      ];
  }
}

function conditions({ machine, options }: PeersResult, measured: readonly Measured[]): string {
  const { cores, model, node, loadAverage, serversFolder, disk } = machine;
  const { seconds, rounds } = options;
  return definitions('Conditions:', [
    [
      'machine',
      `${cores} cores of ${model}, Node ${node}, load average before ${loadAverage.toFixed(1)}; all on loopback, the ` +
        `client in a process of its own, files of servers in ${serversFolder}`,
    ],
    ...(disk === undefined ? [] : [['disk', describeDisk(disk)] as const]),
    [
      'measured',
      `${seconds} s each${rounds > 1 ? `, in turn; medians of ${rounds} rounds (least to greatest)` : ''}; throughput: the best of 1, 8, 64, 512 … messages in flight, until two steps in a row ` +
        'bring less than 5 %; latency: one message at a time',
    ],
    ...measured.map(({ name, conditions }): [string, string] => [name, conditions]),
  ]);
}

function describeDisk({ fileSystem, bare }: Disk): string {
  const { bytesPerSync, latencyNsP50, latencyNsP99 } = bare;
  return (
    `${fileSystem.kind} on ${fileSystem.device}; a bare write of ${bytesPerSync} B with its fdatasync takes ` +
    `${micros(latencyNsP50)} (p50), ${micros(latencyNsP99)} (p99)`
  );
}

function nameOf({ name, version }: SystemResult): string {
  return version === '' ? name : `${name} ${version}`;
}

/** Terms and their definitions, which are wrapped beside them. */
function definitions(title: string, entries: readonly (readonly [string, string])[]): string {
  if (entries.length === 0) return '';
  const width = Math.max(...entries.map(([term]) => term.length));
  const lines = entries.flatMap(([term, text]) =>
    wrap(text, WIDTH - width - 2 * GAP.length).map(
      (line, i) => GAP + (i === 0 ? term : '').padEnd(width) + GAP + line,
    ),
  );
  return [title, ...lines].join('\n');
}

function rate(perSecond: number): string {
  if (perSecond >= 1e6) return `${(perSecond / 1e6).toFixed(2)} M/s`;
  return perSecond >= 1e4
    ? `${(perSecond / 1e3).toFixed(0)} k/s`
    : `${(perSecond / 1e3).toFixed(1)} k/s`;
}

function micros(ns: number): string {
  if (ns >= 1e6) return `${(ns / 1e6).toFixed(2)} ms`;
  return ns >= 1e5 ? `${(ns / 1e3).toFixed(0)} µs` : `${(ns / 1e3).toFixed(1)} µs`;
}

/** `438 k/s`, of several rounds `438 k/s (420 k/s to 450 k/s)` */
function withSpread(spread: Spread, format: (value: number) => string): string {
  const { median, least, greatest, rounds } = spread;
  if (rounds === 1) return format(median);
  return `${format(median)} (${format(least)} to ${format(greatest)})`;
}

function times(ratio: Spread | undefined): string {
  if (ratio === undefined) return '';
  const text = (value: number): string => (value >= 10 ? value.toFixed(0) : value.toFixed(1));
  if (ratio.rounds === 1) return `${text(ratio.median)} ×`;
  return `${text(ratio.median)} × (${text(ratio.least)} to ${text(ratio.greatest)})`;
}
