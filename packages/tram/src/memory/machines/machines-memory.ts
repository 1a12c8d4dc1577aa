/**
 * The memory of a participant whose peers are on several machines. Peers on its own host share an arena with it; posts
 * to all others go over the link to their host.
 */
import type { Arena, ArenaMap } from '../arena.js';
import { type Completion, OPEN, type Outcome, type ParticipantId } from '../contract.js';
import { SharedMemory } from '../shared.js';
import type { Link } from './link.js';
import { PooledQueue } from './pooled-queue.js';
import { isFireAndForget, type Poster } from './posts.js';

export class MachinesMemory extends SharedMemory implements Poster {
  /** Outcomes that links have reported and that have not been polled. */
  private readonly completions = new PooledQueue<Completion>(newCompletion);
  /** By host: losses among `completions`. While there are some, whatever is posted to that host is lost as well. */
  private readonly unpolledLosses: Uint32Array;
  /** For `writeWord`. */
  private readonly word = new Int32Array(1);

  constructor(
    self: ParticipantId,
    arena: Arena,
    map: ArenaMap,
    /** By participant: the link to its host, undefined for our own host. */
    private readonly links: readonly (Link | undefined)[],
  ) {
    super(self, arena, map);
    this.unpolledLosses = new Uint32Array(map.hosts + map.layout.sizes.clients);
  }

  override write(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): void {
    const link = this.links[peer];
    if (link === undefined) {
      super.write(peer, to, source, from, count, guard, tag);
      return;
    }
    this.check(peer, to, count);
    if (this.canPost(link)) {
      link.write(this, peer, this.regions[peer] + to, source, from, count, guard, tag);
    } else if (!isFireAndForget(guard, tag)) {
      this.onOutcome(peer, tag, guard, 'lost');
    }
  }

  /** Over a link, outcomes come later. */
  override writeAtOnce(
    peer: ParticipantId,
    to: number,
    source: Int32Array,
    from: number,
    count: number,
    guard: number,
    tag: number,
  ): boolean {
    if (this.links[peer] === undefined)
      return super.writeAtOnce(peer, to, source, from, count, guard, tag);
    this.write(peer, to, source, from, count, guard, tag);
    return false;
  }

  override writeWord(
    peer: ParticipantId,
    to: number,
    value: number,
    guard: number,
    tag: number,
  ): void {
    if (this.links[peer] === undefined) {
      super.writeWord(peer, to, value, guard, tag);
      return;
    }
    this.word[0] = value;
    this.write(peer, to, this.word, 0, 1, guard, tag);
  }

  override read(
    peer: ParticipantId,
    at: number,
    count: number,
    into: Int32Array,
    intoAt: number,
    tag: number,
  ): void {
    const link = this.links[peer];
    if (link === undefined) {
      super.read(peer, at, count, into, intoAt, tag);
      return;
    }
    this.check(peer, at, count);
    if (this.canPost(link)) {
      link.read(this, peer, this.regions[peer] + at, count, into, intoAt, tag);
    } else {
      this.onOutcome(peer, tag, OPEN, 'lost');
    }
  }

  override markUrgent(peer: ParticipantId): void {
    this.links[peer]?.markUrgent();
  }

  override wake(peer: ParticipantId, urgent: boolean): void {
    const link = this.links[peer];
    if (link === undefined) super.wake(peer, urgent);
    else link.wake(peer, urgent);
  }

  override poll(): boolean {
    if (super.poll()) return true;
    const { completions, completion } = this;
    if (completions.isEmpty) return false;
    const { peer, tag, guard, outcome } = completions.at(completions.firstIndex);
    completion.peer = peer;
    completion.tag = tag;
    completion.guard = guard;
    completion.outcome = outcome;
    completions.dropBefore(completions.firstIndex + 1);
    if (outcome === 'lost') this.unpolledLosses[this.hostOf(peer)]--;
    return true;
  }

  /** A link reports what became of a post. */
  onOutcome(peer: ParticipantId, tag: number, guard: number, outcome: Outcome): void {
    const completion = this.completions.add();
    completion.peer = peer;
    completion.tag = tag;
    completion.guard = guard;
    completion.outcome = outcome;
    if (outcome === 'lost') this.unpolledLosses[this.hostOf(peer)]++;
    super.wake(this.self, true);
  }

  private canPost({ isOpen, host }: Link): boolean {
    return isOpen && this.unpolledLosses[host] === 0;
  }

  /** @param peer  on another host */
  private hostOf(peer: ParticipantId): number {
    return this.links[peer]!.host;
  }
}

function newCompletion(): Completion {
  return { peer: 0, tag: 0, guard: OPEN, outcome: 'ok' };
}
