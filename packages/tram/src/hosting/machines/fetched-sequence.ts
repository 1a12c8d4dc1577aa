/**
 * What another host's journal has of a group, fetched from that host for a recovery. A host that lacks some of what an era
 * begins with fetches it before its replicas replay it. It is held in memory: a snapshot, and the entries that follow it.
 */
import type { Ask, Entries, GroupPlan, SnapshotPiece } from '../../journal/recovery-asks.js';
import type { GroupSequence, JournalEntry } from '../../journal/sequence.js';

/** Undefined: the host can't be had. */
export type AskHost = (ask: Ask) => Promise<unknown>;

/** Entries without a gap, packed: `words, body…`. */
interface Packed {
  readonly first: number;
  readonly end: number;
  readonly words: Int32Array;
}

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
  const parts = await fetchEntries(plan, first, askHost);
  if (parts === undefined) return undefined;
  return {
    snapshotIndex: first,
    snapshotFromParent: first,
    isFirst: snapshot?.length === 0,
    end: plan.keepBelow,
    readSnapshot: () => (snapshot?.length === 0 ? undefined : snapshot),
    entries: (index) => unpack(parts, index),
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
): Promise<Packed[] | undefined> {
  const parts: Packed[] = [];
  for (let from = first; from < below; ) {
    const ask = { what: 'entries', host, group, era, snapshotIndex, from, below } as const;
    const answer = (await askHost(ask)) as Entries | undefined;
    if (answer === undefined) return undefined;
    parts.push(pack(answer, from));
    from = answer.next;
  }
  return parts;
}

function pack({ entries, next }: Entries, first: number): Packed {
  const total = entries.reduce((sum, { body }) => sum + 1 + body.length, 0);
  const words = new Int32Array(total);
  let at = 0;
  for (const { body } of entries) {
    words[at] = body.length;
    words.set(body, at + 1);
    at += 1 + body.length;
  }
  return { first, end: next, words };
}

function* unpack(parts: readonly Packed[], from: number): Iterable<JournalEntry> {
  for (const { first, end, words } of parts) {
    if (end <= from) continue;
    let index = first;
    for (let at = 0; at < words.length; at += 1 + words[at]) {
      if (index >= from) yield { index, words, at: at + 1, count: words[at] };
      index++;
    }
  }
}
