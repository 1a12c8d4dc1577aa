/** The results of one experiment, with the rounds of each point combined. */
import type { PlotPoint, Series } from '../figures/panel.js';
import { type Spread, spreadOf } from '../load/spread.js';
import type { Result } from './results.js';

export type Reading = (result: Result) => number;

const VALUE: Reading = ({ value }) => value;

export class Summary {
  constructor(readonly results: readonly Result[]) {}

  /** The lines of a measure, in the order of their first result. */
  seriesOf(measure: string): string[] {
    return [...new Set(this.of(measure).map(({ series }) => series))];
  }

  /** In ascending order. */
  xsOf(measure: string): number[] {
    return [...new Set(this.of(measure).map(({ x }) => x))].sort((a, b) => a - b);
  }

  at(measure: string, series: string, x: number): Result[] {
    return this.of(measure).filter((result) => result.series === series && result.x === x);
  }

  spread(measure: string, series: string, x: number, read: Reading = VALUE): Spread | undefined {
    return spreadOf(this.at(measure, series, x).map(read));
  }

  median(measure: string, series: string, x: number): number | undefined {
    return this.spread(measure, series, x)?.median;
  }

  /** For a panel of a figure. @param unit  what a reading is divided by */
  lines(measure: string, unit: number, read: Reading = VALUE): Series[] {
    return this.seriesOf(measure).map((name) => this.line(measure, name, unit, read));
  }

  line(measure: string, name: string, unit: number, read: Reading = VALUE): Series {
    const xs = this.xsOf(measure);
    const points = xs.flatMap((x) => plotPoint(x, unit, this.spread(measure, name, x, read)));
    return { name, points };
  }

  private of(measure: string): Result[] {
    return this.results.filter((result) => result.measure === measure);
  }
}

export function plotPoint(x: number, unit: number, spread: Spread | undefined): PlotPoint[] {
  if (spread === undefined) return [];
  const { median, least, greatest } = spread;
  return [{ x, y: median / unit, low: least / unit, high: greatest / unit }];
}

export function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}
