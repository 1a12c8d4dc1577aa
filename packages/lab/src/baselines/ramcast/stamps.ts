/**
 * The timestamps that other groups' leaders have written into this replica's memory. The replica reads them up to the confirmed
 * count and adds them to the ordering. It returns their space to the writers, a quarter of a stream at a time.
 */
import { OPEN } from 'tram-multicast/internal/memory/contract.js';
import type { Clock } from './clock.js';
import type { Edges } from './edges.js';
import { STAMP, TOLD } from './layout.js';
import type { Ordering, Stamped } from './ordering.js';

export class Stamps implements Stamped {
  readonly words: Int32Array;
  /** The same memory as 64-bit numbers. */
  readonly timestamps: Float64Array;
  private readonly mask: number;
  /** By group: the number of timestamps read, and the number that its leader knows. */
  private readonly read: Int32Array;
  private readonly told: Int32Array;

  constructor(
    private readonly edges: Edges,
    private readonly group: number,
    private readonly ordering: Ordering,
    private readonly clock: Clock,
  ) {
    const { memory, layout } = edges;
    const { groups, firstIndex } = layout.sizes;
    const { own } = memory;
    this.words = own;
    this.timestamps = new Float64Array(own.buffer, own.byteOffset, own.length >> 1);
    this.mask = layout.streamWords - 1;
    this.read = new Int32Array(groups).fill(firstIndex);
    this.told = new Int32Array(groups).fill(firstIndex);
  }

  /** Reads the timestamps of all other groups. @returns their number */
  poll(): number {
    const { words, read, group } = this;
    let count = 0;
    for (let other = 0; other < read.length; other++) {
      if (other === group) continue;
      if (words[other * TOLD.words + TOLD.confirmed] !== read[other]) count += this.pollOne(other);
    }
    return count;
  }

  private pollOne(group: number): number {
    const { words, mask, ordering, clock, read } = this;
    const { memory, layout } = this.edges;
    const confirmed = words[layout.told(group) + TOLD.confirmed];
    // The timestamps were written before the count.
    memory.readFence();
    const at = layout.stream(group);
    const first = read[group];
    ordering.stamp(this, at, mask, first, confirmed);
    // The timestamps of one writer are increasing.
    const last = at + (((confirmed - 1) * STAMP.words) & mask);
    clock.observe(this.timestampAt(last));
    read[group] = confirmed;
    this.giveBack(group);
    return (confirmed - first) | 0;
  }

  // --- the own leader's timestamps, which a follower reads one by one ------------------------

  /** The place of the next timestamp of the own leader, or -1. */
  nextOwn(): number {
    const { words, mask, group } = this;
    const { memory, layout } = this.edges;
    const next = this.read[group];
    if (words[layout.told(group) + TOLD.confirmed] === next) return -1;
    memory.readFence();
    return layout.stream(group) + ((next * STAMP.words) & mask);
  }

  takeOwn(): void {
    this.read[this.group] = (this.read[this.group] + 1) | 0;
  }

  timestampAt(place: number): number {
    return this.timestamps[(place + STAMP.timestamp) >> 1];
  }

  giveBack(group: number): void {
    const { read, told, mask } = this;
    if (((read[group] - told[group]) | 0) * STAMP.words * 4 <= mask) return;
    told[group] = read[group];
    const { memory, layout } = this.edges;
    const leader = layout.leaderParticipant(group);
    memory.write(leader, layout.read(memory.self), told, group, 1, OPEN, 0);
    memory.wake(leader, true);
  }
}
