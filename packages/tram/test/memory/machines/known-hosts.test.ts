/** What hosts remember of each other, without a network: which hosts have run, which memory and which revisions are refused. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ARENA, ARENA_STATE, ArenaMap, HOST } from '../../../src/memory/arena.js';
import { REFUSAL } from '../../../src/memory/machines/handshake.js';
import { KnownHosts } from '../../../src/memory/machines/known-hosts.js';
import type { Link } from '../../../src/memory/machines/link.js';

const HOSTS = 3;
const map = new ArenaMap(
  {
    sizes: { groups: 1, replicas: HOSTS, clients: 1 },
    replicaRegionWords: 16,
    clientRegionWords: 16,
    row: 0,
    scratchWords: () => 0,
  },
  HOSTS,
  0,
  0,
  [0, 1, 2],
);

/** Of the memory that was made last. */
let births = 0;

class Host {
  known!: KnownHosts;

  constructor(
    readonly number: number,
    readonly words = new Int32Array(map.words),
  ) {
    if (this.birth === 0) this.loseMemory();
    this.start(1);
  }

  get birth(): number {
    return this.words[map.host(this.number) + HOST.birth];
  }

  /** With the memory that it has. */
  start(revision: number, digest = revision): void {
    this.known = new KnownHosts(this.words, map, this.number, { revision, digest });
  }

  run(era = 0): void {
    this.words[ARENA.state] = ARENA_STATE.running;
    this.words[map.host(this.number) + HOST.era] = era;
    this.known.begin();
  }

  loseMemory(): void {
    this.words.fill(0)[map.host(this.number) + HOST.birth] = ++births;
  }
}

/** To that host. What is posted over it lands at once. */
function linkTo({ number, words }: Host): Link {
  return {
    host: number,
    writeWords: (at: number, source: Int32Array) => words.set(source, at),
    readWords: (at: number, into: Int32Array, intoAt: number) => {
      into[intoAt] = words[at];
    },
  } as unknown as Link;
}

let hosts: Host[];

beforeEach(() => {
  hosts = Array.from({ length: HOSTS }, (_, number) => new Host(number));
  for (const host of hosts) host.run();
});

/** @returns how one of them refuses the other */
function meet(one: Host, other: Host): number {
  const [mine, theirs] = [one, other].map(({ known }) => ({
    session: known.introduction,
    birth: known.birth,
    era: known.era,
  }));
  const refusal =
    one.known.refusalOf(other.number, theirs) || other.known.refusalOf(one.number, mine);
  if (refusal > 0) return refusal;
  const bits = one.known.bitsFor(other.number, theirs.session);
  one.known.expect(other.number);
  other.known.expect(one.number);
  one.known.learn(other.number, other.known.bitsFor(one.number, mine.session), theirs);
  other.known.learn(one.number, bits, mine);
  for (const host of [one, other]) host.known.adopt();
  one.known.exchange(linkTo(other));
  other.known.exchange(linkTo(one));
  for (const host of [one, other]) host.known.adopt();
  return 0;
}

function meetAll(): void {
  for (const one of hosts) for (const other of hosts) if (one !== other) meet(one, other);
}

/** As `network.ts` does, with links that are always open. */
function publish(): void {
  for (const one of hosts) {
    one.known.adopt();
    for (const other of hosts) {
      if (one !== other && one.known.mustPublish(other.number)) one.known.publish(linkTo(other));
    }
  }
}

describe('a host without memory', () => {
  test('learns whether it has run, and whether with its revision', () => {
    meetAll();
    const [, , gamma] = hosts;
    gamma.loseMemory();
    gamma.start(1);
    meet(gamma, hosts[0]);
    expect(gamma.known).toMatchObject({ areRemembered: true, areRememberedLately: true });
    gamma.loseMemory();
    gamma.start(2);
    for (const other of hosts.slice(0, 2)) other.start(2);
    meet(gamma, hosts[0]);
    expect(gamma.known).toMatchObject({ areRemembered: true, areRememberedLately: false });
  });

  test('lets no older revision in, because it may have known one that refuses it', () => {
    const [alpha, , gamma] = hosts;
    gamma.loseMemory();
    gamma.start(2);
    expect(meet(gamma, alpha)).toBe(REFUSAL.outdated);
    alpha.start(2);
    expect(meet(gamma, alpha)).toBe(0);
  });
});

describe('memory', () => {
  /** Gamma runs with new memory, and the earlier one is left. @returns gamma with the earlier one */
  function renew(others: readonly Host[]): Host {
    const gamma = hosts[2];
    const old = new Host(gamma.number, gamma.words.slice());
    gamma.loseMemory();
    gamma.start(1);
    for (const other of others) meet(gamma, other);
    gamma.run();
    for (const other of others) gamma.known.publish(linkTo(other));
    for (const other of others) other.known.adopt();
    return old;
  }

  beforeEach(() => meetAll());

  test('that is older than what a host has seen is refused, also after a restart of that host', () => {
    const [alpha, beta] = hosts;
    const old = renew([alpha]);
    expect(meet(alpha, old)).toBe(REFUSAL.olderMemory);
    alpha.start(1);
    expect(meet(old, alpha)).toBe(REFUSAL.olderMemory);
    expect(alpha.known.newestBirth(old.number)).toBeGreaterThan(old.known.birth);
    expect(meet(beta, old)).toBe(0);
  });

  test('that is older is refused by a host that has lost its own, once another host has told it', () => {
    const [alpha, beta] = hosts;
    const old = renew([alpha]);
    beta.loseMemory();
    beta.start(1);
    expect(meet(beta, old)).toBe(0);
    expect(beta.known.isOutdated(old.number)).toBe(false);
    meet(beta, alpha);
    expect(beta.known.isOutdated(old.number)).toBe(true);
    expect(beta.known.awaitsRecords).toBe(false);
    expect(meet(beta, old)).toBe(REFUSAL.olderMemory);
  });

  test('that no replica has run with does not count', () => {
    const [alpha, , gamma] = hosts;
    const fresh = new Host(gamma.number);
    expect(meet(alpha, fresh)).toBe(0);
    expect(alpha.known.runs(gamma.number)).toBe(false);
    expect(meet(alpha, gamma)).toBe(0);
    expect(alpha.known.runs(gamma.number)).toBe(true);
    expect(fresh.known).toMatchObject({ areRemembered: true, areRememberedLately: true });
  });
});

