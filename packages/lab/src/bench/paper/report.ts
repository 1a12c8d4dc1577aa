/**
 * The report of all experiments: a self-contained `index.html`, and a file for every figure. It is computed from the results
 * that exist, and says what is missing. `sections.ts` has its text.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawFigure, type Figure } from '../figures/figure.js';
import type { Context, Experiment } from './experiment.js';
import { page } from './page.js';
import type { Result, Results } from './results.js';
import {
  howToRead,
  introduction,
  machineOf,
  overview,
  type Part,
  section,
  versionOf,
} from './sections.js';
import type { Setting } from './setting.js';
import { Summary } from './summary.js';
import type { Systems } from './systems.js';

export interface ReportOptions {
  readonly experiments: readonly Experiment[];
  readonly results: Results;
  readonly systems: Systems;
}

export interface Report {
  readonly html: string;
  readonly figures: readonly {
    readonly name: string;
    readonly svg: string;
    readonly isEmpty: boolean;
  }[];
}

export function writeReport(report: Report, directory: string): void {
  writeFigures(report, directory);
  writeFileSync(join(directory, 'index.html'), report.html);
}

/** Writes the figures that have results; a figure without results does not overwrite an earlier one. */
export function writeFigures({ figures }: Report, directory: string): void {
  mkdirSync(directory, { recursive: true });
  for (const { name, svg, isEmpty } of figures) {
    if (!isEmpty) writeFileSync(join(directory, `${name}.svg`), `${svg}\n`);
  }
}

export function makeReport({ experiments, results, systems }: ReportOptions): Report {
  const parts = experiments.map((experiment) => partOf(experiment, results));
  const drawn = parts.flatMap(({ figures }) =>
    figures.map((figure) => ({
      name: figure.name,
      svg: drawFigure(figure),
      isEmpty: figure.panels.every(({ series }) =>
        series.every(({ points }) => points.length === 0),
      ),
    })),
  );
  const svgOf = (figure: Figure): string => drawn.find(({ name }) => name === figure.name)!.svg;
  const body = [
    introduction(parts),
    overview(parts),
    ...parts.map((part) => section(part, systems, svgOf)),
    howToRead(),
  ];
  return { html: page('TRAM: the paper’s experiments', body), figures: drawn };
}

function partOf(experiment: Experiment, results: Results): Part {
  const found = results.latest(experiment.name);
  const summary = new Summary(found);
  const setting = found.at(-1)?.setting;
  const context: Context | undefined = setting && {
    setting,
    summaryOf: (name) => new Summary(fitting(results.latest(name), setting)),
  };
  const caption = captionOf(found);
  return {
    experiment,
    results: found,
    summary,
    findings: context === undefined ? [] : experiment.findings(summary, context),
    figures: experiment.figures(summary).map((figure) => ({ ...figure, caption })),
  };
}

/** The results that were measured on the same machine by the same code. */
function fitting(results: readonly Result[], { code, processor, memory, profile }: Setting) {
  return results.filter(
    ({ setting }) =>
      setting.code === code &&
      setting.processor === processor &&
      setting.memory === memory &&
      setting.profile === profile,
  );
}

function captionOf(results: readonly Result[]): string {
  const last = results.at(-1);
  if (last === undefined) return 'not measured';
  const { setting, conditions } = last;
  const rounds = Math.max(...results.map(({ round }) => round));
  const spread = rounds > 1 ? `median of ${rounds} rounds, whiskers: least to greatest; ` : '';
  return `${spread}${machineOf(setting)}; ${versionOf(setting)}, ${conditions['memory'] ?? setting.memory}; ${dayOf(last)}`;
}

function dayOf({ at }: Result): string {
  return at.slice(0, 10);
}
