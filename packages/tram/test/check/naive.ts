/**
 * The judge's naive twin: the definitions of `properties.ts`, word for word, with sets, arrays and
 * nested loops. It shares nothing with the judge but the events.
 */

import type { TraceEvent } from '../../src/check/events.js';
import type { Property, PropertyVerdict } from '../../src/check/properties.js';

type Outcome = PropertyVerdict['outcome'];

interface Message {
  id: string;
  client: string;
  destinations: number[];
  entryGroup: number | undefined;
}

interface Stretch {
  replica: string;
  group: number;
  incarnation: number;
  restored: number;
  delivered: string[];
}

/** A delivery sequence; `placed` is false if its position in the group's order is unknown. */
interface Sequence {
  stretch: Stretch;
  messages: string[];
  placed: boolean;
}

/** What happened to a client; `answered` is the reply of any group. */
interface ClientEvent {
  kind: 'multicast' | 'answered';
  id: string;
  timeUs: number | undefined;
}

interface Facts {
  isStrict: boolean;
  clocks: Map<string, string>;
  clientEvents: ClientEvent[];
  messages: Map<string, Message>;
  stretches: Stretch[];
  crashed: Set<string>;
  crashedClients: Set<string>;
  touches: { id: string; group: number }[];
  early: boolean;
  quiescent: boolean;
  groups: Map<number, string[]>;
  parents: readonly number[] | undefined;
}

export function judgeNaively(events: readonly TraceEvent[]): Record<Property, Outcome> {
  const facts = collect(events);
  const sequences: Sequence[] = [];
  const orders = new Map<number, string[]>();
  let unfounded = false;
  for (const group of facts.groups.keys()) {
    const resolved = resolve(facts, group);
    sequences.push(...resolved.sequences);
    orders.set(group, resolved.order);
    unfounded ||= resolved.unfounded;
  }
  const fifo = fifoHolds(facts, sequences);
  const entriesKnown = [...facts.messages.values()].every((m) => entryOf(facts, m) !== undefined);
  return {
    validity: !facts.quiescent ? 'unknown' : outcome(validityHolds(facts, orders)),
    'uniform-agreement': !facts.quiescent ? 'unknown' : outcome(agreementHolds(facts, orders)),
    'uniform-integrity': outcome(!unfounded && integrityHolds(facts, orders)),
    'uniform-prefix-order': outcome(prefixHolds(facts, sequences)),
    'uniform-acyclic-order': outcome(acyclicHolds(sequences)),
    'partial-genuineness': outcome(genuinenessHolds(facts)),
    'fifo-order': fifo && !entriesKnown ? 'unknown' : outcome(fifo),
    'real-time-order': facts.isStrict ? realTimeOutcome(facts, sequences) : 'not-promised',
  };
}

const outcome = (holds: boolean): Outcome => (holds ? 'holds' : 'violated');

function collect(events: readonly TraceEvent[]): Facts {
  const facts: Facts = {
    isStrict: false,
    clocks: new Map(),
    clientEvents: [],
    messages: new Map(),
    stretches: [],
    crashed: new Set(),
    crashedClients: new Set(),
    touches: [],
    early: false,
    quiescent: false,
    groups: new Map(),
    parents: undefined,
  };
  const present = (replica: string) => facts.stretches.findLast((s) => s.replica === replica)!;
  for (const event of events) {
    switch (event.event) {
      case 'groups':
        facts.parents = event.parents;
        facts.isStrict = event.order === 'strict';
        for (const [number, replicas] of Object.entries(event.groups)) {
          const group = Number(number);
          facts.groups.set(group, [...replicas]);
          for (const replica of replicas) {
            facts.stretches.push({ replica, group, incarnation: 0, restored: 0, delivered: [] });
          }
        }
        break;
      case 'client-start':
        facts.clocks.set(event.client, event.clock);
        break;
      case 'answered':
        facts.clientEvents.push({ kind: 'answered', id: event.id, timeUs: event.timeUs });
        break;
      case 'multicast':
        facts.clientEvents.push({ kind: 'multicast', id: event.id, timeUs: event.timeUs });
        facts.messages.set(event.id, {
          id: event.id,
          client: event.client,
          destinations: [...event.destinations],
          entryGroup: event.entryGroup,
        });
        break;
      case 'deliver':
        facts.early ||= !facts.messages.has(event.id);
        present(event.replica).delivered.push(event.id);
        break;
      case 'touch':
        facts.touches.push({ id: event.id, group: event.group });
        break;
      case 'crash':
        facts.crashed.add(event.replica);
        break;
      case 'restart': {
        facts.crashed.delete(event.replica);
        const last = present(event.replica);
        facts.stretches.push({
          ...last,
          incarnation: last.incarnation + 1,
          restored: 0,
          delivered: [],
        });
        break;
      }
      case 'restore':
        facts.stretches.push({
          ...present(event.replica),
          restored: event.count,
          delivered: [],
        });
        break;
      case 'client-crash':
        facts.crashedClients.add(event.client);
        break;
      case 'end':
        facts.quiescent = event.quiescent;
        break;
    }
  }
  return facts;
}

