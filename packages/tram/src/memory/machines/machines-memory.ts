/**
 * The memory of a process whose peers are on several hosts. Those on its own host share an arena with it; what is
 * for others goes over the link to their host.
 */
import type { Arena, ArenaMap } from '../arena.js';
import { OPEN, type Outcome, type ProcessId } from '../contract.js';
import { SharedMemory } from '../shared.js';
import { isTold, type Link } from './link.js';
import { RowQueue } from './queue.js';

const OUTCOMES: readonly Outcome[] = ['ok', 'refused', 'lost'];
const TOLD = { peer: 0, tag: 1, guard: 2, outcome: 3, columns: 4 } as const;

export class HostsMemory extends SharedMemory {
  private readonly told = new RowQueue(TOLD.columns);
  /** By host, losses that have not been polled: until they are, whatever else is posted to it is lost as well. */
  private readonly losses: Uint32Array;

  constructor(
    self: ProcessId,
    arena: Arena,
    map: ArenaMap,
    /** By process; those of this host have none. */
    private readonly links: readonly (Link | undefined)[],
  ) {
    super(self, arena, map);
    this.losses = new Uint32Array(map.hosts + map.layout.sizes.clients);
  }

  override write(
    peer: ProcessId,
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
    if (!this.canPost(link, peer, guard, tag)) return;
    const at = this.regions[peer]! + to;
    link.write(this.self, peer, at, source, from, count, guard, tag);
  }

  override writeWord(peer: ProcessId, to: number, value: number, guard: number, tag: number): void {
    if (this.links[peer] === undefined) {
      super.writeWord(peer, to, value, guard, tag);
      return;
    }
    this.word[0] = value;
    this.write(peer, to, this.word, 0, 1, guard, tag);
  }

  private readonly word = new Int32Array(1);

  override read(
    peer: ProcessId,
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
    if (!this.canPost(link, peer, OPEN, tag)) return;
    link.read(this.self, peer, this.regions[peer]! + at, count, into, intoAt, tag);
  }

  override hurry(peer: ProcessId): void {
    this.links[peer]?.hurry();
  }

  override wake(peer: ProcessId, urgent: boolean): void {
    const link = this.links[peer];
    if (link === undefined) super.wake(peer, urgent);
    else link.wake(peer, urgent);
  }

  override poll(): boolean {
    if (super.poll()) return true;
    const { told, completion } = this;
    if (told.isEmpty) return false;
    const row = told.first;
    completion.peer = told.get(row, TOLD.peer);
    completion.tag = told.get(row, TOLD.tag);
    completion.guard = told.get(row, TOLD.guard);
    completion.outcome = OUTCOMES[told.get(row, TOLD.outcome)]!;
    told.shift();
    if (completion.outcome === 'lost') this.losses[this.links[completion.peer]!.host]!--;
    return true;
  }

  /** A link tells what became of something that was posted. */
  tell(peer: ProcessId, tag: number, guard: number, outcome: Outcome): void {
    const { told } = this;
    const row = told.add();
    told.set(row, TOLD.peer, peer);
    told.set(row, TOLD.tag, tag);
    told.set(row, TOLD.guard, guard);
    told.set(row, TOLD.outcome, OUTCOMES.indexOf(outcome));
    if (outcome === 'lost') this.losses[this.links[peer]!.host]!++;
    super.wake(this.self, true);
  }

  /** Otherwise it is lost, and that is told if it matters. */
  private canPost(link: Link, peer: ProcessId, guard: number, tag: number): boolean {
    if (link.isOpen && this.losses[link.host] === 0) return true;
    if (isTold(guard, tag)) this.tell(peer, tag, guard, 'lost');
    return false;
  }
}