describe('revisions', () => {
  test('may differ until one is demanded; from then on older ones are refused, also after a restart', () => {
    const [alpha, beta, gamma] = hosts;
    alpha.start(2);
    expect(meet(alpha, beta)).toBe(0);
    expect(meet(alpha, gamma)).toBe(0);
    expect(alpha.known.differentHosts).toEqual([1, 2]);
    beta.start(2);
    meetAll();
    const old = new Host(2, gamma.words.slice());
    gamma.loseMemory();
    gamma.start(2);
    meetAll();
    expect(meet(alpha, old)).toBe(0);
    meet(alpha, gamma);
    gamma.known.demandOurs();
    expect(gamma.known.isOursDemanded).toBe(false);
    publish();
    publish();
    expect(gamma.known.isOursDemanded).toBe(true);
    for (const host of [alpha, beta]) {
      expect(meet(host, old)).toBe(REFUSAL.outdated);
      host.start(2);
      expect(meet(old, host)).toBe(REFUSAL.outdated);
    }
  });

  test('that are demanded are told to a host that was away', () => {
    const [alpha, beta, gamma] = hosts;
    for (const host of hosts) host.start(2);
    meetAll();
    gamma.known.demandOurs();
    meet(alpha, gamma);
    publish();
    beta.loseMemory();
    beta.start(2);
    meet(beta, alpha);
    beta.run();
    const old = new Host(2);
    old.run();
    expect(meet(beta, old)).toBe(REFUSAL.outdated);
  });

  test('below a new least one are outdated', () => {
    const [alpha, , gamma] = hosts;
    alpha.start(2);
    gamma.start(2);
    meetAll();
    gamma.known.demandOurs();
    meet(alpha, gamma);
    expect(hosts.map(({ number }) => alpha.known.isOutdated(number))).toEqual([false, true, false]);
  });

  test('that a host demanded before it connected again do not count until it demands them again', () => {
    const [alpha, beta, gamma] = hosts;
    for (const host of hosts) host.start(2);
    meetAll();
    gamma.known.demandOurs();
    publish();
    publish();
    expect(gamma.known.isOursDemanded).toBe(true);
    beta.loseMemory();
    beta.start(2);
    gamma.known.expect(beta.number);
    expect(gamma.known.isOursDemanded).toBe(false);
    meet(beta, alpha);
    meet(gamma, beta);
    expect(gamma.known.isOursDemanded).toBe(true);
  });

  test('that are the same have the same addresses', () => {
    const [alpha, beta] = hosts;
    alpha.start(2, 5);
    beta.start(2, 6);
    expect(meet(alpha, beta)).toBe(REFUSAL.otherAddresses);
  });
});

describe('eras', () => {
  test('hosts that have run in different eras refuse each other, and know of the newer one', () => {
    hosts[0].run(7);
    hosts[1].run(8);
    expect(meet(hosts[0], hosts[1])).toBe(REFUSAL.otherEra);
    expect(hosts[0].known.newestEra).toBe(8);
  });

  test('a host that has not run yet connects to a host of any era', () => {
    hosts[0].run(7);
    hosts[1].loseMemory();
    hosts[2].run(8);
    expect([0, 2].map((other) => meet(hosts[1], hosts[other]))).toEqual([0, 0]);
  });

  test('once it runs, hosts of other eras are outdated, on both sides', () => {
    hosts[0].run(7);
    hosts[1].loseMemory();
    meet(hosts[0], hosts[1]);
    expect(hosts[0].known.isOutdated(1)).toBe(false);
    hosts[1].run(8);
    hosts[1].known.publish(linkTo(hosts[0]));
    expect([hosts[0].known.isOutdated(1), hosts[1].known.isOutdated(0)]).toEqual([true, true]);
    expect(hosts[0].known.newestEra).toBe(8);
  });

  test('an era that was told before the connection is complete is kept', () => {
    hosts[1].loseMemory();
    const early = { session: hosts[1].known.introduction, birth: hosts[1].known.birth, era: 0 };
    hosts[0].known.expect(1);
    hosts[1].run(8);
    hosts[1].known.publish(linkTo(hosts[0]));
    hosts[0].known.learn(1, 0, early);
    hosts[0].run(7);
    expect(hosts[0].known.isOutdated(1)).toBe(true);
  });

  test('a host that has lost its memory has no era for others', () => {
    hosts[0].run(7);
    hosts[1].run(7);
    meet(hosts[0], hosts[1]);
    hosts[1].loseMemory();
    meet(hosts[0], hosts[1]);
    hosts[0].run(8);
    expect(hosts[0].known.isOutdated(1)).toBe(false);
  });
});
