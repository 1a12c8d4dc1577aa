/** Paper §8.2 and §8.3: one to eight destinations, drawn at random or adjacent in the tree, on three trees and RamCast. */
import type { Panel } from '../../figures/panel.js';
import { spreadOf } from '../../load/spread.js';
import { listed, plural, times } from '../../text/words.js';
import {
  destinationsAxis,
  GROUPS,
  latencyPanel,
  PAYLOAD_BYTES,
  sessionsByDestinations,
  throughputPanel,
} from '../by-destinations.js';
import type { Experiment, Finding } from '../experiment.js';
import type { Setting } from '../setting.js';
import { geometricMean, plotPoint, type Summary } from '../summary.js';

const COMPARED = ['TRAM base', 'TRAM breadth', 'TRAM depth', 'RamCast', 'RamCast lean'] as const;
const TREE_NAMES = ['TRAM base', 'TRAM breadth', 'TRAM depth'] as const;

/** Each round of a tree, relative to the median of RamCast. */
function normalisedPanel(summary: Summary): Panel {
  const xs = summary.xsOf('throughput');
  const ratios = (name: string, x: number): number[] => {
    const reference = summary.median('throughput', 'RamCast', x);
    if (reference === undefined) return [];
    return summary.at('throughput', name, x).map(({ value }) => value / reference);
  };
  const series = TREE_NAMES.map((name) => ({
    name,
    points: xs.flatMap((x) => plotPoint(x, 1, spreadOf(ratios(name, x)))),
  })).filter(({ points }) => points.length > 0);
  return {
    title: 'Throughput against RamCast',
    x: destinationsAxis(summary),
    y: { label: 'times RamCast', kind: 'linear' },
    series,
    reference: { y: 1, label: 'RamCast' },
    empty: 'RamCast was not measured',
  };
}

function panels(summary: Summary): Panel[] {
  return [latencyPanel(summary, 'linear'), throughputPanel(summary), normalisedPanel(summary)];
}

/** The reason why trees differ less here than on machines of their own. */
export function fewCores({ cores }: Setting): string {
  return `The paper spreads replicas over machines; here ${plural(cores, 'core')} run all ${GROUPS * 3} replicas and the clients. Groups work one after the other, so the total number of groups that a message involves matters, not the depth of its path.`;
}

function constantTime(summary: Summary, setting: Setting): Finding {
  const paper =
    'The breadth tree orders messages in almost constant time, excluding the faster case of one destination.';
  const [two, eight] = [2, 8].map((x) => summary.median('latency', 'TRAM breadth', x));
  if (two === undefined || eight === undefined) return { paper };
  return {
    paper,
    here: `Breadth takes ${times(eight / two)} as long for eight destinations as for two.`,
    agrees: eight / two < 1.5,
    why: fewCores(setting),
  };
}

function latencyOfTrees(summary: Summary, setting: Setting): Finding {
  const paper = 'Base and depth trees have a higher latency than breadth, because of more hops.';
  const [base, depth] = ['TRAM base', 'TRAM depth'].map((name) =>
    meanRatio(summary, 'latency', name, 'TRAM breadth'),
  );
  if (base === undefined || depth === undefined) return { paper };
  return {
    paper,
    here: `Over two and more destinations, base takes ${times(base)} and depth ${times(depth)} as long as breadth.`,
    agrees: base > 1.05 && depth > 1.05,
    why: fewCores(setting),
  };
}

function throughputOfTrees(summary: Summary, setting: Setting): Finding {
  const paper =
    'The depth tree has the best throughput, closely followed by base, because messages enter at many groups.';
  const [base, breadth] = ['TRAM base', 'TRAM breadth'].map((name) =>
    meanRatio(summary, 'throughput', name, 'TRAM depth'),
  );
  if (base === undefined || breadth === undefined) return { paper };
  return {
    paper,
    here: `Over two and more destinations, base has ${times(base)} and breadth ${times(breadth)} of the throughput of depth.`,
    agrees: base < 1.05 && breadth < base,
    why: `${fewCores(setting)} Leaders that could order in parallel share a core.`,
  };
}

