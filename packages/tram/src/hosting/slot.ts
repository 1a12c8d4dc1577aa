/**
 * Client slots: a client takes a free slot when it connects and releases it when it closes. With
 * `memory: 'processes'` a lock holds the slot, and the kernel releases it with the client's process.
 */
import { TramError } from '../errors.js';
import { ARENA, OWNER, PARTICIPANT } from '../memory/arena.js';
import type { ParticipantId } from '../memory/contract.js';
import type { ArenaFile } from '../memory/processes/arena-file.js';
import { beginIncarnation } from '../memory/shared.js';
import type { ClusterContext } from './cluster-context.js';

export interface ClientSlot {
  readonly slot: number;
  readonly participant: ParticipantId;
  /** Higher than the session of every earlier holder of the slot. */
  readonly session: number;
  release(): void;
}

export function takeSlot(context: ClusterContext): ClientSlot {
  const { arena, map, layout } = context;
  const { clients } = layout.sizes;
  for (let slot = 0; slot < clients; slot++) {
    const participant = layout.clientParticipant(slot);
    const release = 'lockHost' in arena ? lock(context, slot) : claim(context, participant);
    if (release === undefined) continue;
    beginIncarnation(arena, map, participant, false);
    const session = Atomics.add(arena.words, ARENA.sessions, 1) + 1;
    return { slot, participant, session, release };
  }
  throw new TramError('TRAM_NO_CLIENT_SLOT', `all ${clients} client slots are taken`, {
    hint: 'Close a client that is not needed, or start the cluster with a larger `clients`.',
  });
}

function lock({ arena, map }: ClusterContext, slot: number): (() => void) | undefined {
  const file = arena as ArenaFile;
  try {
    const held = file.lockHost(map.hosts + slot, 0);
    return () => held.release();
  } catch (error) {
    if (error instanceof TramError && error.code === 'TRAM_HOST_RUNNING') return undefined;
    throw error;
  }
}

function claim(
  { arena, map }: ClusterContext,
  participant: ParticipantId,
): (() => void) | undefined {
  const owner = map.participant(participant) + PARTICIPANT.owner;
  const before = Atomics.compareExchange(arena.words, owner, OWNER.nobody, OWNER.present);
  if (before !== OWNER.nobody) return undefined;
  return () => {
    Atomics.store(arena.words, owner, OWNER.nobody);
  };
}

/**
 * Has this session of a client slot ended? Asked after a replica has delivered a message of the session. True only if it is
 * certain that its client takes no more replies. With `memory: 'machines'`, a host knows it once the client has closed, or
 * once the next client of the slot has connected.
 */
export function hasSessionEnded(context: ClusterContext, slot: number, session: number): boolean {
  const { arena, map, layout, network } = context;
  const line = map.participant(layout.clientParticipant(slot));
  const wordAt = (offset: number): number => Atomics.load(arena.words, line + offset);
  if (network !== undefined) return wordAt(PARTICIPANT.endedSession) >= session;
  // A client takes the slot first, and has a session afterwards.
  const isFree =
    'isHostLocked' in arena
      ? !(arena as ArenaFile).isHostLocked(map.hosts + slot)
      : wordAt(PARTICIPANT.owner) === OWNER.nobody;
  return isFree || wordAt(PARTICIPANT.session) > session;
}
