/**
 * The results, one line each in `results.jsonl`. A point that has a result is not measured again, so runs can be interrupted
 * and resumed, and experiments can run one by one.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import type { FailoverResult } from '../failover.js';
import type { Rung } from '../load/saturation.js';
import type { Setting } from './setting.js';

/** What is measured, and under which conditions. */
export interface Point {
  readonly experiment: string;
  /** `latency`, `throughput`, … */
  readonly measure: string;
  readonly system: string;
  /** The name of the line in the figure: the system, or a variant of it. */
  readonly series: string;
  readonly x: number;
  readonly conditions: Readonly<Record<string, string | number>>;
}

export interface Details {
  readonly latencyNs?: {
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
    readonly p999: number;
    readonly max: number;
  };
  readonly coresUsed?: number;
  /** At saturation. */
  readonly load?: Rung;
  readonly isSaturated?: boolean;
  readonly tried?: readonly { readonly rung: Rung; readonly rate: number }[];
  /** The least number of record copies for a message. */
  readonly copies?: number;
  readonly failover?: FailoverResult;
}

export interface Outcome {
  /** Nanoseconds, or messages a second. */
  readonly value: number;
  readonly details: Details;
}

export interface Result extends Point, Outcome {
  readonly round: number;
  readonly setting: Setting;
  /** Cores that other programs kept busy just before the session. */
  readonly othersCores: number;
  readonly at: string;
}

/** Two measurements with the same key are the same point. */
export function keyOf(point: Point & Pick<Result, 'round' | 'setting'>): string {
  const { experiment, measure, system, series, x, round, conditions } = point;
  const { commit: _, ...setting } = point.setting;
  return canonical({ experiment, measure, system, series, x, round, conditions, setting });
}

/** JSON with sorted fields. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

export class Results {
  private readonly all: Result[];
  private readonly keys: Set<string>;

  constructor(private readonly path: string) {
    const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
    // A run that was killed may have left an incomplete line: the next result starts a new one.
    if (text !== '' && !text.endsWith('\n')) appendFileSync(path, '\n');
    this.all = parse(text);
    this.keys = new Set(this.all.map(keyOf));
  }

  has(point: Point, round: number, setting: Setting): boolean {
    return this.keys.has(keyOf({ ...point, round, setting }));
  }

  add(result: Result): void {
    appendFileSync(this.path, `${JSON.stringify(result)}\n`);
    this.all.push(result);
    this.keys.add(keyOf(result));
  }

  /**
   * The results of an experiment that have the same setting as its last one.
   */
  latest(experiment: string): readonly Result[] {
    const ours = this.all.filter((result) => result.experiment === experiment);
    const last = ours.at(-1);
    if (last === undefined) return [];
    const setting = settingKey(last);
    return ours.filter((result) => settingKey(result) === setting);
  }
}

function settingKey({ setting: { commit: _, ...rest } }: Result): string {
  return canonical(rest);
}

/** Skips lines that are not complete. */
function parse(text: string): Result[] {
  return text.split('\n').flatMap((line) => {
    try {
      return line === '' ? [] : [JSON.parse(line) as Result];
    } catch {
      return [];
    }
  });
}
