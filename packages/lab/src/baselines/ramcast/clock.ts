/**
 * A leader's logical clock. A timestamp is a tick with the group's number as its lowest digit, so no two groups give the same
 * timestamp, and no two messages have the same final timestamp.
 */
import { GROUPS_MAX } from 'tram-multicast/internal/protocol/overlay.js';

export class Clock {
  private latest: number;

  /** @param firstIndex  the first tick */
  constructor(
    private readonly group: number,
    firstIndex: number,
  ) {
    this.latest = firstIndex * GROUPS_MAX;
  }

  /** A timestamp above all that were given or observed. */
  tick(): number {
    this.latest = (Math.floor(this.latest / GROUPS_MAX) + 1) * GROUPS_MAX + this.group;
    return this.latest;
  }

  observe(timestamp: number): void {
    if (timestamp > this.latest) this.latest = timestamp;
  }
}
