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
  era: number;
  opens: boolean;
  restored: number;
  delivered: string[];
}

/** What a member delivered in an era, or the order of its group; `placed` is false if its position in that order is unknown. */
interface Sequence {
  group: number;
  era: number;
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
  /** What each era promises. */
  eras: { number: number; durability: string }[];
  eraOfClient: Map<string, number>;
  answers: { id: string; group: number }[];
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
  /** Of the last era that each group has opened. */
  const sequences: Sequence[] = [];
  const formerSequences: Sequence[] = [];
  const orders = new Map<number, string[]>();
  const formerOrders = new Map<number, string[][]>();
  const eraOrders = new Map<string, string[]>();
  let unfounded = false;
  for (const group of facts.groups.keys()) {
    const eras = resolve(facts, group);
    for (const { era, order } of eras) eraOrders.set(`${group} ${era}`, order);
    const last = eras.at(-1)!;
    sequences.push(...last.sequences);
    orders.set(group, last.order);
    formerSequences.push(...eras.slice(0, -1).flatMap((era) => era.sequences));
    formerOrders.set(
      group,
      eras.slice(0, -1).map((era) => era.order),
    );
    unfounded ||= eras.some((era) => era.unfounded);
  }
  const fifo = fifoHolds(facts, sequences);
  const entriesKnown = [...facts.messages.values()].every((m) => entryOf(facts, m) !== undefined);
  return {
    validity: !facts.quiescent ? 'unknown' : outcome(validityHolds(facts, orders)),
    'uniform-agreement': !facts.quiescent ? 'unknown' : outcome(agreementHolds(facts, orders)),
    'uniform-integrity': outcome(!unfounded && integrityHolds(facts, eraOrders)),
    'uniform-prefix-order': outcome(
      prefixHolds(facts, sequences) && prefixHeldInGroups(facts, formerSequences),
    ),
    'uniform-acyclic-order': outcome(acyclicHolds(sequences)),
    'partial-genuineness': outcome(genuinenessHolds(facts)),
    'fifo-order': fifo && !entriesKnown ? 'unknown' : outcome(fifo),
    'real-time-order': facts.isStrict ? realTimeOutcome(facts, sequences) : 'not-promised',
    durability: durabilityOutcome(facts, orders, formerOrders),
  };
}

const outcome = (holds: boolean): Outcome => (holds ? 'holds' : 'violated');

function collect(events: readonly TraceEvent[]): Facts {
  const facts: Facts = {
    isStrict: false,
    eras: [{ number: -1, durability: 'none' }],
    eraOfClient: new Map(),
    answers: [],
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
  const eraOf = (number: number | undefined) =>
    number === undefined
      ? facts.eras.length - 1
      : facts.eras.findIndex((era) => era.number === number);
  /** Without a `client-start`, a client is of the era in which it occurs first. */
  const noteClient = (client: string) => {
    if (!facts.eraOfClient.has(client)) facts.eraOfClient.set(client, eraOf(undefined));
  };
  for (const event of events) {
    switch (event.event) {
      case 'era': {
        const { era: number, durability } = event;
        if (facts.eras[0].number === -1) facts.eras = [{ number, durability }];
        else facts.eras.push({ number, durability });
        break;
      }
      case 'opened':
        present(event.replica).opens = true;
        break;
      case 'groups':
        facts.parents = event.parents;
        facts.isStrict = event.order === 'strict';
        for (const [number, replicas] of Object.entries(event.groups)) {
          const group = Number(number);
          facts.groups.set(group, [...replicas]);
          for (const replica of replicas) {
            const start = { incarnation: 0, era: 0, opens: false, restored: 0 };
            facts.stretches.push({ replica, group, ...start, delivered: [] });
          }
        }
        break;
      case 'client-start':
        facts.clocks.set(event.client, event.clock);
        facts.eraOfClient.set(event.client, eraOf(event.era));
        break;
      case 'answered':
        facts.answers.push({ id: event.id, group: event.group });
        facts.clientEvents.push({ kind: 'answered', id: event.id, timeUs: event.timeUs });
        break;
      case 'multicast':
        noteClient(event.client);
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
          era: eraOf(event.era),
          opens: false,
          restored: 0,
          delivered: [],
        });
        break;
      }
      case 'restore':
        facts.stretches.push({
          ...present(event.replica),
          opens: false,
          restored: event.count,
          delivered: [],
        });
        break;
      case 'client-crash':
        noteClient(event.client);
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

interface Resolved {
  sequences: Sequence[];
  order: string[];
  unfounded: boolean;
}

/** The sequence of every member, with snapshots replaced by the deliveries that they cover, for each era that the group has opened. */
function resolve(facts: Facts, group: number): (Resolved & { era: number })[] {
  const eras: (Resolved & { era: number })[] = [];
  for (const era of facts.eras.keys()) {
    const stretches = facts.stretches.filter((s) => s.group === group && s.era === era);
    if (era === 0) eras.push({ era, ...resolveEra(facts, group, era, stretches, []) });
    const opening = stretches.filter(({ opens }) => opens);
    if (era === 0 || opening.length === 0) continue;
    const kept = Math.min(...opening.map(({ restored }) => restored));
    const before = eras.at(-1)!.order.slice(0, kept);
    eras.push({ era, ...resolveEra(facts, group, era, stretches, before) });
  }
  return eras;
}

/** @param kept  what the era has of earlier ones, without the record of its members */
function resolveEra(
  facts: Facts,
  group: number,
  era: number,
  all: Stretch[],
  kept: string[],
): Resolved {
  const stretches = all
    .map((stretch) => ({
      stretch,
      own: [...new Set(stretch.delivered)].filter((id) => isAddressed(facts, id, group)),
    }))
    .filter(({ stretch }) => stretch.restored > 0 || stretch.delivered.length > 0);
  // Replica by replica as the group lists them, each in the order of its incarnations.
  const rank = (replica: string) => facts.groups.get(group)!.indexOf(replica);
  stretches.sort((a, b) => rank(a.stretch.replica) - rank(b.stretch.replica));
  stretches.sort((a, b) => a.stretch.restored - b.stretch.restored || b.own.length - a.own.length);
  let order = kept;
  let delivered = kept.length;
  let unfounded = false;
  const sequences: Sequence[] = [];
  for (const { stretch, own } of stretches) {
    if (stretch.restored > delivered) unfounded = true;
    else delivered = Math.max(delivered, stretch.restored + own.length);
    if (stretch.restored > order.length) {
      sequences.push({ group, era, messages: own, placed: false });
      continue;
    }
    const messages = [...new Set([...order.slice(0, stretch.restored), ...own])];
    sequences.push({ group, era, messages, placed: true });
    if (messages.length > order.length && order.every((id, i) => id === messages[i])) {
      order = messages;
    }
  }
  // The group has recovered what it kept, even if no member has recorded it again: all of them may begin beyond it.
  sequences.push({ group, era, messages: order, placed: true });
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
      .every((replica) => isDown(facts, replica) || present(facts, orders, replica).has(id)),
  );
}

