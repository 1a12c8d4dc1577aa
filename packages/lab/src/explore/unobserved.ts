/**
 * What the fingerprint of a state leaves out, and why that is sound: two states that differ only there have the same
 * future. `verify.ts` checks that it is so.
 */
import { FRAME_WORDS } from 'tram-multicast/internal/memory/record.js';
import { ROW } from 'tram-multicast/internal/protocol/layout.js';
import type { Replica } from 'tram-multicast/internal/protocol/replica.js';

/** By class and field, the reason. What can be reached only through such a field is left out too. */
export type Reasons = Readonly<Record<string, Readonly<Record<string, string>>>>;

export const UNOBSERVED: Reasons = {
  Rows: {
    news: 'it is only compared with `seenNews`, and the result of that is in the fingerprint',
  },
  Replica: { seenNews: 'it is only compared with `news`' },
  Forwarding: { seenNews: 'it is only compared with `news`' },
  OwnRow: {
    publications: 'it only numbers the rows, and no reader looks at their numbers',
  },
  Replication: {
    control: 'every word that is posted is set before',
    held: 'it is filled before it is read',
    rounds: 'it only decides which posts are urgent, and posts land when the explorer says so',
  },
  Peer: {
    buffer:
      'it is read only when a read into it completes, and the completion stands for what was read',
  },
  Takeover: {
    recheckPeers:
      'what counts is a row that was just read; incarnation and promise in it never go back',
  },
  Adoption: { row: 'what counts is a row that was just read' },
  Truncation: { deliveredBy: 'it is filled before it is read' },
  Delivering: {
    stretch: 'it is filled before it is read',
    message: 'it shows an entry of the stretch, and is set before it is read',
  },
  SlotReader: {
    copy: 'it is read only in the step that has filled it',
    copied: 'it is a window to the copy',
  },
  SlotWriter: {
    window: 'every word that is posted is set before',
    body: 'it is a part of the window',
  },
};

/**
 * The words of a row that follow from its number, which no reader looks at: the number, the check and the tail. A row
 * lands whole, so its check holds whatever its number is.
 */
export const ROW_NUMBER_WORDS: readonly number[] = [2, 3, ROW.words + FRAME_WORDS - 1];

/** The parts of a replica that say which news its leader has seen, and which its feeds. */
interface NewsReader {
  readonly rows: { readonly news: number };
  readonly seenNews: number;
  readonly leader: { readonly forwarding: { readonly seenNews: number } };
}

/**
 * Which parts of a replica have not seen its news, as a set of bits. News are counted, and counts that were seen are never
 * ahead. So a part that has seen all does so until the next news, and one that has not can't become equal by news.
 */
export function unseenNews(replica: Replica): number {
  const { rows, seenNews, leader } = replica as unknown as NewsReader;
  const isUnseen = (seen: number): number => (seen === rows.news ? 0 : 1);
  return (isUnseen(seenNews) << 1) | isUnseen(leader.forwarding.seenNews);
}

export function isUnobserved(owner: object, field: string | number, also: Reasons = {}): boolean {
  const { name } = owner.constructor;
  return UNOBSERVED[name]?.[field] !== undefined || also[name]?.[field] !== undefined;
}
