/** The output of `tram-lab bench durable` for people. */
import type { Spread } from '../load/spread.js';
import { align, WIDTH, wrap } from '../text/columns.js';
import { duration, plural, rate, significant } from '../text/words.js';
import type { DurableResult } from './durable.js';
import type { Bare, Costs, LoadCost } from './loads.js';
import type { RecoveryCost } from './recovery.js';
import { IN_FLIGHT, SETUP, TREE } from './setting.js';

export function formatDurable(result: DurableResult): string {
  const { groups, replicas, payloadBytesMax } = SETUP;
  const { costs, recoveries, options } = result;
  const hosts = costs === undefined ? '' : ` on ${plural(costs.hosts, 'host')}`;
  const title =
    `${options.memory}: ${groups} groups of ${replicas}${hosts}, ${TREE} tree, ` +
    `${payloadBytesMax} B from one client`;
  const blocks = [
    title,
    ...(costs === undefined ? [] : [loadTable(costs.loads)]),
    ...(recoveries === undefined ? [] : [recoveryTable(recoveries)]),
    conditions(result)
      .flatMap((text) => wrap(text, WIDTH))
      .join('\n'),
  ];
  return `${blocks.join('\n\n')}\n`;
}

type Row = readonly string[];

function loadTable(loads: readonly LoadCost[]): string {
  const blank = ['', '', '', '', '', ''];
  const rows: Row[] = [
    ['', 'none', 'everySecond', 'ratio', 'always', 'ratio', 'bare loop', 'ratio'],
    ['One message at a time, p50', ...blank, ''],
    ...loads.map(({ load, latencyNsP50, bareAlone, barePerMessage }) => [
      ...costCells(load, latencyNsP50, duration),
      duration(bareAlone.latencyNsP50.median),
      ratioOf(barePerMessage),
    ]),
    [`${IN_FLIGHT} in flight`, ...blank, ''],
    ...loads.map(({ load, messagesPerSecond }) => [
      ...costCells(load, messagesPerSecond, rate),
      '',
      '',
    ]),
    [`${IN_FLIGHT} in flight, bytes synced`, ...blank, ''],
    ...loads.map(({ load, journalBytesPerSecond, bareLoaded, shareOfDisk }) => [
      ...[`  ${load}`, '', '', ''],
      ...[byteRate(journalBytesPerSecond.median), ''],
      ...[byteRate(bareLoaded.bytesPerSecond.median), ratioOf(shareOfDisk)],
    ]),
  ];
  return align(rows, ['left', 'right', 'right', 'right', 'right', 'right', 'right', 'right']);
}

function costCells(
  load: string,
  { figures, everySecond, always }: Costs,
  format: (value: number) => string,
): string[] {
  return [
    `  ${load}`,
    format(figures.none.median),
    format(figures.everySecond.median),
    ratioOf(everySecond),
    format(figures.always.median),
    ratioOf(always),
  ];
}

/** `0.95 (0.93 to 0.97)` */
function ratioOf({ median, least, greatest }: Spread): string {
  return `${significant(median)} (${significant(least)} to ${significant(greatest)})`;
}

function recoveryTable(recoveries: readonly RecoveryCost[]): string {
  const head = ['', ...recoveries.map(({ name }) => name)];
  const rows: [string, (cost: RecoveryCost) => string][] = [
    ['messages journaled', ({ messages }) => messages.toLocaleString('en')],
    ['files', ({ bytes }) => `${significant(bytes / 1e6)} MB`],
    ['recovery', ({ recoverSeconds }) => seconds(recoverSeconds)],
    ['  of the files', ({ bytes, recoverSeconds }) => byteRate(bytes / recoverSeconds)],
    ['  of the messages', ({ messages, recoverSeconds }) => rate(messages / recoverSeconds)],
    ['start with an empty journal', ({ emptySeconds }) => seconds(emptySeconds)],
    ['bare loop: read the files', ({ readSeconds }) => seconds(readSeconds)],
    ['bare loop: deliver to three replicas', ({ deliverSeconds }) => seconds(deliverSeconds)],
  ];
  const table = [head, ...rows.map(([label, cell]) => [label, ...recoveries.map(cell)])];
  return align(table, ['left', ...recoveries.map(() => 'right' as const)]);
}

function conditions({ options, machine, disk, costs }: DurableResult): string[] {
  const { cores, model, node, loadAverage } = machine;
  const where =
    `${plural(cores, 'core')} of ${model}, Node ${node}, load average before ${loadAverage.toFixed(1)}; journals and the ` +
    `bare loop on ${disk.kind} on ${disk.device}.`;
  if (costs === undefined) {
    return [
      where,
      'The journal was written with durability everySecond. It is in the page cache when it is read.',
    ];
  }
  const { rounds, seconds } = options;
  return [
    where,
    `Medians of ${plural(rounds, 'round')}, ${seconds} s for each measurement. Ratios: everySecond and always to none; the ` +
      'latency of always to that of the bare loop; the bytes that all journals sync to those of the bare loop; in ' +
      'brackets the least and the greatest of a round. mix: nine messages to one group, then one to two.',
    `The bare loop is write and fdatasync, ${costs.loads.map(bareText).join('; ')}.`,
  ];
}

function bareText({ load, bareAlone, bareLoaded }: LoadCost): string {
  const text = ({ bytesPerSync, writers }: Bare): string =>
    `${bytesPerSync.toLocaleString('en')} B by ${plural(writers, 'writer')}`;
  return `${load}: ${text(bareAlone)}, in flight ${text(bareLoaded)}`;
}

function byteRate(bytesPerSecond: number): string {
  return `${significant(bytesPerSecond / 1e6)}\u00a0MB/s`;
}

function seconds(value: number): string {
  return `${value.toFixed(2)}\u00a0s`;
}
