/**
 * The specification: which properties are judged, what each demands, and what a verdict looks like.
 * How they are decided is in a file per property; how a violation is told is in `witness.ts`.
 *
 * Five properties are the paper's (§2.2), partial genuineness is its §2.3, FIFO is our own promise.
 *
 * Terms. A replica's *sequence* is what it delivered in one life, in order, what it restored from a
 * snapshot first. The sequences of lives that ended, and of replicas that crashed, count as well:
 * that is what "uniform" means. A replica is *correct* if it is up at the end of the history, and
 * has then to account for its present life. Order is judged on sound deliveries: the first of each
 * message in a sequence, at a destination. What is left out violates integrity, which says so.
 */

export const PROPERTIES = [
  'validity',
  'uniform-agreement',
  'uniform-integrity',
  'uniform-prefix-order',
  'uniform-acyclic-order',
  'partial-genuineness',
  'fifo-order',
] as const;

export type Property = (typeof PROPERTIES)[number];

export const DEFINITIONS: Readonly<Record<Property, string>> = {
  validity:
    'A message multicast by a client that did not crash is delivered by every correct replica of every destination.',
  'uniform-agreement':
    'A message delivered by any replica, even one that crashed later, is delivered by every correct replica of every destination.',
  'uniform-integrity':
    'A replica delivers a message at most once in a life, only at a destination, and only after it was multicast.',
  'uniform-prefix-order':
    'Of the messages addressed to both of two groups (or to one and the same), the sequence at any replica of one is a prefix of that at any replica of the other, or the reverse.',
  'uniform-acyclic-order': 'The relation "some replica delivered a before b" has no cycle.',
  'partial-genuineness':
    'A message addressed to exactly one group is ordered or delivered by no other group.',
  'fifo-order':
    "Of one client's messages with the same entry group, every group delivers those addressed to it in the order of their multicast, without a gap.",
};

/** A violation dominates; `unknown` means that the history does not say enough to tell. */
export type Outcome = 'holds' | 'violated' | 'unknown';

/** The evidence, for programs. Names are the trace's own; an `index` counts from 0. */
export type Violation =
  | {
      readonly property: 'validity';
      readonly message: string;
      readonly client: string;
      readonly missingAt: string;
    }
  | {
      readonly property: 'uniform-agreement';
      readonly message: string;
      readonly deliveredAt: string;
      readonly missingAt: string;
    }
  | {
      readonly property: 'uniform-integrity';
      readonly kind: 'delivered-twice' | 'never-multicast' | 'before-multicast';
      readonly message: string;
      readonly replica: string;
    }
  | {
      readonly property: 'uniform-integrity';
      readonly kind: 'not-a-destination';
      readonly message: string;
      readonly replica: string;
      readonly destinations: readonly number[];
    }
  | {
      readonly property: 'uniform-integrity';
      readonly kind: 'restored-unknown';
      readonly replica: string;
      readonly group: number;
      readonly restored: number;
      readonly deliveredByGroup: number;
    }
  | {
      readonly property: 'uniform-prefix-order';
      /** One group, or the two whose common messages are compared. */
      readonly groups: readonly [number] | readonly [number, number];
      /** Where the two sequences first differ, among the messages compared. */
      readonly index: number;
      readonly one: { readonly replica: string; readonly message: string };
      readonly other: { readonly replica: string; readonly message: string };
    }
  | {
      readonly property: 'uniform-acyclic-order';
      /** Each step's `after` is the next step's `before`; the last one closes the cycle. */
      readonly cycle: readonly {
        readonly before: string;
        readonly after: string;
        readonly replica: string;
      }[];
    }
  | {
      readonly property: 'partial-genuineness';
      readonly message: string;
      readonly destination: number;
      readonly group: number;
      /** The replica that delivered it; absent if the group only ordered it. */
      readonly replica?: string;
    }
  | {
      readonly property: 'fifo-order';
      readonly client: string;
      readonly entry: number;
      readonly replica: string;
      readonly delivered: string;
      /** Multicast before `delivered`, and not delivered before it. */
      readonly skipped: string;
    };

export type PropertyVerdict =
  | { readonly property: Property; readonly outcome: 'holds' }
  | { readonly property: Property; readonly outcome: 'unknown'; readonly reason: string }
  | {
      readonly property: Property;
      readonly outcome: 'violated';
      /** One to three lines of words. */
      readonly witness: string;
      readonly violation: Violation;
    };
