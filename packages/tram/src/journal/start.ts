/**
 * What a replica starts from: at the beginning of an era, as the recovery has planned it; or within its era, all that the
 * journal of its host has.
 */
import type { Start } from '../protocol/member.js';
import { type GroupPlan, NO_ERA } from './recovery-asks.js';
import { between, type GroupSequence, type JournalEntry } from './sequence.js';

/** @internal */
export interface ReplicaStart extends Start {
  /** How many entries there are. */
  readonly count: number;
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
  const { fromEra, keepBelow, append } = plan;
  if (fromEra === NO_ERA) {
    return { entries: appended(plan), count: append.length, opensEra: true };
  }
  const base = baseOf(plan, own) ?? source();
  return {
    snapshot: base.readSnapshot(),
    entries: planned(plan, base, source),
    count: keepBelow - base.snapshotIndex + append.length,
    opensEra: true,
  };
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
  const { snapshotIndex, end } = sequence;
  return {
    snapshot: sequence.readSnapshot(),
    entries: sequence.entries(snapshotIndex),
    count: end - snapshotIndex,
    opensEra: false,
  };
}

function* planned(
  plan: GroupPlan,
  base: GroupSequence,
  source: () => GroupSequence,
): Iterable<JournalEntry> {
  const { keepBelow } = plan;
  yield* between(base, base.snapshotIndex, keepBelow);
  if (base.end < keepBelow) yield* between(source(), base.end, keepBelow);
  yield* appended(plan);
}

function* appended({ keepBelow, append }: GroupPlan): Iterable<JournalEntry> {
  for (const [i, body] of append.entries()) {
    yield { index: keepBelow + i, words: body, at: 0, count: body.length };
  }
}