function isAddressed(facts: Facts, id: string, group: number): boolean {
  return facts.messages.get(id)?.destinations.includes(group) ?? false;
}

/** The sequence of every member, with snapshots replaced by the deliveries that they cover. */
function resolve(facts: Facts, group: number) {
  const stretches = facts.stretches
    .filter((stretch) => stretch.group === group)
    .map((stretch) => ({
      stretch,
      own: [...new Set(stretch.delivered)].filter((id) => isAddressed(facts, id, group)),
    }))
    .filter(({ stretch }) => stretch.restored > 0 || stretch.delivered.length > 0);
  // Replica by replica as the group lists them, each in the order of its incarnations.
  const rank = (replica: string) => facts.groups.get(group)!.indexOf(replica);
  stretches.sort((a, b) => rank(a.stretch.replica) - rank(b.stretch.replica));
  stretches.sort((a, b) => a.stretch.restored - b.stretch.restored || b.own.length - a.own.length);
  let order: string[] = [];
  let delivered = 0;
  let unfounded = false;
  const sequences: Sequence[] = [];
  for (const { stretch, own } of stretches) {
    if (stretch.restored > delivered) unfounded = true;
    else delivered = Math.max(delivered, stretch.restored + own.length);
    if (stretch.restored > order.length) {
      sequences.push({ stretch, messages: own, placed: false });
      continue;
    }
    const messages = [...new Set([...order.slice(0, stretch.restored), ...own])];
    sequences.push({ stretch, messages, placed: true });
    if (messages.length > order.length && order.every((id, i) => id === messages[i])) {
      order = messages;
    }
  }
  return { sequences, order, unfounded };
}

function present(facts: Facts, orders: Map<number, string[]>, replica: string): Set<string> {
  const stretches = facts.stretches.filter((stretch) => stretch.replica === replica);
  const incarnation = Math.max(...stretches.map((stretch) => stretch.incarnation));
  return new Set(
    stretches
      .filter((stretch) => stretch.incarnation === incarnation)
      .flatMap(({ group, restored, delivered }) => [
        ...orders.get(group)!.slice(0, restored),
        ...delivered,
      ]),
  );
}

function everyCorrectReplicaHas(facts: Facts, orders: Map<number, string[]>, id: string): boolean {
  return (facts.messages.get(id)?.destinations ?? []).every((group) =>
    facts.groups
      .get(group)!
      .every((replica) => facts.crashed.has(replica) || present(facts, orders, replica).has(id)),
  );
}

function validityHolds(facts: Facts, orders: Map<number, string[]>): boolean {
  return [...facts.messages.values()].every(
    ({ id, client }) =>
      facts.crashedClients.has(client) || everyCorrectReplicaHas(facts, orders, id),
  );
}

function agreementHolds(facts: Facts, orders: Map<number, string[]>): boolean {
  return facts.stretches
    .flatMap(({ delivered }) => delivered)
    .every((id) => everyCorrectReplicaHas(facts, orders, id));
}

function integrityHolds(facts: Facts, orders: Map<number, string[]>): boolean {
  if (facts.early) return false;
  const incarnations = new Map<string, { delivered: Set<string>; covered: Set<string> }>();
  for (const { replica, group, incarnation, restored, delivered } of facts.stretches) {
    const key = `${replica} ${incarnation}`;
    const seen = incarnations.get(key) ?? { delivered: new Set(), covered: new Set() };
    incarnations.set(key, seen);
    for (const id of orders.get(group)!.slice(0, restored)) seen.covered.add(id);
    for (const id of delivered) {
      if (!isAddressed(facts, id, group)) return false;
      if (seen.delivered.has(id) || seen.covered.has(id)) return false;
      seen.delivered.add(id);
    }
  }
  return true;
}

