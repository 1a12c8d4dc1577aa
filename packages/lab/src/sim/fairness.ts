/**
 * Checks that no client is starved (H18). Once a message is the oldest unordered one of its client at its entry group,
 * only a bounded number of other entries may be ordered before it. Called by `world.ts`.
 *
 * It applies only to runs without incidents and interruptions: a leader change, a lost write or a paused client delay
 * messages for other reasons.
 */
import { type Sent, SimulationFailure } from './ledger.js';
import type { Plan } from './plan.js';

export class Fairness {
  private readonly bound: number;
  private readonly isJudged: boolean;
  /** By client and entry group: the unordered messages, and how much was decided when the oldest became the next. */
  private readonly waiting = new Map<string, { sent: Sent[]; sinceIndex: number }>();

  constructor(plan: Plan, isJudged: boolean) {
    const { clients } = plan.sizes;
    const { clientEntries, parentEntries } = plan.pace;
    this.isJudged = isJudged && plan.incidents.length === 0 && plan.interruptions === undefined;
    // A round serves every source. A message may have just missed one, and needs time to arrive.
    this.bound = 4 * (clients * clientEntries + parentEntries);
  }

  /** The leader of `group` has changed: messages that wait there are not judged. */
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
