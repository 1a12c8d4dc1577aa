/** The sections of the report as HTML: introduction, overview, one section for each experiment, how to read it. Called by `report.ts`. */
import type { Figure } from '../figures/figure.js';
import { spreadOf } from '../load/spread.js';
import { duration, listed, loadOf, plural, rate } from '../text/words.js';
import {
  type Experiment,
  type Finding,
  missingSystems,
  roundsOf,
  type Table,
} from './experiment.js';
import { type Markup, raw, tableOf } from './page.js';
import { FULL, type Profile, QUICK } from './profiles.js';
import type { Result } from './results.js';
import type { Setting } from './setting.js';
import type { Summary } from './summary.js';
import type { Systems } from './systems.js';

/** If other programs use more cores than this, the report warns. */
const QUIET_CORES = 0.3;

export interface Part {
  readonly experiment: Experiment;
  readonly results: readonly Result[];
  readonly summary: Summary;
  readonly findings: readonly Finding[];
  readonly figures: readonly Figure[];
}

export function machineOf({ processor, cores, node }: Setting): string {
  return `${processor}, ${plural(cores, 'core')}, Node ${node}`;
}

export function versionOf({ version, commit, code }: Setting): string {
  return `TRAM ${version} (${commit ?? code})`;
}

export function introduction(parts: readonly Part[]): Markup {
  const last = parts
    .flatMap(({ results }) => results)
    .sort((a, b) => (a.at < b.at ? -1 : 1))
    .at(-1);
  const paper = 'Scaling atomic ordering in shared memory';
  const text = `The experiments of the paper “${paper}” (Martignetti, Batista, Cugola, Pedone), repeated on one machine. The paper uses a cluster of machines with one processor of eight cores each, connected by RDMA. Here all replicas and clients share the cores and the memory of one machine. Ratios and trends are comparable; absolute times are not.`;
  if (last === undefined)
    return raw`<h1>TRAM: the paper’s experiments</h1><p>${text}</p><p>Nothing was measured yet.</p>`;
  const { setting } = last;
  const facts: [string, string][] = [
    ['Machine', `${machineOf(setting)}, ${setting.memoryGiB} GiB of memory, ${setting.system}`],
    ['Version', `${versionOf(setting)}, fingerprint of the measured code ${setting.code}`],
    ['Profile', profileWords(setting.profile)],
    ['Memory', `${setting.memory}, where an experiment does not need another one`],
    ['Other load', othersWords(parts)],
    ['Measured', `until ${last.at.slice(0, 16).replace('T', ' ')} UTC`],
  ];
  return raw`<h1>TRAM: the paper’s experiments</h1><p>${text}</p><dl>${facts.map(
    ([name, value]) => raw`<dt>${name}</dt><dd>${value}</dd>`,
  )}</dl>`;
}

/** The load of other programs, in words. */
function othersWords(parts: readonly Part[]): string {
  const results = parts.flatMap((part) => part.results);
  const most = Math.max(...results.map(({ othersCores }) => othersCores));
  return `other programs kept ${coresOfOthers(results).toFixed(1)} cores busy on average, ${most.toFixed(1)} at most`;
}

/** Cores that other programs used, on average. */
function coresOfOthers(results: readonly Result[]): number {
  return results.reduce((sum, { othersCores }) => sum + othersCores, 0) / (results.length || 1);
}

function profileWords(name: string): string {
  const profile = [QUICK, FULL].find((known) => known.name === name);
  return profile === undefined ? name : `${name}: ${timingWords(profile)}`;
}

function timingWords({ rounds, timing, ladder }: Profile): string {
  const top = ladder.at(-1)!;
  return `${rounds} rounds over all systems, ${timing.seconds} s for each measurement after ${timing.warmUpSeconds} s of warm-up; the search for saturation goes up to ${loadOf(top)} messages in flight`;
}

export function overview(parts: readonly Part[]): Markup {
  const rows = parts.map(({ experiment, findings, results }) => {
    const compared = findings.filter(({ paper }) => paper !== undefined);
    const count = (agrees: boolean): number =>
      compared.filter((finding) => finding.here !== undefined && finding.agrees === agrees).length;
    const open = compared.filter(({ here }) => here === undefined).length;
    const words = [
      count(true) > 0 ? `${count(true)} as in the paper` : '',
      count(false) > 0 ? `${count(false)} not` : '',
      open > 0 ? `${open} not measured` : '',
    ].filter(Boolean);
    const found =
      results.length === 0
        ? 'not measured'
        : words.length === 0
          ? 'beyond the paper'
          : listed(words);
    return raw`<tr><td><a href="#${experiment.name}">${experiment.name}</a></td><td>${experiment.title}</td><td>${experiment.section}</td><td>${found}</td></tr>`;
  });
  return raw`<table class="overview"><thead><tr><th>experiment</th><th></th><th>in the paper</th><th>findings</th></tr></thead><tbody>${rows}</tbody></table>`;
}

export function section(part: Part, systems: Systems, svgOf: (figure: Figure) => string): Markup {
  const { experiment, results, findings, figures } = part;
  const { name, title, about } = experiment;
  return raw`<section id="${name}"><h2>${title} <small>${name}, ${experiment.section}</small></h2><p>${about}</p>${notes(
    part,
    systems,
  )}${figures.map((figure) => raw`<figure>${{ markup: svgOf(figure) }}</figure>`)}${findingsTable(findings)}${
    results.length === 0 ? '' : details(part)
  }</section>`;
}