function againstRamCast(summary: Summary): Finding[] {
  const latencyPaper =
    'RamCast is faster for few destinations; with the right tree, TRAM has the lower latency for more than two.';
  const throughputPaper =
    'RamCast has more throughput for few destinations; with the right tree, TRAM has more for more than three.';
  const mostPaper =
    'TRAM has up to more than 3× the throughput and 1/2.3 of the latency of RamCast.';
  const latency = bestAgainst(summary, 'latency', Math.min, 'RamCast');
  const throughput = bestAgainst(summary, 'throughput', Math.max, 'RamCast');
  if (latency.length === 0 || throughput.length === 0) {
    return [{ paper: latencyPaper }, { paper: throughputPaper }, { paper: mostPaper }];
  }
  const lower = latency.filter(({ ratio }) => ratio < 1).map(({ x }) => x);
  const higher = throughput.filter(({ ratio }) => ratio > 1).map(({ x }) => x);
  const least = Math.min(...latency.map(({ ratio }) => ratio));
  const most = Math.max(...throughput.map(({ ratio }) => ratio));
  const share =
    'Here every write costs time of the same few cores. In RamCast the leaders of all destinations write to all members of all destinations; in TRAM only the groups on the path of a message write.';
  return [
    {
      paper: latencyPaper,
      here: `The best tree has a lower latency than RamCast for ${destinationsOf(lower, latency)}.`,
      agrees: latency.every(({ x, ratio }) => x <= 2 || ratio < 1),
      why: share,
    },
    {
      paper: throughputPaper,
      here: `The best tree has a higher throughput than RamCast for ${destinationsOf(higher, throughput)}.`,
      agrees: throughput.every(({ x, ratio }) => x <= 3 || ratio > 1),
      why: share,
    },
    {
      paper: mostPaper,
      here: `At best ${times(most)} the throughput and 1/${(1 / least).toFixed(1)} of the latency of RamCast. ${againstLean(summary)}`,
      agrees: most > 3 && 1 / least > 2.3,
      why: share,
    },
  ];
}

/** Not in the paper: a variant of RamCast that is faster than the published one. */
function againstLean(summary: Summary): string {
  const latency = bestAgainst(summary, 'latency', Math.min, 'RamCast lean');
  const throughput = bestAgainst(summary, 'throughput', Math.max, 'RamCast lean');
  if (latency.length === 0 || throughput.length === 0) return '';
  const least = Math.min(...latency.map(({ ratio }) => ratio));
  const most = Math.max(...throughput.map(({ ratio }) => ratio));
  return `Of the lean variant of RamCast: ${times(most)} and 1/${(1 / least).toFixed(1)}.`;
}

function destinationsOf(xs: readonly number[], all: readonly unknown[]): string {
  if (xs.length === 0) return 'no number of destinations';
  if (xs.length === all.length) return 'every number of destinations';
  return `${listed(xs)} destination${xs.length === 1 && xs[0] === 1 ? '' : 's'}`;
}

/** The best tree relative to a variant of RamCast, for every number of destinations. */
function bestAgainst(
  summary: Summary,
  measure: string,
  best: (...values: number[]) => number,
  name: 'RamCast' | 'RamCast lean',
): { x: number; ratio: number }[] {
  return summary.xsOf(measure).flatMap((x) => {
    const reference = summary.median(measure, name, x);
    const trees = TREE_NAMES.flatMap((name) => summary.median(measure, name, x) ?? []);
    return reference === undefined || trees.length === 0
      ? []
      : [{ x, ratio: best(...trees) / reference }];
  });
}

/** One line relative to another: the geometric mean over two and more destinations. */
function meanRatio(
  summary: Summary,
  measure: string,
  name: string,
  reference: string,
): number | undefined {
  const ratios = summary.xsOf(measure).flatMap((x) => {
    const [ours, theirs] = [name, reference].map((each) => summary.median(measure, each, x));
    return x < 2 || ours === undefined || theirs === undefined ? [] : [ours / theirs];
  });
  return ratios.length === 0 ? undefined : geometricMean(ratios);
}

