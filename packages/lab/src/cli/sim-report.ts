/** Formats the report of `tram-lab sim` as text and as JSON. Called by `sim.ts`. */

import { count, paint } from 'tram-multicast/internal/cli/colors.js';
import { TRANSITIONS } from 'tram-multicast/internal/protocol/edges.js';
import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import type { SeedFailure, SeedOutcome, Totals } from '../sim/outcome.js';
import { FAULTS, type Fault, type Options, type Plan } from '../sim/plan.js';
import { canOccur } from '../sim/tally.js';
import { isAllDrawn, replayCommand, type SimFlags } from './sim-options.js';

/** With this many seeds or more, the run fails if a fault or transition never occurred. */
const SEEDS_TO_EXERCISE_ALL = 1000;
const LINES_OF_A_FAILURE = 8;

export interface Summary {
  readonly flags: SimFlags;
  readonly options: Options;
  readonly totals: Totals;
  readonly wallMs: number;
  readonly isInterrupted: boolean;
}

/** Faults and transitions that should have occurred, but did not. */
export function neverExercised({ flags, options, totals }: Summary): string[] {
  if (totals.seeds < SEEDS_TO_EXERCISE_ALL || !isAllDrawn(flags)) return [];
  return [...totals.faults, ...totals.transitions].flatMap(([name, hits]) =>
    hits === 0 && canOccur(name, options.durability) ? [name] : [],
  );
}

export function isFailed(summary: Summary): boolean {
  return summary.totals.failed > 0 || neverExercised(summary).length > 0;
}

// --- for programs ------------------------------------------------------------------------------

export function toJson(summary: Summary): unknown {
  const { flags, options, totals, wallMs, isInterrupted } = summary;
  return {
    outcome: isFailed(summary) ? 'failed' : isInterrupted ? 'interrupted' : 'holds',
    options,
    mutations: flags.mutation ?? [],
    seeds: totals.seeds,
    messages: totals.messages,
    deliveries: totals.deliveries,
    faults: totals.faultCount,
    simulatedUs: totals.simulatedUs,
    violateRealTime: totals.violateRealTime,
    wallMs: Math.round(wallMs),
    seedsPerSecond: rate(summary),
    faultCounts: Object.fromEntries(totals.faults),
    transitionCounts: Object.fromEntries(totals.transitions),
    neverExercised: neverExercised(summary),
    failed: totals.failed,
    failures: totals.failures.map((failure) => ({
      ...failure,
      replay: replayCommand(failure.seed, flags),
    })),
  };
}

function rate({ totals, wallMs }: Summary): number {
  return Math.round((totals.seeds / Math.max(wallMs, 1)) * 10_000) / 10;
}

// --- for people, many seeds --------------------------------------------------------------------

export function formatSummary(summary: Summary): string {
  const { totals, options, flags } = summary;
  const parts = [
    formatTable('fault', totals.faults, FAULTS, totals.seeds, (fault) => isOff(fault, options)),
    formatTable(
      'transition',
      totals.transitions,
      TRANSITIONS,
      totals.seeds,
      (transition) => !canOccur(transition, options.durability),
    ),
    formatCounts(summary),
  ];
  if (totals.failed > 0) parts.push(formatFailures(totals, flags));
  const never = neverExercised(summary);
  if (never.length > 0) {
    parts.push(
      `${paint('red', 'Never exercised')} in ${count(totals.seeds, 'seed')}: ${never.join(', ')}. ` +
        'The run has not tested them.\n',
    );
  }
  parts.push(formatOutcome(summary));
  return parts.join('\n');
}

function isOff(fault: Fault, { faults, durability }: Options): boolean {
  return !canOccur(fault, durability) || (faults !== undefined && !faults.includes(fault));
}

function formatTable<Name extends string>(
  title: string,
  counts: ReadonlyMap<Name, number>,
  names: readonly Name[],
  seeds: number,
  off: (name: Name) => boolean,
): string {
  const lines = names.map((name) => {
    const hits = counts.get(name) ?? 0;
    const note = off(name) ? paint('dim', 'off') : hits === 0 ? paint('yellow', 'never') : '';
    return row(name, hits.toLocaleString('en-US'), (hits / Math.max(seeds, 1)).toFixed(2), note);
  });
  return `${[paint('bold', row(title, 'times', 'per seed', '')), ...lines].join('\n')}\n`;
}

function row(name: string, times: string, perSeed: string, note: string): string {
  return `${name.padEnd(30)}${times.padStart(12)}${perSeed.padStart(11)}  ${note}`.trimEnd();
}

