/** Hosts without memory find an era, or open one together. Their links and journals are models, and so is the time. */
import { expect, test } from 'vitest';
import { MAILBOX_WORDS } from '../../../src/hosting/machines/mailboxes.js';
import { type Entrance, Recovery } from '../../../src/hosting/machines/recovery.js';
import { noteEra, publishStanding } from '../../../src/hosting/machines/standing.js';
import type { Ask } from '../../../src/journal/recovery-asks.js';
import { ArenaMap, HOST, STAGE } from '../../../src/memory/arena.js';
import type { Link } from '../../../src/memory/machines/link.js';
import { body, FIRST, idOf, Model, Sequence } from '../../journal/model.js';

const HOSTS = 3;
const GROUPS = [0, 1];
const STEP_US = 50_000;
const ERA = 4;
const CLUSTER_ID = 'ab'.repeat(16);
const map = new ArenaMap(
  {
    sizes: { groups: GROUPS.length, replicas: HOSTS, clients: 1 },
    replicaRegionWords: 16,
    clientRegionWords: 16,
    row: 0,
    scratchWords: () => 0,
  },
  HOSTS,
  0,
  0,
  [0, 1, 2, 0, 1, 2],
  MAILBOX_WORDS,
);

class FakeHost {
  readonly words = new Int32Array(map.words);
  recovery: Recovery | undefined;
  entrance: Entrance | undefined;
  readonly log: string[] = [];
  /** Is not answered any more, and ends. */
  endsBefore: Ask['what'] | undefined;

  constructor(
    private readonly world: World,
    readonly number: number,
  ) {}

  get isUp(): boolean {
    return this.world.up.has(this.number);
  }

  /** Without memory. */
  start(): void {
    const { world, number, words } = this;
    words.fill(0);
    this.entrance = undefined;
    world.up.add(number);
    const journaled = new Set(
      [...world.model.disks[number].eras.values()].flatMap((groups) => [...groups.keys()]),
    );
    this.recovery = new Recovery({
      words,
      map,
      host: number,
      links: world.linksOf(this),
      shape: world.model.shape,
      promised: 0,
      journaled: [...journaled],
      answer: (ask) => {
        if (ask.what === this.endsBefore) this.end();
        return this.isUp ? world.model.answer(ask) : new Promise(() => undefined);
      },
      acceptsLoss: () => world.model.disks[number].acceptsLoss,
      log: (_, text) => this.log.push(text),
      nowUs: () => world.nowUs,
    });
  }

  /** With memory of this era. */
  run(era: number, quorums: readonly number[]): void {
    this.world.up.add(this.number);
    this.recovery = undefined;
    const line = this.words.subarray(map.host(this.number));
    noteEra(line, { era, firstSession: 1000, clusterId: CLUSTER_ID });
    publishStanding(line, 0, STAGE.running, quorums);
  }

  end(): void {
    this.world.up.delete(this.number);
    this.recovery = undefined;
  }

  step(): void {
    const entrance = this.recovery?.doWork(this.world.nowUs);
    if (entrance === undefined) return;
    this.entrance = entrance;
    this.run(entrance.era, entrance.what === 'start' ? GROUPS : []);
  }
}

class World {
  nowUs = 1;
  readonly up = new Set<number>();
  readonly model = new Model([-1, 0], HOSTS);
  readonly hosts = Array.from({ length: HOSTS }, (_, number) => new FakeHost(this, number));

  linksOf(from: FakeHost): (Link | undefined)[] {
    return this.hosts.map((to) => {
      if (to === from) return undefined;
      const isOpen = (): boolean => from.isUp && to.isUp;
      return {
        get isOpen() {
          return isOpen();
        },
        isSettled: true,
        writeWords: (at: number, words: Int32Array) => isOpen() && to.words.set(words, at),
        readWords: (at: number, into: Int32Array, intoAt: number, count: number) =>
          isOpen() && into.set(to.words.subarray(at, at + count), intoAt),
        wake: () => undefined,
      } as unknown as Link;
    });
  }

  /** All hosts have been in an era, and have this in their journals. */
  journal(...lengths: readonly number[]): void {
    for (const [host, length] of lengths.entries()) {
      const disk = this.model.disks[host];
      disk.clusterId = CLUSTER_ID;
      disk.promised = ERA;
      disk.opened.add(ERA);
      const bodies = Array.from({ length }, (_, id) => body(id, [0]));
      disk.put(ERA, 0, new Sequence(FIRST, [], [], bodies));
      disk.put(ERA, 1, new Sequence(FIRST, [], [], []));
    }
  }

  async until(isSo: () => boolean): Promise<void> {
    for (let steps = 0; !isSo(); steps++) {
      if (steps > 2000) throw new Error(this.hosts.map(({ log }) => log.join('\n')).join('\n\n'));
      await this.step();
    }
  }

