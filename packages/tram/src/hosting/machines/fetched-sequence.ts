/**
 * What another host's journal has of a group, fetched from that host for a recovery. A host that lacks some of what an era
 * begins with fetches it before its replicas replay it. It is held in memory: a snapshot, and the entries that follow it.
 */
import { PackedEntries } from '../../journal/packed-entries.js';
import type { Ask, Entries, GroupPlan, SnapshotPiece } from '../../journal/recovery-asks.js';
import type { GroupSequence } from '../../journal/sequence.js';

/** Undefined: the host can't be had. */
export type AskHost = (ask: Ask) => Promise<unknown>;

/**
 * @param from  the first entry that is needed; undefined: all, and the snapshot before them
 * @returns undefined if the host of the plan can't be had
 */
export async function fetchSequence(
  plan: GroupPlan,
  from: number | undefined,
  askHost: AskHost,
): Promise<GroupSequence | undefined> {
  const snapshot = from === undefined ? await fetchSnapshot(plan, askHost) : undefined;
  if (from === undefined && snapshot === undefined) return undefined;
  const first = from ?? plan.keepFrom;
  const store = await fetchEntries(plan, first, askHost);
  if (store === undefined) return undefined;
  return {
    group: plan.group,
    snapshotIndex: first,
    snapshotFromParent: first,
    isFirst: snapshot?.length === 0,
    end: plan.keepBelow,
    readSnapshot: () => (snapshot?.length === 0 ? undefined : snapshot),
    store,
  };
}

async function fetchSnapshot(
  { source: host, group, fromEra: era, keepFrom: snapshotIndex }: GroupPlan,
  askHost: AskHost,
): Promise<Int32Array | undefined> {
  let words: Int32Array | undefined;
  let offset = 0;
  do {
    const ask = { what: 'snapshot', host, group, era, snapshotIndex, offset } as const;
    const piece = (await askHost(ask)) as SnapshotPiece | undefined;
    if (piece === undefined) return undefined;
    words ??= new Int32Array(piece.totalWords);
    words.set(piece.words, offset);
    offset += piece.words.length;
  } while (offset < words.length);
  return words;
}

async function fetchEntries(
  { source: host, group, fromEra: era, keepFrom: snapshotIndex, keepBelow: below }: GroupPlan,
  first: number,
  askHost: AskHost,
): Promise<PackedEntries | undefined> {
  const fetched = new PackedEntries(group, first);
  for (let from = first; from < below; ) {
    const ask = { what: 'entries', host, group, era, snapshotIndex, from, below } as const;
    const answer = (await askHost(ask)) as Entries | undefined;
    if (answer === undefined) return undefined;
    fetched.add(answer.entries.map(({ body }) => body));
    from = answer.next;
  }
  return fetched;
}
