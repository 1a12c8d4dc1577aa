/** Reads the text format of Prometheus, version 0.0.4, and refuses what Prometheus or promtool would refuse. */

export interface Metric {
  readonly kind: string;
  readonly help: string;
  /** By labels, as `{a="b",c="d"}`; those of a histogram begin with their suffix. */
  readonly samples: ReadonlyMap<string, number>;
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"';
const SAMPLE = new RegExp(`^(${NAME})(\\{${LABEL}(?:,${LABEL})*\\})? (\\S+)$`);
const KINDS = ['counter', 'gauge', 'histogram'];

/** @throws Error that has the line that is wrong */
export function parseMetrics(text: string): Map<string, Metric> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const metrics = new Map<string, Metric>();
  let name = '';
  let help: string | undefined;
  let samples = new Map<string, number>();
  for (const line of text.slice(0, -1).split('\n')) {
    const fail = (why: string): Error => new Error(`${why}: ${line}`);
    const [, word, about, rest] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (word === 'HELP') {
      if (metrics.has(about)) throw fail('a second time');
      [name, help] = [about, rest];
    } else if (word === 'TYPE') {
      if (about !== name || help === undefined) throw fail('no help before');
      if (!KINDS.includes(rest)) throw fail('unknown type');
      if ((rest === 'counter') !== name.endsWith('_total')) throw fail('counters end with _total');
      if (!new RegExp(`^${NAME}$`).test(name)) throw fail('not a name');
      samples = new Map();
      metrics.set(name, { kind: rest, help, samples });
      help = undefined;
    } else {
      const [, sample, labels = '', value] = SAMPLE.exec(line) ?? [];
      if (sample === undefined) throw fail('not a sample');
      const { kind } = metrics.get(name) ?? {};
      const suffix = sample.slice(name.length);
      const suffixes = kind === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
      if (!sample.startsWith(name) || !suffixes.includes(suffix)) throw fail('of another metric');
      const number = Number(value);
      if (!Number.isFinite(number)) throw fail('not a number');
      if (kind !== 'gauge' && number < 0) throw fail('less than nothing');
      if (samples.has(suffix + labels)) throw fail('a second time');
      const names = [...labels.matchAll(/(?:^\{|",)(\w+)=/g)].map(([, label]) => label);
      if (new Set(names).size < names.length) throw fail('a label twice');
      samples.set(suffix + labels, number);
    }
  }
  for (const [name, metric] of metrics) {
    if (metric.kind === 'histogram') checkHistogram(name, metric);
  }
  return metrics;
}

/** Buckets grow up to the count, and their bounds too. */
function checkHistogram(name: string, { samples }: Metric): void {
  const series = new Map<string, [bound: number, count: number][]>();
  for (const [key, value] of samples) {
    if (!key.startsWith('_bucket')) continue;
    const [, others, bound] = /^_bucket\{(.*?),?le="([^"]+)"\}$/.exec(key) ?? [];
    if (bound === undefined) throw new Error(`${name}: a bucket without a bound: ${key}`);
    const labels = others === '' ? '' : `{${others}}`;
    const buckets = series.get(labels) ?? [];
    buckets.push([bound === '+Inf' ? Infinity : Number(bound), value]);
    series.set(labels, buckets);
  }
  for (const [labels, buckets] of series) {
    const isOrdered = buckets.every(
      ([bound, count], i) => i === 0 || (bound > buckets[i - 1][0] && count >= buckets[i - 1][1]),
    );
    const [last, total] = buckets.at(-1)!;
    const isWhole = last === Infinity && samples.get(`_count${labels}`) === total;
    if (!isOrdered || !isWhole || !samples.has(`_sum${labels}`)) {
      throw new Error(`${name}${labels}: not a histogram`);
    }
  }
}