  async step(): Promise<void> {
    this.nowUs += STEP_US;
    for (const host of this.hosts) host.step();
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** What a group of a host has begun the era with. */
  stateOf(host: number, era: number): number[] {
    return [...(this.model.disks[host].eras.get(era)!.get(0)!.readSnapshot() ?? [])];
  }
}

const entrancesOf = (hosts: readonly FakeHost[]) =>
  hosts.map(({ entrance }) => entrance && [entrance.what, entrance.era]);

test('hosts that have all lost their memory open a new era together, with all that was journaled', async () => {
  const world = new World();
  world.journal(3, 5, 4);
  for (const host of world.hosts) host.start();
  await world.until(() => world.hosts.every(({ entrance }) => entrance !== undefined));
  const { era, firstSession, clusterId } = world.hosts[0].entrance!;
  expect(era).toBeGreaterThan(ERA);
  expect(clusterId).toBe(CLUSTER_ID);
  expect(world.hosts.map(({ entrance }) => entrance)).toEqual(
    world.hosts.map(() => ({ what: 'start', era, firstSession, clusterId })),
  );
  const all = Array.from({ length: 5 }, (_, id) => idOf(body(id, [0])));
  for (const host of [0, 1, 2]) expect(world.stateOf(host, era)).toEqual(all);
});

test('the first start needs all hosts', async () => {
  const world = new World();
  world.hosts[0].start();
  world.hosts[1].start();
  await world.until(() => world.nowUs > 60_000_000);
  expect(world.hosts[0].log[0]).toBe(
    'waits for host 2: the first start needs all hosts, and no journal was found yet',
  );
  world.hosts[2].start();
  await world.until(() => world.hosts.every(({ entrance }) => entrance !== undefined));
  expect(entrancesOf(world.hosts)).toEqual(world.hosts.map(() => ['start', 1]));
});

test('two of three are enough, and the third one joins them', async () => {
  const world = new World();
  world.journal(3, 5, 4);
  world.hosts[1].start();
  world.hosts[2].start();
  await world.until(
    () => world.hosts[1].entrance !== undefined && world.hosts[2].entrance !== undefined,
  );
  const [, era] = entrancesOf(world.hosts)[1]!;
  world.hosts[0].start();
  await world.until(() => world.hosts[0].entrance !== undefined);
  expect(entrancesOf(world.hosts)).toEqual([
    ['join', era],
    ['start', era],
    ['start', era],
  ]);
});

test.each(['promise', 'survey', 'open', 'opened'] as const)(
  'a coordinator that ends before it answers its own ask, %s, is replaced by another host',
  async (what) => {
    const world = new World();
    world.journal(3, 5, 4);
    for (const host of world.hosts) host.start();
    world.hosts[0].endsBefore = what;
    const others = world.hosts.slice(1);
    await world.until(() => others.every(({ entrance }) => entrance !== undefined));
    const [one, other] = entrancesOf(others);
    expect(one).toEqual(other);
    expect(one![0]).toBe('start');
    const era = one![1] as number;
    expect(world.stateOf(1, era)).toHaveLength(5);
  },
);

test('a host that has kept its memory is asked to give it up, if the others have lost theirs', async () => {
  const world = new World();
  world.journal(3, 5, 4);
  world.hosts[0].run(ERA, []);
  const before = world.hosts[0].words[map.host(0) + HOST.request];
  world.hosts[1].start();
  world.hosts[2].start();
  await world.until(() => world.hosts[0].words[map.host(0) + HOST.request] !== before);
  world.hosts[0].end();
  await world.step();
  world.hosts[0].start();
  await world.until(() => world.hosts.every(({ entrance }) => entrance !== undefined));
  const [, era] = entrancesOf(world.hosts)[0]!;
  expect(entrancesOf(world.hosts)).toEqual(world.hosts.map(() => ['start', era]));
});

test('hosts that have joined on the outdated word of one that runs give their memory up with it', async () => {
  const world = new World();
  world.journal(3, 5, 4);
  const [keeps, ...others] = world.hosts;
  keeps.run(ERA, GROUPS);
  for (const host of others) host.start();
  await world.until(() => others.every(({ entrance }) => entrance !== undefined));
  expect(entrancesOf(others)).toEqual(others.map(() => ['join', ERA]));
  // It finds that the members that run lack the state (`machine-journal.ts`).
  keeps.start();
  const isAsked = ({ words, number }: FakeHost) => words[map.host(number) + HOST.request] !== 0;
  await world.until(() => others.every(isAsked));
  for (const host of others) host.start();
  await world.until(() => world.hosts.every(({ entrance }) => entrance !== undefined));
  const [, era] = entrancesOf(world.hosts)[0]!;
  expect(era).toBeGreaterThan(ERA);
  expect(entrancesOf(world.hosts)).toEqual(world.hosts.map(() => ['start', era]));
  expect(world.stateOf(0, era as number)).toHaveLength(5);
});

test('with too few journals it waits, and goes on if an operator accepts the loss', async () => {
  const world = new World();
  world.journal(3);
  world.hosts[0].start();
  world.hosts[1].start();
  await world.until(() => world.nowUs > 60_000_000);
  expect(world.hosts[0].log[0]).toBe(
    'waits for host 2; host 1 has no journal of them: recovery needs the journals of 2 of the 3 members of g0, g1',
  );
  world.model.disks[0].acceptsLoss = true;
  await world.until(
    () => world.hosts[0].entrance !== undefined && world.hosts[1].entrance !== undefined,
  );
  expect(world.hosts[0].log.some((line) => line.includes('as an operator has accepted'))).toBe(
    true,
  );
  expect(world.stateOf(1, world.hosts[1].entrance!.era)).toHaveLength(3);
});
