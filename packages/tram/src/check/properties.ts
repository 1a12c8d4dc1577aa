/**
 * The specification: the properties that are judged, their definitions, and the form of a verdict.
 * Each property has a file that decides it; `witness.ts` describes violations in words.
 *
 * Paper §2.2 defines the first five properties and §2.3 defines partial genuineness. FIFO order is a
 * guarantee of TRAM, and so are real-time order and durability in runs that promise them.
 *
 * Terms:
 * - An *incarnation* is one run of a replica, from a start to the next crash.
 * - The *sequence* of a replica is what it delivers in one incarnation, in order. A snapshot counts as
 *   the deliveries that it covers. Properties are *uniform*: the sequences of earlier incarnations and
 *   of crashed replicas count too.
 * - A *power cut* ends all replicas and clients at once. The cluster then recovers from its journals, into
 *   a new *era*. What a group recovers, followed by what it delivers in the new era, is its *order*. What a
 *   replica has delivered beyond that in earlier eras is *undone*: only integrity, genuineness and the
 *   order among the members of its group in that era are judged on it.
 * - A replica is *correct* if it is up at the end of the history. It must then have delivered, in its
 *   last incarnation, what validity and agreement require. A client is correct if it did not crash and its
 *   era is the last.
 * - Order is judged on *sound* deliveries: the first delivery of each message in a sequence, at a
 *   destination. Any other delivery violates integrity and is reported there.
 * - A reply counts from when its client has received it. The events of one client happened in the order
 *   in which they are recorded. Events of two clients are compared by their times, if both read the same
 *   clock; with equal times, neither is before the other.
 */

export const PROPERTIES = [
  'validity',
  'uniform-agreement',
  'uniform-integrity',
  'uniform-prefix-order',
  'uniform-acyclic-order',
  'partial-genuineness',
  'fifo-order',
  'real-time-order',
  'durability',
] as const;

export type Property = (typeof PROPERTIES)[number];

export const DEFINITIONS: Readonly<Record<Property, string>> = {
  validity:
    'If a correct client multicasts m, every correct replica of every destination of m eventually delivers m.',
  'uniform-agreement':
    'If any replica delivers m, even one that crashes later, every correct replica of every destination of m eventually delivers m.',
  'uniform-integrity':
    'A replica delivers m at most once per incarnation, only if its group is a destination of m, and only if m was multicast before.',
  'uniform-prefix-order':
    'If replica p delivers m, replica q delivers another message m′, and both messages are addressed to the groups of both replicas, then p delivers m′ before m or q delivers m before m′.',
  'uniform-acyclic-order': 'The relation "some replica delivers m before m′" has no cycle.',
  'partial-genuineness':
    'If m is addressed to a single group, no other group orders or delivers m.',
  'fifo-order':
    'If a client multicasts m before m′, both have the same entry group and both are addressed to group g, a replica of g delivers m′ only after m.',
  'real-time-order':
    'The relation "some replica delivers m before m′, or a reply to m is received before m′ is multicast" has no cycle.',
  durability:
    'A power cut does not undo what a reply to m has shown: neither m, at any destination, nor what the replying group has delivered before m. A message that it undoes at one destination, it undoes at all.',
};

/** The outcome of a property that is promised. `unknown`: the history does not contain enough to decide. */
export type Outcome = 'holds' | 'violated' | 'unknown';

/** A replica delivers `before` before `after`. */
export interface DeliveredStep {
  readonly before: string;
  readonly after: string;
  readonly replica: string;
}

/** A client receives the reply of a group to `before`; then a client, the same or another, multicasts `after`. */
export interface RealTimeStep {
  readonly before: string;
  readonly after: string;
  readonly answeredBy: number;
  readonly receivedBy: string;
  /** On the clock of the client, like `multicastUs`; `undefined` if the history has no times. */
  readonly receivedUs: number | undefined;
  readonly multicastBy: string;
  readonly multicastUs: number | undefined;
}

/** The evidence, for programs. Names are those of the trace; an `index` counts from 0. */
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
      /** One group, or two groups of which the common messages are compared. */
      readonly groups: readonly [number] | readonly [number, number];
      /** Where the two sequences of compared messages first differ. */
      readonly index: number;
      readonly one: { readonly replica: string; readonly message: string };
      readonly other: { readonly replica: string; readonly message: string };
    }
  | {
      readonly property: 'uniform-acyclic-order';
      /** The `after` of each step is the `before` of the next; the last step closes the cycle. */
      readonly cycle: readonly DeliveredStep[];
    }
  | {
      readonly property: 'partial-genuineness';
      readonly message: string;
      readonly destination: number;
      readonly group: number;
      /** The replica that delivered the message; absent if the group only ordered it. */
      readonly replica?: string;
    }
  | {
      readonly property: 'fifo-order';
      readonly client: string;
      readonly entryGroup: number;
      readonly replica: string;
      readonly delivered: string;
      /** The message that was multicast before `delivered`, but not delivered before it. */
      readonly skipped: string;
    }
  | {
      readonly property: 'real-time-order';
      /** As above. */
      readonly cycle: readonly (DeliveredStep | RealTimeStep)[];
    }
  | {
      readonly property: 'durability';
      readonly kind: 'lost';
      readonly message: string;
      readonly client: string;
      readonly answeredBy: number;
      readonly missingIn: number;
    }
  | {
      readonly property: 'durability';
      readonly kind: 'undone';
      readonly message: string;
      readonly client: string;
      readonly group: number;
      /** The first delivery of the group that was undone: `before` the power cut, and `after` it, if there is one. */
      readonly index: number;
      readonly before: string;
      readonly after?: string;
      /** A replica that has `after`. */
      readonly replica?: string;
    }
  | {
      readonly property: 'durability';
      readonly kind: 'half';
      readonly message: string;
      readonly keptBy: number;
      readonly missingIn: number;
    };

export type PropertyVerdict =
  | { readonly property: Property; readonly outcome: 'holds' }
  | { readonly property: Property; readonly outcome: 'unknown'; readonly reason: string }
  | {
      readonly property: Property;
      readonly outcome: 'violated';
      /** The violation in one sentence. */
      readonly witness: string;
      readonly violation: Violation;
    }
  | {
      readonly property: Property;
      /** The run does not promise the property, so a violation is no failure. */
      readonly outcome: 'not-promised';
      readonly witness?: string;
      readonly violation?: Violation;
    };