/** Paper §2.2: if p delivers m and q delivers m', p delivers m' before m or q delivers m before m'. */
function prefixHolds(facts: Facts, sequences: readonly Sequence[]): boolean {
  const placed = sequences.filter((sequence) => sequence.placed);
  const before = (sequence: Sequence, one: string, other: string) =>
    sequence.messages.includes(one) &&
    sequence.messages.indexOf(one) < sequence.messages.indexOf(other);
  for (const p of placed) {
    for (const q of placed) {
      const common = (id: string) =>
        isAddressed(facts, id, p.stretch.group) && isAddressed(facts, id, q.stretch.group);
      for (const m of p.messages.filter(common)) {
        for (const other of q.messages.filter(common)) {
          if (m !== other && !before(p, other, m) && !before(q, m, other)) return false;
        }
      }
    }
  }
  return true;
}

type Pair = readonly [before: string, after: string];

function acyclicHolds(sequences: readonly Sequence[]): boolean {
  return !hasCycle(deliveredPairs(sequences));
}

function deliveredPairs(sequences: readonly Sequence[]): Pair[] {
  return sequences.flatMap(({ messages }) =>
    messages.flatMap((before, i) => messages.slice(i + 1).map((after): Pair => [before, after])),
  );
}

/** The transitive closure has something before itself. */
function hasCycle(pairs: readonly Pair[]): boolean {
  const ids = [...new Set(pairs.flat())];
  const index = new Map(ids.map((id, i) => [id, i]));
  const before = ids.map(() => ids.map(() => false));
  for (const [one, other] of pairs) before[index.get(one)!][index.get(other)!] = true;
  for (const k of ids.keys()) {
    for (const i of ids.keys()) {
      for (const j of ids.keys()) before[i][j] ||= before[i][k] && before[k][j];
    }
  }
  return ids.some((_, i) => before[i][i]);
}

function realTimeOutcome(facts: Facts, sequences: readonly Sequence[]): Outcome {
  const answers = facts.clientEvents.filter(({ kind }) => kind === 'answered');
  const multicasts = facts.clientEvents.filter(({ kind }) => kind === 'multicast');
  if (answers.length === 0) return 'unknown';
  const pairs: Pair[] = [];
  let isKnown = true;
  for (const answer of answers) {
    for (const multicast of multicasts) {
      const isEarlier = isBefore(facts, answer, multicast);
      isKnown &&= isEarlier !== undefined;
      if (isEarlier) pairs.push([answer.id, multicast.id]);
    }
  }
  if (hasCycle([...deliveredPairs(sequences), ...pairs])) return 'violated';
  return isKnown ? 'holds' : 'unknown';
}

/** `undefined` if they can't be compared. */
function isBefore(facts: Facts, one: ClientEvent, other: ClientEvent): boolean | undefined {
  const [client, otherClient] = [one, other].map(({ id }) => facts.messages.get(id)!.client);
  if (client === otherClient) {
    return facts.clientEvents.indexOf(one) < facts.clientEvents.indexOf(other);
  }
  if (facts.clocks.get(client) !== facts.clocks.get(otherClient)) return undefined;
  if (one.timeUs === undefined || other.timeUs === undefined) return undefined;
  return one.timeUs < other.timeUs;
}

function genuinenessHolds(facts: Facts): boolean {
  const involved = [
    ...facts.touches,
    ...facts.stretches.flatMap(({ delivered, group }) => delivered.map((id) => ({ id, group }))),
  ];
  return involved.every(({ id, group }) => {
    const destinations = facts.messages.get(id)?.destinations;
    return destinations?.length !== 1 || destinations[0] === group;
  });
}

function entryOf(facts: Facts, { entryGroup, destinations }: Message): number | undefined {
  if (entryGroup !== undefined) return entryGroup;
  if (destinations.length === 1) return destinations[0];
  const { parents } = facts;
  if (parents === undefined) return undefined;
  const path = (group: number): number[] => (group === -1 ? [] : [group, ...path(parents[group])]);
  return path(destinations[0]).find((ancestor) =>
    destinations.every((group) => path(group).includes(ancestor)),
  );
}

function fifoHolds(facts: Facts, sequences: readonly Sequence[]): boolean {
  const all = [...facts.messages.values()];
  return sequences.every(({ messages, stretch, placed }) =>
    all.every((sample) => {
      const entryGroup = entryOf(facts, sample);
      if (entryGroup === undefined || !placed) return true;
      const stream = all
        .filter((m) => m.client === sample.client && entryOf(facts, m) === entryGroup)
        .filter((m) => m.destinations.includes(stretch.group))
        .map((m) => m.id);
      const delivered = messages.filter((id) => stream.includes(id));
      return delivered.every((id, i) => id === stream[i]);
    }),
  );
}
