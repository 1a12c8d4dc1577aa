/**
 * One host's side of a recovery (recovery.ts): answers asks from its journal, and makes what a replica starts from.
 *
 * Invariants: the promised era never goes back. Once it is durable, this host takes nothing of lower eras. Older eras are
 * removed only once a later one is marked as open, and present here in all groups of this host.
 */
import { assert } from '../protocol/assert.js';
import { MESSAGE, PARENT, SOURCE } from '../protocol/layout.js';
import { WIDE } from '../protocol/wide.js';
import {
  type Cut,
  type Entries,
  type EntriesAsk,
  type GroupPlan,
  NO_ERA,
  type SnapshotPiece,
} from './recovery-asks.js';
import type { GroupSequence, JournalEntry } from './sequence.js';

/** Words of entries, or of a snapshot, in one answer; unless one entry is larger. */
const ANSWER_WORDS_MAX = 262_144;
/** Words of entries that are looked at for one answer. */
const SCAN_WORDS_MAX = 16_777_216;

/** @internal What a replica starts from: a state, and the entries to deliver after it. */
export interface ReplicaStart {
  /** Undefined: the service starts as it is. */
  readonly snapshot?: Int32Array | undefined;
  readonly entries: Iterable<JournalEntry>;
  /** Begins a new era after the last entry: log indices start again, and all sessions have ended. */
  readonly opensEra: boolean;
}

/**
 * @internal What opens an era. Replays the host's own journal as far as possible.
 * @param own  what the host itself has in the era that the plan starts from
 * @param source  what the host has that the plan names; not called unless it is needed
 */
export function startOfEra(
  plan: GroupPlan,
  own: GroupSequence | undefined,
  source: () => GroupSequence,
): ReplicaStart {
  if (plan.fromEra === NO_ERA) return { entries: appended(plan), opensEra: true };
  const base = own !== undefined && isBase(plan, own) ? own : source();
  return { snapshot: base.readSnapshot(), entries: planned(plan, base, source), opensEra: true };
}

/** @internal What the host lacks of the plan: the entries from this index on; all, with the snapshot, if it is undefined. */
export function lackedFrom(plan: GroupPlan, own: GroupSequence | undefined): number | undefined {
  return own !== undefined && isBase(plan, own) ? Math.min(own.end, plan.keepBelow) : undefined;
}

/** Does it begin before the end, and reach as far as the source still has entries? */
function isBase({ keepFrom, keepBelow }: GroupPlan, own: GroupSequence): boolean {
  return own.snapshotIndex <= keepBelow && own.end >= keepFrom;
}

/** @internal For a host that starts again within its era: all that its journal has. */
export function startWithinEra(sequence: GroupSequence): ReplicaStart {
  const entries = sequence.entries(sequence.snapshotIndex);
  return { snapshot: sequence.readSnapshot(), entries, opensEra: false };
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

/** The entries `from` to `below - 1`, as far as the sequence has them. */
function* between(sequence: GroupSequence, from: number, below: number): Iterable<JournalEntry> {
  assert(from >= sequence.snapshotIndex, 'a sequence has the entries after its snapshot');
  if (from >= below) return;
  for (const entry of sequence.entries(from)) {
    if (entry.index >= below) return;
    yield entry;
  }
}

function* appended({ keepBelow, append }: GroupPlan): Iterable<JournalEntry> {
  for (const [i, body] of append.entries()) {
    yield { index: keepBelow + i, words: body, at: 0, count: body.length };
  }
}

/** @internal Answers a `CutAsk`. */
export function cutOf(sequence: GroupSequence, parentEnd: number): Cut {
  let nextFromParent = sequence.snapshotFromParent;
  for (const entry of sequence.entries(sequence.snapshotIndex)) {
    const index = parentIndexOf(entry);
    if (index === undefined) continue;
    if (index >= parentEnd) return { end: entry.index, nextFromParent };
    nextFromParent = index + 1;
  }
  return { end: sequence.end, nextFromParent };
}

/** The index in the parent's log, if the entry has come from the parent. */
function parentIndexOf({ words, at, count }: JournalEntry): number | undefined {
  const source = at + count - SOURCE.words;
  if (words[source + SOURCE.id] !== PARENT) return undefined;
  return words[source + SOURCE.nextPosition] * WIDE + (words[source + SOURCE.number] >>> 0);
}

/** @internal Answers an `EntriesAsk`. */
export function entriesOf(
  sequence: GroupSequence,
  { from, below, reach }: Pick<EntriesAsk, 'from' | 'below' | 'reach'>,
): Entries {
  const entries: { index: number; body: Int32Array }[] = [];
  let answered = 0;
  let scanned = 0;
  for (const entry of between(sequence, from, below)) {
    const { index, words, at, count } = entry;
    if (answered + count > ANSWER_WORDS_MAX && answered > 0) return { entries, next: index };
    if (scanned > SCAN_WORDS_MAX) return { entries, next: index };
    scanned += count;
    if (reach !== undefined && !meets(entry, reach)) continue;
    entries.push({ index, body: words.slice(at, at + count) });
    answered += count;
  }
  return { entries, next: below };
}

function meets({ words, at }: JournalEntry, reach: { low: number; high: number }): boolean {
  const low = words[at + MESSAGE.destinationsLow] & reach.low;
  const high = words[at + MESSAGE.destinationsHigh] & reach.high;
  return (low | high) !== 0;
}

/** @internal Answers a `SnapshotAsk`. */
export function pieceOf(sequence: GroupSequence, offset: number): SnapshotPiece {
  const words = sequence.readSnapshot() ?? new Int32Array(0);
  return { words: words.slice(offset, offset + ANSWER_WORDS_MAX), totalWords: words.length };
}
