/**
 * What the fingerprint of a state leaves out, and why that is sound: two states that differ only there have the same
 * future. `verify.ts` checks that it is so.
 */
import { FRAME_WORDS } from 'tram-multicast/internal/memory/record.js';
import { ROW } from 'tram-multicast/internal/protocol/layout.js';

/** By class and field, the reason. What can be reached only through such a field is left out too. */
export type Reasons = Readonly<Record<string, Readonly<Record<string, string>>>>;

export const UNOBSERVED: Reasons = {
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

export function isUnobserved(owner: object, field: string | number, also: Reasons = {}): boolean {
  const { name } = owner.constructor;
  return UNOBSERVED[name]?.[field] !== undefined || also[name]?.[field] !== undefined;
}
