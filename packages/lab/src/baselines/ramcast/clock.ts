/**
 * A leader's logical clock. A timestamp is a tick with the group's number in its lowest digit, so no two groups
 * ever give the same one, and the highest of a message's timestamps is that of no other message.
 */
import { GROUPS_MAX } from 'tram-multicast/internal/protocol/overlay.js';

export class Clock {
  private latest: number;

  /** @param origin  where ticks start */
  constructor(
    private readonly group: number,
    origin: number,
  ) {
    this.latest = origin * GROUPS_MAX;
  }

  /** A timestamp above all that were given or seen. */
  tick(): number {
    this.latest = (Math.floor(this.latest / GROUPS_MAX) + 1) * GROUPS_MAX + this.group;
    return this.latest;
  }

  observe(timestamp: number): void {
    if (timestamp > this.latest) this.latest = timestamp;
  }
}
