/** The output of `tram-lab bench order` for people. */
import type { Spread } from '../load/spread.js';
import { align, WIDTH, wrap } from '../text/columns.js';
import { duration, plural, rate, significant } from '../text/words.js';
import {
  type BareRing,
  type ConfigurationResult,
  describe,
  type Figures,
  type OrderResult,
  type OrderRun,
} from './order.js';

/** Two cores that share a cache pass a word back and forth in less than this. */
const NEAR_NS_MAX = 200;
/** More than this is no distance: something else keeps a core busy. */
const FAR_NS_MAX = 2000;

export function formatOrder(result: OrderResult): string {
  const blocks = [
    ...result.configurations.map(formatConfiguration),
    conditions(result)
      .flatMap((text) => wrap(text, WIDTH))
      .join('\n'),
  ];
  return `${blocks.join('\n\n')}\n`;
}

function formatConfiguration(result: ConfigurationResult): string {
  const { configuration, runs, copyOnly, perCopyOnly, against, perAgainst } = result;
  const { hosts, clients, outstanding } = configuration;
  const where = hosts === undefined ? '' : ` on ${plural(hosts, 'host')}`;
  const title = `${describe(configuration)}${where}, ${clients} × ${outstanding} in flight`;
  const row = (label: string, figure: keyof Figures, format: (value: number) => string) => [
    `  ${label}`,
    spread(result[figure], format),
    spread(copyOnly[figure], format),
    spread(perCopyOnly[figure], significant),
    ...(against === undefined || perAgainst === undefined
      ? []
      : [spread(against[figure], format), spread(perAgainst[figure], significant)]),
  ];
  const head = ['', 'TRAM', 'copy-only', 'ratio', ...(against ? ['other build', 'ratio'] : [])];
  const table = align(
    [
      head,
      row('throughput', 'messagesPerSecond', rate),
      row('one at a time, p50', 'latencyNsP50', duration),
    ],
    ['left', ...head.slice(1).map(() => 'right' as const)],
  );
  const coreTime = `  core time under load: ${spread(result.coreNsPerCopy, duration)} for each copy of a message`;
  return [title, `  cores: ${describeCores(runs)}`, table, ...details(runs), coreTime].join('\n');
}

/** `near (ping-pong 110 ns before, 112 ns after)`; for several runs, one after the other. */
export function describeCores(runs: readonly OrderRun[]): string {
  const all = runs.flatMap(({ pingPongNs }) => pingPongNs.map(distanceOf));
  const verdict = new Set(all).size === 1 ? all[0] : `it changed: ${all.join(', ')}`;
  const each = runs.map(({ pingPongNs }) => pingPongNs.map(duration).join(' → '));
  return `${verdict} (ping-pong before → after: ${each.join('; ')})`;
}

export function distanceOf(pingPongNs: number): 'near' | 'far' | 'busy' {
  if (pingPongNs > FAR_NS_MAX) return 'busy';
  return pingPongNs < NEAR_NS_MAX ? 'near' : 'far';
}

/** The other percentiles, of the run with the median latency. */
function details(runs: readonly OrderRun[]): string[] {
  const byLatency = runs.toSorted((a, b) => a.tram.alone.latencyNsP50 - b.tram.alone.latencyNsP50);
  const { alone, loaded } = byLatency[runs.length >> 1].tram;
  return [
    `  p90 / p99 / p99.9 of TRAM: ${[alone.latencyNsP90, alone.latencyNsP99, alone.latencyNsP999].map(duration).join(' / ')}`,
    `  under load: p50 / p99 ${[loaded.latencyNsP50, loaded.latencyNsP99].map(duration).join(' / ')}, ${loaded.coresUsed.toFixed(2)} cores used`,
  ];
}

/** `2.9 M/s`, of several runs `2.9 M/s (2.8 to 3)` */
function spread({ median, least, greatest, rounds }: Spread, format: (value: number) => string) {
  if (rounds === 1) return format(median);
  return `${format(median)} (${format(least)} to ${format(greatest)})`;
}

function conditions({ options, machine, rings }: OrderResult): string[] {
  const { cores, model, node, loadAverage } = machine;
  const { runs, seconds, against } = options;
  return [
    `${plural(cores, 'core')} of ${model}, Node ${node}, load average before ${loadAverage.toFixed(1)}; ` +
      `${plural(runs, 'run')}${runs > 1 ? ' in turn (median, least to greatest)' : ''}, ${seconds} s for each measurement.`,
    'Copy-only: the same bytes into the same rings, by one side for the clients and one for all leaders, with no protocol. ' +
      'Ratios are those of each run: throughput above 1 and latency below 1 mean that TRAM is ahead.',
    ...(against === undefined
      ? []
      : [`The other build: ${against}; ratios are this one / that one.`]),
    ...rings.map(describeRing),
  ];
}

function describeRing({ memory, recordBytes, ...ring }: BareRing): string {
  const { messagesPerSecond, batchedMessagesPerSecond } = ring;
  return `Bare ring, ${memory}, ${recordBytes} B records: ${rate(messagesPerSecond)}, in batches of 32 ${rate(batchedMessagesPerSecond)}.`;
}
