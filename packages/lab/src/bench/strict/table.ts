/** The output of `tram-lab bench strict` for people. */
import type { Spread } from '../load/spread.js';
import { align, WIDTH, wrap } from '../text/columns.js';
import { duration, plural, rate } from '../text/words.js';
import type { ChangesCost } from './changes.js';
import type { Comparison } from './pairs.js';
import { IN_FLIGHT, SETUP, TREE } from './setting.js';
import type { StrictResult } from './strict.js';

type Row = readonly [
  label: string,
  multicast: string,
  strict: string,
  ratio: string,
  spread: string,
];

const CAUSES = { request: 'on request', kill: 'by SIGKILL' } as const;

export function formatStrict(result: StrictResult): string {
  const { groups, replicas, payloadBytesMax } = SETUP;
  const title =
    `${result.options.memory}: ${groups} groups of ${replicas}, ${TREE} tree, ` +
    `${payloadBytesMax} B from one client`;
  const table = align(rowsOf(result), ['left', 'right', 'right', 'right', 'right']);
  const notes = conditions(result).flatMap((text) => wrap(text, WIDTH));
  return `${title}\n\n${table}\n\n${notes.join('\n')}\n`;
}

function rowsOf({ loads, changes }: StrictResult): Row[] {
  const latency = loads.map(({ load, latencyNsP50 }) => row(load, latencyNsP50, duration));
  const throughput = loads.map(({ load, messagesPerSecond }) => row(load, messagesPerSecond, rate));
  return [
    ['', 'multicast', 'strict', 'ratio', 'of the pairs'],
    ...section('One message at a time, p50', latency),
    ...section(`${IN_FLIGHT} in flight`, throughput),
    ...section('Leader changes, mix', changes.flatMap(changesRows)),
  ];
}

function section(title: string, rows: readonly Row[]): Row[] {
  return rows.length === 0 ? [] : [[title, '', '', '', ''], ...rows];
}

function changesRows({ cause, gapMs, delayMs }: ChangesCost): Row[] {
  const milliseconds = (ms: number): string => duration(ms * 1e6);
  return [
    row(`${CAUSES[cause]}, no answer for`, gapMs, milliseconds),
    row(`${CAUSES[cause]}, longest delay`, delayMs, milliseconds),
  ];
}

function row(
  label: string,
  { multicast, strict, ratio }: Comparison,
  format: (value: number) => string,
): Row {
  return [
    `  ${label}`,
    format(multicast.median),
    format(strict.median),
    ratio.median.toFixed(3),
    spreadIn(ratio),
  ];
}

function spreadIn({ least, greatest }: Spread): string {
  return `${least.toFixed(2)} to ${greatest.toFixed(2)}`;
}

function conditions({ options, machine, changes }: StrictResult): string[] {
  const { cores, model, node, loadAverage } = machine;
  const { memory, pairs, seconds } = options;
  const where =
    memory === 'machines'
      ? 'three hosts and the client on this machine, over its loopback'
      : 'the client has a thread of its own';
  const how =
    memory === 'machines'
      ? 'One group after the other changes its leader.'
      : 'Clusters of processes change the leaders of all groups at once.';
  return [
    `${plural(cores, 'core')} of ${model}, Node ${node}, load average before ${loadAverage.toFixed(1)}; ${where}.`,
    `Medians of ${plural(pairs, 'pair')}, ${seconds} s for each load. The ratio is strict divided by multicast. ` +
      `mix: nine messages to one group, then one to two.${changes.length > 0 ? ` ${how}` : ''}`,
  ];
}
