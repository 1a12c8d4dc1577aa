/**
 * Checks what members tell about the loss of their group's state (`state-loss.ts`): once they say that it is lost for good,
 * the group must never have another leader, and never deliver again. Called by `world.ts`.
 */
import { copyPart } from 'tram-multicast/internal/memory/record.js';
import { Peer, ROW_RECORD_WORDS } from 'tram-multicast/internal/protocol/leadership/row.js';
import { StateLoss } from 'tram-multicast/internal/protocol/leadership/state-loss.js';
import type { ReplicaHost } from './hosts.js';
import { SimulationFailure } from './ledger.js';
import type { World } from './world.js';

/** A look every so many heartbeats. */
const LOOK_HEARTBEATS = 3;

export class Losses {
  private nextUs = 0;
  private readonly watches: StateLoss[];
  /** By participant: its row, as read last. */
  private readonly rows = new Map<number, Peer>();
  private readonly lost = new Set<number>();

  constructor(private readonly world: World) {
    this.watches = world.plan.parents.map(() => new StateLoss());
  }

  isLost(group: number): boolean {
    return this.lost.has(group);
  }

  look(): void {
    const { world } = this;
    if (world.nowUs < this.nextUs) return;
    this.nextUs = world.nowUs + LOOK_HEARTBEATS * world.plan.timing.heartbeatUs;
    for (const [group, watch] of this.watches.entries()) {
      if (watch.look(world.members(group).map((host) => this.rowOf(host)))) this.lost.add(group);
    }
  }

  /** The group goes on: it has a new leader, or delivers an entry for the first time. */
  goesOn(group: number): void {
    if (!this.lost.has(group)) return;
    throw new SimulationFailure(
      'loss',
      `group ${group} goes on, although its state was called lost`,
    );
  }

  /** What its row shows; undefined if it is down. */
  private rowOf({ state, participant, memory, incarnation }: ReplicaHost): Peer | undefined {
    if (state === 'down') return undefined;
    const { layout } = this.world;
    const row = this.rows.get(participant) ?? new Peer(participant, layout.sizes.firstIndex);
    this.rows.set(participant, row);
    copyPart(memory.own, layout.row, row.buffer.words, 0, ROW_RECORD_WORDS);
    return row.accept() && row.incarnation === incarnation ? row : undefined;
  }
}
