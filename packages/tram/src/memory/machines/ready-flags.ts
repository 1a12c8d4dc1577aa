/**
 * The ready flags that a link is to set at the other host (arena.ts), behind everything that was posted before. Called by
 * `link.ts`.
 *
 * Flags are hints, so each kind is written as one range: flags that lie between two others are set as well.
 */
import type { ArenaMap } from '../arena.js';
import type { ParticipantId } from '../contract.js';
import type { Transfers } from './transfers.js';

export class ReadyFlags {
  private readonly urgent = new FlagRange();
  private readonly later = new FlagRange();

  constructor(private readonly map: ArenaMap) {}

  get isEmpty(): boolean {
    return this.urgent.isEmpty && this.later.isEmpty;
  }

  add(peer: ParticipantId, urgent: boolean): void {
    if (urgent) this.urgent.add(this.map.ready(peer));
    else this.later.add(this.map.readyLater(peer));
  }

  moveTo(transfers: Transfers): void {
    this.urgent.moveTo(transfers);
    this.later.moveTo(transfers);
  }

  clear(): void {
    this.urgent.clear();
    this.later.clear();
  }
}

/** Words of the arena from `first` to `last`; no flag lies at 0. */
class FlagRange {
  private first = Number.MAX_SAFE_INTEGER;
  private last = 0;

  get isEmpty(): boolean {
    return this.last === 0;
  }

  add(flag: number): void {
    if (flag < this.first) this.first = flag;
    if (flag > this.last) this.last = flag;
  }

  moveTo(transfers: Transfers): void {
    if (this.isEmpty) return;
    transfers.addFlags(this.first, this.last - this.first + 1);
    this.clear();
  }

  clear(): void {
    this.first = Number.MAX_SAFE_INTEGER;
    this.last = 0;
  }
}
