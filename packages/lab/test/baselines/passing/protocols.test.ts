/** Skeen and ByzCast in virtual time: all properties hold under random delays, and the judge finds planted errors. */
import type { Property } from 'tram-multicast/check';
import { judge } from 'tram-multicast/internal/check/judge.js';
import { describe, expect, test } from 'vitest';
import { ByzcastGroup } from '../../../src/baselines/byzcast/group.js';
import { byzcast } from '../../../src/baselines/byzcast/protocol.js';
import { Message } from '../../../src/baselines/passing/message.js';
import type { Participant } from '../../../src/baselines/passing/network.js';
import { SkeenGroup } from '../../../src/baselines/skeen/group.js';
import type { Pending } from '../../../src/baselines/skeen/pending.js';
import { skeen } from '../../../src/baselines/skeen/protocol.js';
import { type ProtocolMaker, simulatePassing } from '../../../src/sim/passing.js';

const SEEDS = 200;
const MESSAGES = 150;

/** The paper's properties (Paper §2.2, §2.3). FIFO order is judged only if the history has a tree. */
const ATOMIC_MULTICAST: readonly Property[] = [
  'validity',
  'uniform-agreement',
  'uniform-integrity',
  'uniform-prefix-order',
  'uniform-acyclic-order',
  'partial-genuineness',
];

interface Subject {
  readonly protocolOf: ProtocolMaker;
  readonly usesTree: boolean;
  readonly properties: readonly Property[];
  /** Do only sender and destinations take part? */
  readonly isGenuine: boolean;
}

const SKEEN: Subject = {
  protocolOf: skeen,
  usesTree: false,
  properties: ATOMIC_MULTICAST,
  isGenuine: true,
};
const BYZCAST: Subject = {
  protocolOf: (sizes, overlay) => byzcast(overlay, sizes),
  usesTree: true,
  properties: [...ATOMIC_MULTICAST, 'fifo-order'],
  isGenuine: false,
};

function run(seed: number, { protocolOf, usesTree, properties }: Subject) {
  const result = simulatePassing(seed, protocolOf, usesTree);
  const verdicts = judge(result.history).properties;
  const broken = verdicts.filter(
    ({ property, outcome }) => outcome === 'violated' || isMissing(properties, property, outcome),
  );
  return { ...result, broken };
}

function isMissing(properties: readonly Property[], property: Property, outcome: string): boolean {
  return outcome === 'unknown' && properties.includes(property);
}

describe.each([
  ['Skeen', SKEEN],
  ['ByzCast', BYZCAST],
])('%s', (_, subject) => {
  test(`${SEEDS} seeds hold all properties`, () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { broken, unanswered, outsiders, history } = run(seed, subject);
      expect(broken, `seed ${seed}`).toEqual([]);
      expect(unanswered, `seed ${seed}`).toBe(0);
      if (subject.isGenuine) expect(outsiders, `seed ${seed}`).toBe(0);
      expect(history.counts.messages).toBe(MESSAGES);
    }
  });

  test('the same seed gives the same run', () => {
    const deliveries = () =>
      run(7, subject).history.stretchesOf.map(([stretch]) => [...stretch.delivered.view()]);
    expect(deliveries()).toEqual(deliveries());
  });
});

/** Uses its own proposal as the final timestamp, though all proposals are known. */
class HeadstrongSkeen extends SkeenGroup {
  protected override decide(pending: Pending): void {
    pending.timestamp = pending.proposed;
    super.decide(pending);
  }
}

/** Delays every second message of its parent by one message. */
class Reordering implements Participant {
  private readonly held: { from: number; message: Message }[] = [];
  private count = 0;

  constructor(
    private readonly group: ByzcastGroup,
    private readonly groups: number,
  ) {}

  receive(from: number, message: Message): void {
    if (from < this.groups && ++this.count % 2 === 1) {
      const { payload } = message;
      this.held.push({
        from,
        message: Object.assign(new Message(), message, { payload: payload.slice() }),
      });
      return;
    }
    this.group.receive(from, message);
    for (const { from, message } of this.held.splice(0)) this.group.receive(from, message);
  }
}

describe('a planted error is found:', () => {
  const found = (subject: Subject): Set<Property> => {
    const properties = new Set<Property>();
    for (let seed = 1; seed <= 30; seed++) {
      for (const { property } of run(seed, subject).broken) properties.add(property);
    }
    return properties;
  };

  test('Skeen with its own proposal as the final timestamp', () => {
    const properties = found({
      ...SKEEN,
      protocolOf: (sizes) => ({
        ...skeen(sizes),
        group: (group, network, observer) => new HeadstrongSkeen(group, sizes, network, observer),
      }),
    });
    expect(properties).toContain('uniform-prefix-order');
    expect(properties).toContain('uniform-acyclic-order');
  });

  test('ByzCast with a child that changes the order', () => {
    const properties = found({
      ...BYZCAST,
      protocolOf: (sizes, overlay) => ({
        ...byzcast(overlay, sizes),
        group: (group, network, observer) =>
          new Reordering(new ByzcastGroup(group, overlay, network, observer), sizes.groups),
      }),
    });
    expect(properties).toContain('uniform-prefix-order');
    expect(properties).toContain('uniform-acyclic-order');
    expect(properties).toContain('fifo-order');
  });
});
