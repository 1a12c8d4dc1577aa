/** The output of `tram-lab bench machines --threads` for people. */
import { align, WIDTH, wrap } from '../text/columns.js';
import { plural, rate, significant, times } from '../text/words.js';
import { BUSY_US } from './busy-service.js';
import {
  GROUPS,
  IN_FLIGHT,
  PAYLOAD_BYTES,
  type ThreadsFigures,
  type ThreadsResult,
} from './threads.js';

type Row = readonly [label: string, single: string, several: string, ratio: string, cores: string];

export function formatThreads({ options, machine, figures }: ThreadsResult): string {
  const { threads, seconds, rounds } = options;
  const { cores, model, node, libfabric, loadAverage } = machine;
  const head: Row = ['at saturation', '1 thread', `${threads} threads`, 'ratio', 'busy cores'];
  const notes = [
    `${plural(GROUPS, 'group')}, one client with ${IN_FLIGHT} messages of ${PAYLOAD_BYTES} B in flight, each to one group. Medians of ` +
      `${plural(rounds, 'round')}, ${seconds} s for each measurement; the ratio with its least and greatest value.`,
    `${plural(cores, 'core')} of ${model}, Node ${node}, libfabric ${libfabric}, load average before ` +
      `${loadAverage.toFixed(1)}; all machines and the client are on this machine, over its loopback.`,
  ];
  const table = align([head, ...figures.map(rowOf)], ['left', 'right', 'right', 'right', 'right']);
  return `${table}\n\n${notes.flatMap((text) => wrap(text, WIDTH)).join('\n')}\n`;
}

function rowOf(figures: ThreadsFigures): Row {
  const { machines, isBusy, single, several, ratio, coresUsed } = figures;
  const work = isBusy ? `, ${BUSY_US} µs of work each` : '';
  const cores = [coresUsed.single, coresUsed.several].map(significant).join(', ');
  return [
    `${plural(machines, 'machine')}${work}`,
    rate(single.median),
    rate(several.median),
    `${times(ratio.median)} (${times(ratio.least)} to ${times(ratio.greatest)})`,
    cores,
  ];
}
