/**
 * No source may be starved by the others (H18): from the moment a client's message is the next of
 * its client at its entry group, only so many other entries may be ordered before it.
 *
 * Only judged in runs without incidents: a leader change, a lost write or a paused client delay a
 * message for reasons that have nothing to do with turns.
 */
import { type Sent, SimulationFailure } from './ledger.js';
import type { Plan } from './plan.js';

export class Fairness {
  private readonly bound: number;
  private readonly isJudged: boolean;
  /** By client and entry group: when its oldest unordered message became the next one. */
  private readonly waiting = new Map<string, { sent: Sent[]; sinceIndex: number }>();

  constructor(plan: Plan, isJudged: boolean) {
    const { clients } = plan.sizes;
    const { clientEntries, parentEntries } = plan.pace;
    this.isJudged = isJudged && plan.incidents.length === 0;
    // A round serves everybody; a message may just have missed one, and some travel time is allowed for.
    this.bound = 4 * (clients * clientEntries + parentEntries);
  }

  /** A leader change in `group`: whoever waits begins to wait anew. */
  disturbed(group: number): void {
    for (const [key, entry] of this.waiting) {
      if (key.endsWith(`@${group}`)) entry.sinceIndex = Number.POSITIVE_INFINITY;
    }
  }

  sent(sent: Sent, decided: number): void {
    if (!this.isJudged) return;
    const key = `${sent.client}@${sent.entryGroup}`;
    const entry = this.waiting.get(key) ?? { sent: [], sinceIndex: decided };
    if (entry.sent.length === 0) entry.sinceIndex = decided;
    entry.sent.push(sent);
    this.waiting.set(key, entry);
  }

  ordered(sent: Sent, decided: number): void {
    if (!this.isJudged) return;
    const entry = this.waiting.get(`${sent.client}@${sent.entryGroup}`)!;
    const bypassed = decided - 1 - entry.sinceIndex;
    if (bypassed > this.bound) {
      throw new SimulationFailure(
        'fairness',
        `${sent.id} had to wait for ${bypassed} other messages at group ${sent.entryGroup}; at most ${this.bound} are fair`,
      );
    }
    entry.sent.shift();
    entry.sinceIndex = decided;
  }
}
