/**
 * A scope: a small cluster in a certain state, and all that may happen to it. Members have letters, in the order of
 * groups and members (A, B, C are group 0), and clients have the letters after them.
 */
import type { Reasons } from './unobserved.js';

/** So often, and to these participants. */
export interface Allowance {
  readonly who: string;
  readonly times: number;
}

/** Messages of a client that has gone. They lie in the inboxes of some members of their entry group. */
export interface Placed {
  /** Each letter is the name of a message. */
  readonly names: string;
  readonly to: readonly number[];
  /** The members that have them. */
  readonly at: string;
  /** Do they arrive by actions, each at all members at once? Else they are there when the search begins. */
  readonly arrives?: boolean;
}

export interface Scope {
  readonly name: string;
  readonly title: string;
  /** It takes too long to be explored unless it is named. */
  readonly isLong?: boolean;
  /** Group 1, if there is one, is the child of group 0. */
  readonly groups: 1 | 2;
  /** Members of each group: 3 if nothing else is said. */
  readonly replicas?: 3 | 5;
  /** The size of the log, if it is to fill up. An entry takes 72 bytes, and 256 are the least. */
  readonly logBytes?: number;
  /** Messages that everybody has delivered before the search begins. */
  readonly delivered?: readonly { readonly name: string; readonly to: readonly number[] }[];
  readonly placed: readonly Placed[];
  /**
   * Participants whose steps are free: a step is an action. All others are *prompt*: after whatever concerns them they
   * take steps until nothing changes any more, unless they pause.
   */
  readonly freeSteps?: string;
  /**
   * Links on which operations land as soon as they are posted, as pairs of letters: AB is the link from A to B. On all
   * others, when an operation lands is an action.
   */
  readonly directLinks?: readonly string[];
  /** Prompt participants that pause and go on. */
  readonly pauses?: Allowance;
  /** Each letter is one campaign of this member. */
  readonly campaigns?: string;
  /** Members that are killed between two steps and resume with the memory that they left. */
  readonly resumes?: Allowance;
  /** Members that stop in an orderly way, and resume with their memory and the snapshot that they left. */
  readonly leaves?: Allowance;
  /** Members that are killed within a step, and resume. */
  readonly deaths?: Allowance;
  /** Members that lose their memory and restart. */
  readonly restarts?: Allowance;
  /** Participants for which time passes: they send a heartbeat, read rows, ask again, resend. */
  readonly beats?: Allowance;
  /** Links that break, as pairs of letters: AB is the link from A to B. */
  readonly breaks?: { readonly links: readonly string[]; readonly times: number };
  /** Clients that have sent some messages to these groups, crash, and whose slot a new session takes, which does the same. */
  readonly sessions?: Allowance & { readonly to: readonly number[]; readonly messages: 1 | 2 };
  /** Links on which a write that needs no permission lands in two parts, as pairs of letters. */
  readonly torn?: readonly string[];
  /** May a network stop writes that are refused? Else they leave their bytes behind. */
  readonly stops?: boolean;
  /** What the fingerprint leaves out in this scope, besides what it always does, and why. */
  readonly unobserved?: Reasons;
}
