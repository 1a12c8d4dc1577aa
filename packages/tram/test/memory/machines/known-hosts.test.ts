/** What hosts remember of each other, without a network: who has run, and which revisions are refused. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ARENA, ARENA_STATE, ArenaMap, HOST } from '../../../src/memory/arena.js';
import { REFUSAL } from '../../../src/memory/machines/handshake.js';
import { KnownHosts } from '../../../src/memory/machines/known-hosts.js';

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

class Host {
  known!: KnownHosts;

  constructor(
    readonly number: number,
    public words = new Int32Array(map.words),
  ) {
    this.start(1);
  }

  /** With the memory that it has. */
  start(revision: number, digest = revision): void {
    this.known = new KnownHosts(this.words, map, this.number, { revision, digest });
  }

  run(): void {
    this.words[ARENA.state] = ARENA_STATE.running;
  }

  loseMemory(): void {
    this.words.fill(0);
  }
}

let hosts: Host[];

beforeEach(() => {
  hosts = Array.from({ length: HOSTS }, (_, number) => new Host(number));
  for (const host of hosts) host.run();
});

/** @returns how one of them refuses the other */
function meet(one: Host, other: Host): number {
  const [mine, theirs] = [one.known.introduction, other.known.introduction];
  const refusal = one.known.refusalOf(theirs) || other.known.refusalOf(mine);
  if (refusal > 0) return refusal;
  const bits = one.known.bitsFor(other.number, theirs);
  one.known.learn(other.number, other.known.bitsFor(one.number, mine), theirs);
  other.known.learn(one.number, bits, mine);
  return 0;
}

function meetAll(): void {
  for (const one of hosts) for (const other of hosts) if (one !== other) meet(one, other);
}

/** As `network.ts` does, with links that are always open. */
function publish(): void {
  for (const one of hosts) {
    one.known.adoptLeast();
    for (const other of hosts) {
      if (one === other || !one.known.takePublication(other.number)) continue;
      other.words[map.host(one.number) + HOST.leastRevision] = one.known.leastRevision;
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
    expect(beta.known.adoptLeast()).toEqual([]);
    beta.run();
    const old = new Host(2);
    old.run();
    expect(meet(beta, old)).toBe(REFUSAL.outdated);
  });

  test('name the hosts that are below a new least one', () => {
    const [alpha, beta, gamma] = hosts;
    alpha.start(2);
    gamma.start(2);
    meetAll();
    gamma.known.demandOurs();
    meet(alpha, gamma);
    expect(alpha.known.adoptLeast()).toEqual([beta.number]);
    expect(alpha.known.adoptLeast()).toEqual([]);
  });

  test('that are the same have the same addresses', () => {
    const [alpha, beta] = hosts;
    alpha.start(2, 5);
    beta.start(2, 6);
    expect(meet(alpha, beta)).toBe(REFUSAL.otherAddresses);
  });
});