function depthAgainstRamCast(summary: Summary): Finding {
  const paper =
    'With the depth tree, the throughput of TRAM is always better than that of RamCast.';
  const ratios = summary.xsOf('throughput').flatMap((x) => {
    const [depth, ramCast] = ['TRAM depth', 'RamCast'].map((name) =>
      summary.median('throughput', name, x),
    );
    return depth === undefined || ramCast === undefined ? [] : [depth / ramCast];
  });
  if (ratios.length === 0) return { paper };
  return {
    paper,
    here: `Depth has ${times(Math.min(...ratios))} to ${times(Math.max(...ratios))} of the throughput of RamCast.`,
    agrees: Math.min(...ratios) > 1,
    why: 'For one destination both do nearly the same work.',
  };
}

function againstRandom(summary: Summary, randomly: Summary): Finding {
  const paper = 'All trees perform better than under the random workload.';
  const gains = TREE_NAMES.flatMap((name) => {
    const ratios = summary.xsOf('throughput').flatMap((x) => {
      const [here, there] = [summary, randomly].map((each) => each.median('throughput', name, x));
      const isDrawn = x > 1 && x < GROUPS;
      return !isDrawn || here === undefined || there === undefined ? [] : [here / there];
    });
    return ratios.length === 0 ? [] : [{ name, gain: geometricMean(ratios) }];
  });
  if (gains.length === 0) return { paper };
  const each = gains.map(({ name, gain }) => `${name.replace('TRAM ', '')} ${times(gain)}`);
  return {
    paper,
    here: `Where destinations can differ (2 to ${GROUPS - 1}), throughput relative to random destinations: ${listed(each)}.`,
    agrees: gains.every(({ gain }) => gain > 1),
    why: 'Connected destinations involve fewer groups, but more often the same ones. In the breadth tree every such message enters at the root.',
  };
}

const ABOUT = `${GROUPS} groups of 3 replicas, ${PAYLOAD_BYTES} B payloads. Latency is the median with one client that sends one message at a time, until the replies of all destinations are back. Throughput is measured at saturation: the load is raised until throughput grows by less than 5 %. RamCast is as published: every replica acknowledges timestamps. “RamCast lean” is our variant: leaders count the completions of their writes, so followers are not on the critical path.`;

const MEMBERS = COMPARED.map((name) => ({ name, replicas: 3 }));

export const random: Experiment = {
  name: 'random',
  title: 'Trees under a random workload',
  section: '§8.2',
  about: `Messages go to 1 to ${GROUPS} groups, drawn uniformly. ${ABOUT}`,
  systems: COMPARED,
  sessions: (plan) => sessionsByDestinations('random', plan, plan.memory, 'random', MEMBERS),
  figures: (summary) => [{ name: 'random', title: 'Random destinations', panels: panels(summary) }],
  findings: (summary, { setting }) => [
    constantTime(summary, setting),
    latencyOfTrees(summary, setting),
    throughputOfTrees(summary, setting),
    ...againstRamCast(summary),
  ],
};

export const adjacent: Experiment = {
  name: 'adjacent',
  title: 'Skewed, “genuine” workload',
  section: '§8.3',
  about: `Messages go to 1 to ${GROUPS} groups that are connected in the tree, so that every group that orders a message is one of its destinations. RamCast, which has no tree, gets the destinations of the base tree. ${ABOUT}`,
  systems: COMPARED,
  sessions: (plan) => sessionsByDestinations('adjacent', plan, plan.memory, 'adjacent', MEMBERS),
  figures: (summary) => [
    { name: 'adjacent', title: 'Adjacent destinations', panels: panels(summary) },
  ],
  findings: (summary, { summaryOf }) => [
    depthAgainstRamCast(summary),
    againstRandom(summary, summaryOf('random')),
  ],
};
