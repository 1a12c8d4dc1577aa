/** The summary of a chaos run: a column for each round, and a column of totals. Called by `main.mjs`. */
import { KINDS, kindsOf } from './plan.mjs';

/** @typedef {import('./round.mjs').RoundResult} RoundResult */

/** @param {readonly RoundResult[]} results */
export function totalOf(results) {
  const sum = (/** @type {(result: RoundResult) => number} */ of) =>
    results.reduce((total, result) => total + of(result), 0);
  const most = (/** @type {(result: RoundResult) => number} */ of) =>
    Math.max(0, ...results.map(of));
  return {
    faults: Object.fromEntries(
      Object.keys(KINDS).map((kind) => [kind, sum(({ faults }) => faults[kind] ?? 0)]),
    ),
    messages: sum(({ messages }) => messages),
    deliveries: sum(({ deliveries }) => deliveries),
    acknowledged: sum(({ acknowledged }) => acknowledged),
    audits: sum(({ audits }) => audits),
    deferred: sum(({ deferred }) => deferred),
    byTicks: sum(({ byTicks }) => byTicks),
    givenUp: sum(({ givenUp }) => givenUp),
    abandoned: sum(({ abandoned }) => abandoned),
    abandonedOfKilled: sum(({ abandonedOfKilled }) => abandonedOfKilled),
    behindMs: most(({ behindMs }) => behindMs),
    leaderChanges: sum(({ leaderChanges }) => leaderChanges),
    snapshots: sum(({ snapshots }) => snapshots),
    longestSilenceMs: most(({ longestSilenceMs }) => longestSilenceMs),
    slowestRejoinMs: most(({ slowestRejoinMs }) => slowestRejoinMs),
    seconds: sum(({ seconds }) => seconds),
  };
}

/**
 * @param {import('./plan.mjs').ChaosMemory} memory
 * @param {number} seed
 * @param {readonly RoundResult[]} results
 */
export function formatSummary(memory, seed, results) {
  const total = totalOf(results);
  const columns = [...results, total];
  const row = (/** @type {string} */ label, /** @type {(column: any) => unknown} */ of) => [
    label,
    ...columns.map((column) => String(of(column))),
  ];
  const rows = [
    ['', ...results.map(({ tree, hosts }) => `${tree}/${hosts}`), 'all'],
    ...kindsOf(memory).map((kind) => row(KINDS[kind], ({ faults }) => faults[kind] ?? 0)),
    row('faults', ({ faults }) => sumOf(Object.values(faults))),
    row('messages', ({ messages }) => messages),
    row('of these acknowledged', ({ acknowledged }) => acknowledged),
    row('audits', ({ audits }) => audits),
    row('deferred replies', ({ deferred }) => deferred),
    row('of these given by a tick', ({ byTicks }) => byTicks),
    row('messages given up', ({ givenUp }) => givenUp),
    row('abandoned by groups', ({ abandoned }) => abandoned),
    row('of these of killed clients', ({ abandonedOfKilled }) => abandonedOfKilled),
    row('ordered time behind the clock, ms', ({ behindMs }) => behindMs),
    row('deliveries', ({ deliveries }) => deliveries),
    row('leader changes', ({ leaderChanges }) => leaderChanges),
    row('snapshots restored', ({ snapshots }) => snapshots),
    row('longest time without an answer, ms', ({ longestSilenceMs }) => longestSilenceMs),
    row('slowest rejoin of a host, ms', ({ slowestRejoinMs }) => slowestRejoinMs),
    row('load, s', ({ seconds }) => seconds),
    [
      'all checks hold',
      ...results.map(({ complaints }) => (complaints.length === 0 ? 'yes' : 'NO')),
      results.every(({ complaints }) => complaints.length === 0) ? 'yes' : 'NO',
    ],
  ];
  return `${formatTable(rows)}\n\nseed ${seed}\n`;
}

/** Columns side by side, the first one left-aligned. @param {readonly string[][]} rows */
export function formatTable(rows) {
  const widths = rows[0].map((_, place) => Math.max(...rows.map((cells) => cells[place].length)));
  const lines = rows.map((cells) =>
    cells
      .map((cell, place) =>
        place === 0 ? cell.padEnd(widths[place]) : cell.padStart(widths[place]),
      )
      .join('  '),
  );
  return lines.join('\n');
}

/** @param {number[]} numbers */
function sumOf(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0);
}