/** Notes on missing systems, missing rounds, disturbances and lower bounds. */
function notes({ experiment, results }: Part, systems: Systems): Markup[] {
  const measured = new Set(results.map(({ system }) => system));
  const missing = missingSystems(experiment, systems).filter((name) => !measured.has(name));
  const profile = [QUICK, FULL].find(({ name }) => name === results.at(-1)?.setting.profile);
  const planned = profile && roundsOf(experiment, profile);
  const unsteady = results.filter(({ details }) => details.isSaturated === false);
  const rounds = new Set(results.map(({ round }) => round)).size;
  const others = coresOfOthers(results);
  const lack = results.length === 0 ? experiment.lacks?.() : undefined;
  return [
    ...(lack !== undefined ? [raw`<p class="note">Not measured here: ${lack}</p>`] : []),
    ...(others > QUIET_CORES
      ? [
          raw`<p class="note">While this was measured, other programs kept ${others.toFixed(1)} of ${results[0].setting.cores} cores busy. The numbers and explanations below are not reliable.</p>`,
        ]
      : []),
    ...(missing.length > 0
      ? [
          raw`<p class="note">Not measured, because this build does not include it: ${listed(missing)}.</p>`,
        ]
      : []),
    ...(planned !== undefined && rounds < planned
      ? [
          raw`<p class="note">${rounds} of ${planned} rounds are measured; run the command again to continue.</p>`,
        ]
      : []),
    ...(unsteady.length > 0
      ? [
          raw`<p class="note">Throughput still grew at the highest load tried: ${listed([
            ...new Set(unsteady.map(({ series, x }) => `${series} at ${x}`)),
          ])}. There it is a lower bound.</p>`,
        ]
      : []),
  ];
}

function findingsTable(findings: readonly Finding[]): Markup {
  const compared = findings.filter(({ paper }) => paper !== undefined);
  const beyond = findings.filter(({ paper }) => paper === undefined);
  const rows = compared.map(({ paper, here, agrees, why }, i) => {
    if (here === undefined) {
      return raw`<tr><td>${paper!}</td><td class="open">The results for it are missing.</td><td></td></tr>`;
    }
    const verdict = agrees
      ? raw`<span class="agrees">as in the paper</span>`
      : raw`<span class="differs">differs</span>`;
    const isKnown = compared.slice(0, i).some((other) => !other.agrees && other.why === why);
    const reason = agrees ? '' : isKnown ? 'For the same reason.' : (why ?? '');
    return raw`<tr><td>${paper!}</td><td>${here}</td><td>${verdict}<br>${reason}</td></tr>`;
  });
  const table =
    rows.length === 0
      ? ''
      : raw`<table class="findings"><thead><tr><th>finding of the paper</th><th>finding here</th><th>verdict</th></tr></thead><tbody>${rows}</tbody></table>`;
  const list =
    beyond.length === 0
      ? ''
      : raw`<ul>${beyond.map(({ here }) => raw`<li>${here ?? ''}</li>`)}</ul>`;
  return raw`${table}${list}`;
}

function details({ experiment, summary }: Part): Markup {
  if (experiment.tables !== undefined) return raw`${experiment.tables(summary).map(tableOf)}`;
  const measures = [...new Set(summary.results.map(({ measure }) => measure))];
  const tables = measures.map((measure) => pointsTable(summary, measure));
  return raw`<details><summary>all points</summary>${tables.map(tableOf)}</details>`;
}

function pointsTable(summary: Summary, measure: string): Table {
  const series = summary.seriesOf(measure);
  const format = measure === 'latency' ? duration : rate;
  const cell = (name: string, x: number): string => {
    const spread = summary.spread(measure, name, x);
    if (spread === undefined) return '';
    const { median, least, greatest, rounds } = spread;
    const range = rounds > 1 ? ` (${format(least)} to ${format(greatest)})` : '';
    return `${format(median)}${range}${loadWords(summary.at(measure, name, x))}`;
  };
  return {
    title: `${measure}: median of all rounds (least to greatest)${hasLoads(summary, measure) ? '; the load at saturation (clients × messages), and the median latency there' : ''}`,
    head: ['', ...series],
    rows: summary
      .xsOf(measure)
      .map((x) => [x.toLocaleString('en'), ...series.map((name) => cell(name, x))]),
  };
}

function hasLoads(summary: Summary, measure: string): boolean {
  return summary.results.some(
    (each) => each.measure === measure && each.details.tried !== undefined,
  );
}

/** `; 1 × 256, 540 µs`: the loads at which the rounds found saturation, and the median latency there. */
function loadWords(results: readonly Result[]): string {
  const found = results.filter(({ details }) => details.tried !== undefined);
  const loads = found.flatMap(({ details: { load } }) =>
    load === undefined ? [] : [loadOf(load)],
  );
  const latency = spreadOf(found.flatMap(({ details }) => details.latencyNs?.p50 ?? []));
  if (loads.length === 0 || latency === undefined) return '';
  return `; ${[...new Set(loads)].join(' or ')}, ${duration(latency.median)}`;
}

export function howToRead(): Markup {
  return raw`<section id="reading"><h2>How to read this</h2><p>Every round measures every point once, over all systems, so that a disturbance of the machine affects all systems alike. Lines show the median of the rounds, whiskers the least and the greatest value. Latency is the median of single messages, from the offer of a client until the replies of all destinations are back. Throughput at saturation is the highest throughput found while the load (clients × messages that each keeps in flight) is raised until throughput grows by less than 5 %. On logarithmic axes the ticks are not evenly spaced. The verdict “differs” is computed from the results by a fixed rule for each finding. Check it against the figures.</p></section>`;
}
