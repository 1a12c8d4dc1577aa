/**
 * Replays what the groups of a host start an era with, as a host does that opens the era: a replica of each group begins from it,
 * and its state is the opening snapshot. Called by `durable-host.ts`.
 */
import { type ReplicaStart, replayTogether } from 'tram-multicast/internal/journal/start.js';
import {
  type Edges,
  type GroupJournal,
  NO_OBSERVER,
} from 'tram-multicast/internal/protocol/edges.js';
import { Layout } from 'tram-multicast/internal/protocol/layout.js';
import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { Replica } from 'tram-multicast/internal/protocol/replica.js';
import type { Replay } from './eras.js';
import { firstKeyOf } from './first-key.js';
import type { Plan } from './plan.js';
import { Random } from './random.js';
import { Service } from './service.js';
import { SimulatedFabric } from './simulated-memory.js';
import { digestOf } from './state.js';

const nothing = (): void => undefined;

/** Nothing is handed over while a replica begins. */
const NO_JOURNAL: GroupJournal = {
  isAwaited: false,
  next: 0,
  durable: 0,
  wantsSnapshot: false,
  wantsMark: false,
  isBusy: false,
  awaitsMark: false,
  heldMark: 0,
  hasRoom: () => true,
  hasRoomForPiece: () => true,
  add: nothing,
  leaveOut: nothing,
  beginSnapshot: nothing,
  addPiece: nothing,
  endSnapshot: nothing,
  dropSnapshot: nothing,
  stable: nothing,
  mark: nothing,
  complete: nothing,
};

/** Whether and how calls end is checked in the era in which they wait. */
const NO_DEFERRALS = { deferred: nothing, answered: nothing, abandoned: nothing };

export interface ReplayedGroup {
  readonly group: number;
  readonly snapshot: Int32Array;
  readonly lastSession: number;
}

/** @param replayOf  follows the replay of a group */
export function replayGroups(
  plan: Plan,
  starts: readonly ReplicaStart[],
  replayOf: (group: number) => Replay,
): ReplayedGroup[] {
  const begun = starts.map(({ group }) => {
    const replay = replayOf(group);
    const service = new Service(plan, replay, NO_DEFERRALS, group, 0, nothing, nothing);
    const identity = { group, member: 0, incarnation: 1, firstKey: firstKeyOf(1) };
    const edges = edgesOf(plan, group);
    const replica = new Replica({ ...identity, past: 'none' }, edges, service, 0);
    return { group, replica, replay, service };
  });
  const replicas = begun.map(({ replica }) => replica);
  for (const _ of replayTogether(starts, replicas));
  return begun.map(({ group, replica, replay, service }) => {
    const { member } = replica;
    replay.end(member.deliveries, digestOf(member, service));
    const lastSession = Math.max(0, ...member.waiting.firstLive.map((first) => first - 1));
    return { group, snapshot: replica.takeSnapshot(), lastSession };
  });
}

/** A replica that only begins uses nothing but its own memory. */
function edgesOf({ sizes, parents, weather, timing, pace, order }: Plan, group: number): Edges {
  const layout = new Layout(sizes);
  const participants = sizes.groups * sizes.replicas + sizes.clients;
  const fabric = new SimulatedFabric(participants, weather, new Random(0));
  return {
    memory: fabric.start(layout.replicaParticipant(group, 0), layout.replicaRegionWords),
    journal: NO_JOURNAL,
    layout,
    overlay: new Overlay(parents),
    timing,
    pace,
    order,
    observer: { ...NO_OBSERVER, failed: nothing },
    wallClockUs: () => 0,
    monotonicUs: () => 0,
    hasSessionEnded: () => false,
  };
}
