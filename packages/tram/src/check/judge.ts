/** Judges a history: runs the check of every property and collects the verdicts. */

import { findAcyclicViolation } from './acyclic-order.js';
import { findAgreementViolation, findValidityViolation } from './delivery.js';
import { findDurabilityViolation } from './durability.js';
import type { TraceEvent } from './events.js';
import { judgeFifo } from './fifo.js';
import { findGenuinenessViolation } from './genuineness.js';
import { type GroupOrder, orderGroups } from './group-order.js';
import { type Counts, History } from './history.js';
import { findIntegrityViolation } from './integrity.js';
import { findPrefixViolation } from './prefix-order.js';
import {
  type Outcome,
  PROPERTIES,
  type Property,
  type PropertyVerdict,
  type Violation,
} from './properties.js';
import { countClocks, findRealTimeViolation } from './real-time-order.js';
import { describeViolation } from './witness.js';

export interface Verdict {
  /** Of the properties that are promised: `violated` if any is, else `unknown` if any is, else `holds`. */
  readonly outcome: Outcome;
  /** One verdict per property, in the order of `PROPERTIES`. */
  readonly properties: readonly PropertyVerdict[];
  readonly counts: Readonly<Counts>;
}

/** The result of one check: a violation, nothing, or the reason why the property is unknown. */
type Finding = Violation | undefined | { readonly unknown: string };

type Algorithm = (history: History, orders: readonly GroupOrder[]) => Finding;

const NOT_QUIESCENT = { unknown: 'the history does not end with "quiescent": true' };

const NO_ANSWERS = { unknown: 'the history has no "answered" events' };

const ALGORITHMS: Readonly<Record<Property, Algorithm>> = {
  validity: (history, orders) =>
    history.quiescent ? findValidityViolation(history, orders) : NOT_QUIESCENT,
  'uniform-agreement': (history, orders) =>
    history.quiescent ? findAgreementViolation(history, orders) : NOT_QUIESCENT,
  'uniform-integrity': findIntegrityViolation,
  'uniform-prefix-order': findPrefixViolation,
  'uniform-acyclic-order': findAcyclicViolation,
  'partial-genuineness': findGenuinenessViolation,
  'fifo-order': (history, orders) => {
    const { violation, complete } = judgeFifo(history, orders);
    if (violation !== undefined || complete) return violation;
    return { unknown: 'a message has no entry group, and the history has no tree ("parents")' };
  },
  'real-time-order': (history, orders) => {
    if (history.counts.answers === 0) return NO_ANSWERS;
    const clocks = countClocks(history);
    const violation = findRealTimeViolation(history, orders);
    if (violation !== undefined || clocks === 1) return violation;
    return {
      unknown: `clients read ${clocks} clocks, whose times can't be compared; within each clock the order holds`,
    };
  },
  durability: (history, orders) => {
    if (!history.quiescent) return NOT_QUIESCENT;
    const violation = findDurabilityViolation(history, orders);
    const needsAnswers = history.durabilities.includes('always') && history.counts.answers === 0;
    return violation === undefined && needsAnswers ? NO_ANSWERS : violation;
  },
};

/** Judges a history, or a list of events. */
export function judge(source: History | Iterable<TraceEvent>): Verdict {
  const history = source instanceof History ? source : record(source);
  const orders = orderGroups(history);
  const properties = PROPERTIES.map((property) => {
    const verdict = conclude(property, ALGORITHMS[property](history, orders));
    return isPromised(property, history) ? verdict : withoutPromise(verdict);
  });
  return { outcome: overall(properties), properties, counts: { ...history.counts } };
}

function isPromised(property: Property, { promisedOrder, durabilities }: History): boolean {
  if (property === 'real-time-order') return promisedOrder === 'strict';
  return property !== 'durability' || durabilities.some((durability) => durability !== 'none');
}

function record(events: Iterable<TraceEvent>): History {
  const history = new History();
  for (const event of events) history.add(event);
  return history;
}

function conclude(property: Property, finding: Finding): PropertyVerdict {
  if (finding === undefined) return { property, outcome: 'holds' };
  if ('unknown' in finding) return { property, outcome: 'unknown', reason: finding.unknown };
  const witness = describeViolation(finding);
  return { property, outcome: 'violated', witness, violation: finding };
}

function withoutPromise(verdict: PropertyVerdict): PropertyVerdict {
  if (verdict.outcome === 'violated') return { ...verdict, outcome: 'not-promised' };
  return { property: verdict.property, outcome: 'not-promised' };
}

function overall(properties: readonly PropertyVerdict[]): Outcome {
  const outcomes = new Set(properties.map(({ outcome }) => outcome));
  if (outcomes.has('violated')) return 'violated';
  return outcomes.has('unknown') ? 'unknown' : 'holds';
}
