/**
 * Looks at a cluster at regular intervals, and keeps what pages show: the last picture, the last minutes, and the news.
 * It only reads memory; nothing in the cluster waits for it.
 */
import type { ClusterContext } from '../hosting/cluster-context.js';
import type { Histogram } from '../hosting/histogram.js';
import { type Reading, ratesBetween, read } from '../hosting/reading.js';
import { newsBetween } from './news.js';
import { type GroupRates, shownFrom } from './shown.js';
import type { Latency, News, Sample, Shown, Trouble } from './wire.js';

const HISTORY_MS = 300_000;
const NEWS_MAX = 200;
/** Latencies are those of so many milliseconds: in one interval there may be too few messages for a 99.9th percentile. */
const LATENCY_MS = 5000;

/** A cluster to be watched. */
export interface Source {
  readonly name: string;
  readonly context: ClusterContext;
  troublesOf(reading: Reading): readonly Trouble[];
}

export class Watcher {
  readonly history: Sample[] = [];
  readonly news: News[] = [];
  shown: Shown;
  /** Since the start. */
  newsCount = 0;
  /** Those of the last `LATENCY_MS`, and the one before. */
  private readonly readings: Reading[] = [];
  private readonly samplesMax: number;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly source: Source,
    intervalMs: number,
    private readonly onTick: (sample: Sample) => void,
  ) {
    const reading = read(source.context);
    this.readings.push(reading);
    const none = reading.status.groups.map(() => 0);
    this.shown = this.show(reading, { groups: none, relayed: none });
    this.samplesMax = Math.ceil(HISTORY_MS / intervalMs);
    this.timer = setInterval(() => this.look(), intervalMs);
  }

  /** The news after the first `count` that ever were. */
  newsSince(count: number): News[] {
    return this.news.filter(({ id }) => id >= count);
  }

  close(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    const { readings } = this;
    const before = readings[readings.length - 1];
    const reading = read(this.source.context);
    readings.push(reading);
    while (readings.length > 2 && readings[1].atMs <= reading.atMs - LATENCY_MS) readings.shift();
    const rates = ratesBetween(before, reading);
    const latency = latencyIn(reading.latency.since(readings[0].latency));
    const sample = { atMs: Date.now(), answeredPerSecond: rates.answered, latency };
    keep(this.history, sample, this.samplesMax);
    const shown = this.show(reading, rates);
    for (const item of newsBetween(this.shown, shown))
      keep(this.news, { id: this.newsCount++, atMs: Date.now(), ...item }, NEWS_MAX);
    this.shown = shown;
    this.onTick(sample);
  }

  private show(reading: Reading, rates: GroupRates): Shown {
    const { name, context } = this.source;
    const troubles = this.source.troublesOf(reading);
    return shownFrom({ name, config: context.config, reading, rates, troubles });
  }
}

function keep<Item>(items: Item[], item: Item, most: number): void {
  items.push(item);
  if (items.length > most) items.shift();
}

function latencyIn(histogram: Histogram): Latency | null {
  if (histogram.count === 0) return null;
  return {
    p50Ns: histogram.percentile(50),
    p99Ns: histogram.percentile(99),
    p999Ns: histogram.percentile(99.9),
  };
}
