/** What of a run is visible in the picture, as text: a step of the page ends when it changes. */
import type { View } from '../run/view.js';

export function digestOf({ replicas, clients, flights }: View): string {
  const parts: string[] = [];
  for (const { state, role, phase, promised, permits, log, inboxes, feeds } of replicas) {
    parts.push(state, role, phase ?? '', promised, permits);
    if (log !== undefined) {
      parts.push(log.ballot, String(log.truncated));
      for (const cell of log.cells) parts.push(cell.label, cell.state);
    }
    for (const { labels } of [...inboxes, ...feeds]) parts.push(labels.join());
  }
  for (const { state, unanswered } of clients) parts.push(state, String(unanswered));
  const kinds = new Set(flights.map(({ from, to, kind }) => `${from} ${to} ${kind}`));
  return parts.join('\n') + [...kinds].sort().join('\n');
}
