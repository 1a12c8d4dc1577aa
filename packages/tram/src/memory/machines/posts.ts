/**
 * The operations that participants of this host have posted over one link, from posting until their outcome is reported.
 * Outcomes are reported in the order of posting. Called by `link.ts`.
 *
 * A *confirmation* is a read behind writes: it is served after they have landed, and reads the permission words of the
 * peers that were written to. A guarded write is `ok` if its guard was permitted then (contract.ts, promise 4).
 *
 *   firstIndex ≤ confirmedIndex ≤ endIndex
 *
 * Posts before `confirmedIndex` need no further confirmation: one has been added behind them.
 */
import { type ArenaMap, PARTICIPANT } from '../arena.js';
import { NO_TAG, OPEN, type Outcome, type ParticipantId, reportsSuccess } from '../contract.js';
import { PooledQueue } from './pooled-queue.js';

/** A participant of this host that posts, and gets the outcomes. */
export interface Poster {
  onOutcome(peer: ParticipantId, tag: number, guard: number, outcome: Outcome): void;
}

/** Unguarded writes with `NO_TAG` are fire-and-forget: backends need not report their completion. */
export function isFireAndForget(guard: number, tag: number): boolean {
  return guard === OPEN && tag === NO_TAG;
}

class Post {
  /** Undefined: the host itself, to which no outcome is reported. */
  poster: Poster | undefined = undefined;
  peer: ParticipantId = 0;
  tag = 0;
  guard = OPEN;
  /** Undefined until the operation has completed. */
  outcome: Outcome | undefined = undefined;
}

/** The permission words that a confirmation reads: those of all peers that it needs, and what lies between them. */
export interface PermissionRange {
  at: number;
  /** 0: no guarded write is unconfirmed. */
  count: number;
}

export class Posts {
  private readonly queue = new PooledQueue(() => new Post());
  private confirmedIndex = 0;
  /** Result of `unconfirmedPermissions`, reused. */
  private readonly range: PermissionRange = { at: 0, count: 0 };

  constructor(private readonly map: ArenaMap) {}

  get isEmpty(): boolean {
    return this.queue.isEmpty;
  }

  get endIndex(): number {
    return this.queue.endIndex;
  }

  get hasUnconfirmed(): boolean {
    return this.confirmedIndex < this.queue.endIndex;
  }

  add(poster: Poster | undefined, peer: ParticipantId, guard: number, tag: number): void {
    const post = this.queue.add();
    post.poster = poster;
    post.peer = peer;
    post.tag = tag;
    post.guard = guard;
    post.outcome = undefined;
  }

  // --- confirming ------------------------------------------------------------------------------

  /** Where the permissions of all unconfirmed guarded writes lie in the arena. Valid until the next call. */
  unconfirmedPermissions(): PermissionRange {
    const { queue, range } = this;
    let first = Number.POSITIVE_INFINITY;
    let last = 0;
    for (let index = this.confirmedIndex; index < queue.endIndex; index++) {
      const { guard, peer } = queue.at(index);
      if (guard === OPEN) continue;
      const at = this.permissionAt(peer);
      if (at < first) first = at;
      if (at > last) last = at;
    }
    range.at = last === 0 ? 0 : first;
    range.count = last === 0 ? 0 : last - first + 1;
    return range;
  }

  /** A confirmation has been added behind all posts up to now. */
  markConfirmed(): void {
    this.confirmedIndex = this.queue.endIndex;
  }

  /**
   * A confirmation has completed: the writes before `endIndex` have landed.
   *
   * @param permissions  what it read, from `from` on: the words of the peer's arena from `at` on
   */
  confirm(endIndex: number, permissions: Int32Array, from: number, at: number): void {
    const { queue } = this;
    for (let index = queue.firstIndex; index < endIndex; index++) {
      const post = queue.at(index);
      if (post.outcome !== undefined) continue;
      const { guard } = post;
      const isPermitted =
        guard === OPEN || permissions[from + this.permissionAt(post.peer) - at] === guard;
      post.outcome = isPermitted ? 'ok' : 'refused';
    }
  }

  /** The read that was posted with this index has completed. */
  completeRead(index: number): void {
    this.queue.at(index).outcome = 'ok';
  }

  private permissionAt(peer: ParticipantId): number {
    return this.map.participant(peer) + PARTICIPANT.permission;
  }

  // --- reporting -------------------------------------------------------------------------------

  /** Report what has completed, up to the first post that has not. */
  reportCompleted(): void {
    const { queue } = this;
    while (!queue.isEmpty) {
      const { outcome } = queue.at(queue.firstIndex);
      if (outcome === undefined) return;
      this.reportFirst(outcome);
    }
  }

  /** The connection has broken: everything that has not been reported is lost. */
  reportLost(): void {
    while (!this.queue.isEmpty) this.reportFirst('lost');
    this.markConfirmed();
  }

  private reportFirst(outcome: Outcome): void {
    const { queue } = this;
    const { poster, peer, tag, guard } = queue.at(queue.firstIndex);
    if (outcome !== 'ok' || reportsSuccess(tag)) poster?.onOutcome(peer, tag, guard, outcome);
    queue.dropBefore(queue.firstIndex + 1);
  }
}