function isDown(facts: Facts, replica: string): boolean {
  const { era } = facts.stretches.findLast((stretch) => stretch.replica === replica)!;
  return facts.crashed.has(replica) || era < facts.eras.length - 1;
}

function validityHolds(facts: Facts, orders: Map<number, string[]>): boolean {
  return [...facts.messages.values()].every(
    ({ id, client }) =>
      facts.crashedClients.has(client) ||
      facts.eraOfClient.get(client)! < facts.eras.length - 1 ||
      everyCorrectReplicaHas(facts, orders, id),
  );
}

function agreementHolds(facts: Facts, orders: Map<number, string[]>): boolean {
  const present = facts.stretches.filter(({ era }) => era === facts.eras.length - 1);
  return [...orders.values(), ...present.map(({ delivered }) => delivered)]
    .flat()
    .every((id) => everyCorrectReplicaHas(facts, orders, id));
}

/** @param eraOrders  by group and era, for each era that the group has opened */
function integrityHolds(facts: Facts, eraOrders: Map<string, string[]>): boolean {
  if (facts.early) return false;
  const incarnations = new Map<string, { delivered: Set<string>; covered: Set<string> }>();
  for (const { replica, group, incarnation, era, restored, delivered } of facts.stretches) {
    const key = `${replica} ${incarnation}`;
    const seen = incarnations.get(key) ?? { delivered: new Set(), covered: new Set() };
    incarnations.set(key, seen);
    const order = eraOrders.get(`${group} ${era}`) ?? [];
    for (const id of order.slice(0, restored)) seen.covered.add(id);
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
        isAddressed(facts, id, p.group) && isAddressed(facts, id, q.group);
      for (const m of p.messages.filter(common)) {
        for (const other of q.messages.filter(common)) {
          if (m !== other && !before(p, other, m) && !before(q, m, other)) return false;
        }
      }
    }
  }
  return true;
}

/** What a power cut has undone was in the same order at all members of a group. */
function prefixHeldInGroups(facts: Facts, sequences: readonly Sequence[]): boolean {
  return [...facts.groups.keys()].every((group) =>
    facts.eras.every((_, era) =>
      prefixHolds(
        facts,
        sequences.filter((sequence) => sequence.group === group && sequence.era === era),
      ),
    ),
  );
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

function durabilityOutcome(
  facts: Facts,
  orders: Map<number, string[]>,
  formerOrders: Map<number, string[][]>,
): Outcome {
  const promises = facts.eras.map(({ durability }) => durability);
  if (promises.every((durability) => durability === 'none')) return 'not-promised';
  if (!facts.quiescent) return 'unknown';
  const eraOf = (id: string) => facts.eraOfClient.get(facts.messages.get(id)!.client)!;
  const isInAll = (id: string) =>
    facts.messages.get(id)!.destinations.every((group) => orders.get(group)!.includes(id));
  const isInNone = (id: string) =>
    facts.messages.get(id)!.destinations.every((group) => !orders.get(group)!.includes(id));
  /** Is the order up to the message as it was? */
  const isAsBefore = (id: string, group: number) =>
    formerOrders.get(group)!.every((order) => {
      const shown = order.slice(0, order.indexOf(id) + 1);
      return shown.every((message, i) => orders.get(group)![i] === message);
    });
  const answers = facts.answers.filter(({ id }) => promises[eraOf(id)] === 'always');
  const half = [...facts.messages.keys()].filter(
    (id) =>
      eraOf(id) < facts.eras.length - 1 &&
      promises[eraOf(id)] !== 'none' &&
      !isInAll(id) &&
      !isInNone(id),
  );
  const isKept = answers.every(({ id, group }) => isInAll(id) && isAsBefore(id, group));
  if (!isKept || half.length > 0) return 'violated';
  return promises.includes('always') && facts.answers.length === 0 ? 'unknown' : 'holds';
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
  return sequences.every(({ group, messages, placed }) =>
    all.every((sample) => {
      const entryGroup = entryOf(facts, sample);
      if (entryGroup === undefined || !placed) return true;
      const stream = all
        .filter((m) => m.client === sample.client && entryOf(facts, m) === entryGroup)
        .filter((m) => m.destinations.includes(group))
        .map((m) => m.id);
      const delivered = messages.filter((id) => stream.includes(id));
      return delivered.every((id, i) => id === stream[i]);
    }),
  );
}
