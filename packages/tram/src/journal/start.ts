/**
 * What the replicas of a host start from: at the beginning of an era, as the recovery has planned it; or within their era, all that
 * the journal of their host has. All of them replay together, from one pass over the journal: each stretch of entries is read
 * once, and given to every replica of its group.
 */
import type { Replay } from '../protocol/leadership/replay.js';
import type { Replica } from '../protocol/replica.js';
import { PackedEntries } from './packed-entries.js';
import { type GroupPlan, NO_ERA } from './recovery-asks.js';
import {
  type GroupSequence,
  type GroupStretch,
  readTogether,
  type StoredSpan,
} from './sequence.js';

/** @internal What the replicas of one group start from. */
export interface ReplicaStart {
  readonly group: number;
  readonly opensEra: boolean;
  /** They restore its snapshot; undefined: the service starts as it is. */
  readonly base: GroupSequence | undefined;
  /** Then they deliver these entries, one span after the other. */
  readonly spans: readonly StoredSpan[];
}

/**
 * @internal What opens an era. Replays the host's own journal as far as possible. All sequences are parts of the group's order, so
 * it does not matter which of them count.
 * @param own  what the host itself has in the era that the plan starts from
 * @param source  what the host has that the plan names; not called unless it is needed
 */
export function startOfEra(
  plan: GroupPlan,
  own: readonly GroupSequence[],
  source: () => GroupSequence,
): ReplicaStart {
  const { group, fromEra, keepBelow, append } = plan;
  const store = new PackedEntries(group, keepBelow);
  store.add(append);
  const appended = spanOf({ group, store }, keepBelow, store.end);
  if (fromEra === NO_ERA) return { group, opensEra: true, base: undefined, spans: [appended] };
  const base = baseOf(plan, own) ?? source();
  const spans = [spanOf(base, base.snapshotIndex, Math.min(base.end, keepBelow))];
  if (base.end < keepBelow) spans.push(spanOf(source(), base.end, keepBelow));
  return { group, opensEra: true, base, spans: [...spans, appended] };
}

/** @internal What the host lacks of the plan: the entries from this index on; all, with the snapshot, if it is undefined. */
export function lackedFrom(plan: GroupPlan, own: readonly GroupSequence[]): number | undefined {
  const base = baseOf(plan, own);
  return base && Math.min(base.end, plan.keepBelow);
}

/** The longest that begins before the end of the plan, and reaches as far as the source still has entries. */
function baseOf(
  { keepFrom, keepBelow }: GroupPlan,
  own: readonly GroupSequence[],
): GroupSequence | undefined {
  return own
    .filter(({ snapshotIndex, end }) => snapshotIndex <= keepBelow && end >= keepFrom)
    .reduce<GroupSequence | undefined>(
      (best, other) => (best !== undefined && best.end >= other.end ? best : other),
      undefined,
    );
}

/** @internal For a host that starts again within its era: all that its journal has. */
export function startWithinEra(sequence: GroupSequence): ReplicaStart {
  const { group, snapshotIndex, end } = sequence;
  const spans = [spanOf(sequence, snapshotIndex, end)];
  return { group, opensEra: false, base: sequence, spans };
}

function spanOf(
  { group, store }: Pick<StoredSpan, 'group' | 'store'>,
  from: number,
  below: number,
): StoredSpan {
  return { group, store, from, below };
}

/**
 * @internal Replicas that are new begin from this. Those of a group for which there is no start lack its state.
 * @returns yields after each snapshot and after each stretch: how many entries have been replayed
 * @throws TRAM_CORRUPT; what the service throws if it can't restore a snapshot
 */
export function* replayTogether(
  starts: readonly ReplicaStart[],
  replicas: readonly Replica[],
): Generator<number, void> {
  const replays = new Map<number, Replay[]>();
  for (const { group, base, opensEra } of starts) {
    const ofGroup: Replay[] = [];
    replays.set(group, ofGroup);
    for (const replica of replicas) {
      if (replica.member.group !== group) continue;
      // Each gets a snapshot of its own: a service may keep it, and change it.
      ofGroup.push(replica.begin({ snapshot: base?.readSnapshot(), opensEra }));
      // A large state takes long to restore, and all of them together much longer than others wait for this host.
      yield 0;
    }
  }
  let replayed = 0;
  for (const stretch of stretchesOf(starts)) {
    for (const replay of replays.get(stretch.group)!) replay.deliver(stretch);
    replayed += stretch.count;
    yield replayed;
  }
  for (const ofGroup of replays.values()) for (const replay of ofGroup) replay.end();
}

/** @internal How many entries there are to replay. */
export function countOf(starts: readonly ReplicaStart[]): number {
  const spans = starts.flatMap((start) => start.spans);
  return spans.reduce((count, { from, below }) => count + below - from, 0);
}

/** @internal All entries. Those of different groups come in any order. */
export function* stretchesOf(starts: readonly ReplicaStart[]): Iterable<GroupStretch> {
  const steps = Math.max(0, ...starts.map(({ spans }) => spans.length));
  for (let step = 0; step < steps; step++) {
    yield* readTogether(starts.flatMap(({ spans }) => spans.slice(step, step + 1)));
  }
}