function formatCounts(summary: Summary): string {
  const { totals, wallMs } = summary;
  const perSeed = (n: number): string => (n / Math.max(totals.seeds, 1)).toFixed(1);
  return (
    `${count(totals.seeds, 'seed')}, ` +
    `${count(totals.messages, 'message')} (${perSeed(totals.messages)} per seed), ` +
    `${count(totals.deliveries, 'delivery', 'deliveries')}, ` +
    `${count(totals.faultCount, 'fault')} (${perSeed(totals.faultCount)} per seed)\n` +
    `${(totals.simulatedUs / 1e6).toFixed(2)} s simulated in ${(wallMs / 1000).toFixed(1)} s, ` +
    `${rate(summary)} seeds per second\n` +
    `real-time order is violated in ${count(totals.violateRealTime, 'seed')}\n`
  );
}

function formatFailures({ failed, failures }: Totals, flags: SimFlags): string {
  const shown = failures.map((failure) => formatFailure(failure, flags, LINES_OF_A_FAILURE));
  const more =
    failed > failures.length ? `\n… and ${count(failed - failures.length, 'more seed')}\n` : '';
  return shown.join('\n') + more;
}

export function formatFailure(failure: SeedFailure, flags: SimFlags, linesMax: number): string {
  const lines = failure.message.split('\n');
  const hidden = lines.length - linesMax;
  const shown = hidden > 1 ? [...lines.slice(0, linesMax), `… and ${hidden} more lines`] : lines;
  return (
    `${paint('red', `seed ${failure.seed} fails`)}: ${failure.kind}\n` +
    `${shown.map((line) => `  ${line}\n`).join('')}` +
    `  replay: ${paint('bold', replayCommand(failure.seed, flags))}\n`
  );
}

function formatOutcome(summary: Summary): string {
  const { totals, isInterrupted } = summary;
  const when = isInterrupted ? ' (interrupted: the report covers the seeds that were done)' : '';
  if (totals.failed > 0)
    return `${paint('red', `${count(totals.failed, 'seed')} failed`)}${when}\n`;
  if (isFailed(summary)) return `${paint('red', 'failed: not everything was exercised')}${when}\n`;
  return `${paint('green', 'every seed holds')}${when}\n`;
}

// --- for people, one seed ----------------------------------------------------------------------

export function formatPlan(plan: Plan, mutations: readonly string[]): string {
  const { sizes, timing, weather, incidents } = plan;
  const mutated = mutations.length > 0 ? `mutated by ${mutations.join(', ')}\n` : '';
  return (
    `${new Overlay(plan.parents).describe()}\n\n` +
    `${count(sizes.groups, 'group')} of ${count(sizes.replicas, 'replica')}, ` +
    `${count(sizes.clients, 'client')}, ${count(plan.messages, 'message')} ` +
    `of up to ${count(sizes.payloadBytesMax, 'byte')}, ` +
    `${plan.singleGroupPercent} % of them to one group only\n` +
    `order: ${plan.order}; ${plan.probePercent} % of the replies make a client read another group\n${mutated}` +
    `rings of ${describeRings(sizes)} bytes, up to ${count(sizes.callsMax, 'unanswered call')} a client, ` +
    `counts start at ${sizes.firstIndex}\n` +
    `a write takes ${weather.delayUs} to ${weather.delayUs + weather.jitterUs} µs, ` +
    `${weather.tornPercent} % land in pieces, ${weather.lateCompletionPercent} % complete late; ` +
    `suspicion after ${timing.suspectAfterUs} µs\n` +
    `${describeMemory(plan)}; ${count(incidents.length, 'incident')} planned\n`
  );
}

function describeMemory({ memory, interruptions }: Plan): string {
  if (interruptions === undefined) return `memory: ${memory}`;
  return `memory: ${memory}, with an interruption at one of ${interruptions.everyPoints} points`;
}

function describeRings({ logBytes, inboxBytes, feedBytes }: Plan['sizes']): string {
  const size = (bytes: number): string => (bytes === 0 ? 'as few as possible' : String(bytes));
  return `${size(logBytes)} (log), ${size(inboxBytes)} (inbox), ${size(feedBytes)} (feed)`;
}

export function formatTallies({ faults, transitions }: SeedOutcome): string {
  const list = (counts: ReadonlyMap<string, number>): string =>
    [...counts].map(([name, hits]) => `${name} ${hits}`).join(', ') || 'none';
  return `faults: ${list(faults)}\ntransitions: ${list(transitions)}\n`;
}
