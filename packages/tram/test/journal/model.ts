/**
 * A model of a cluster with journals, for tests of recovery: logs and journals are arrays, and a state is the list of the
 * messages that led to it. It decides by itself, from the definitions, what was acknowledged.
 */
import { interrupted } from '../../src/journal/asking.js';
import {
  type Recovered,
  type RecoverySettings,
  recoverCluster,
} from '../../src/journal/recovery.js';
import type { Answer, Ask, EraPlan, Opening } from '../../src/journal/recovery-asks.js';
import { cutOf, entriesOf } from '../../src/journal/recovery-host.js';
import type { GroupSequence, JournalEntry } from '../../src/journal/sequence.js';
import type { ClusterShape } from '../../src/journal/shape.js';
import { lackedFrom, startOfEra } from '../../src/journal/start.js';
import { MESSAGE, messageWords, PARENT, SOURCE } from '../../src/protocol/layout.js';
import { contains, lowMask, Overlay } from '../../src/protocol/overlay.js';
import { WIDE } from '../../src/protocol/wide.js';

export const FIRST = 2;
const CLUSTER_ID = '0123456789abcdef0123456789abcdef';

/** The body of an entry: message `id` to these groups; from a client, or from the parent's entry `fromParent`. */
export function body(id: number, destinations: readonly number[], fromParent?: number): Int32Array {
  const words = new Int32Array(messageWords(0) + SOURCE.words);
  words[MESSAGE.session] = 1;
  words[MESSAGE.number] = id;
  for (const group of destinations) words[MESSAGE.destinationsLow] |= lowMask(group);
  const source = words.length - SOURCE.words;
  words[source + SOURCE.id] = fromParent === undefined ? 0 : PARENT;
  words[source + SOURCE.number] = (fromParent ?? id) | 0;
  words[source + SOURCE.nextPosition] = Math.floor((fromParent ?? 0) / WIDE);
  return words;
}

export const idOf = (entry: Int32Array): number => entry[MESSAGE.number];

/** What a host has of a group in an era. */
export class Sequence implements GroupSequence {
  constructor(
    readonly snapshotIndex: number,
    readonly snapshotFromParent: number,
    /** Ids of the messages that the snapshot includes; undefined if it is the first. */
    private readonly state: readonly number[] | undefined,
    readonly bodies: readonly Int32Array[],
  ) {}

  get isFirst(): boolean {
    return this.state === undefined;
  }

  get end(): number {
    return this.snapshotIndex + this.bodies.length;
  }

  readSnapshot(): Int32Array | undefined {
    return this.state && Int32Array.from(this.state);
  }

  *entries(from: number): Iterable<JournalEntry> {
    for (let index = from; index < this.end; index++) {
      const words = this.bodies[index - this.snapshotIndex];
      yield { index, words, at: 0, count: words.length };
    }
  }
}

/** The disk of a host. */
export class HostDisk {
  clusterId: string | undefined;
  promised = 0;
  firstSession = 0;
  acceptsLoss = false;
  readonly opened = new Set<number>();
  readonly eras = new Map<number, Map<number, Sequence>>();

  put(era: number, group: number, sequence: Sequence): void {
    if (!this.eras.has(era)) this.eras.set(era, new Map());
    this.eras.get(era)!.set(group, sequence);
  }
}

export class Model {
  readonly overlay: Overlay;
  readonly shape: ClusterShape;
  disks: HostDisk[];
  /** Hosts that answer nothing. */
  readonly down = new Set<number>();

  constructor(
    parents: readonly number[],
    readonly hosts = 3,
    readonly replicas = 3,
  ) {
    const overlay = new Overlay(parents);
    this.overlay = overlay;
    this.disks = Array.from({ length: hosts }, () => new HostDisk());
    const members = Array.from({ length: replicas }, (_, member) => member % hosts);
    this.shape = {
      overlay,
      replicas,
      hosts,
      hostsOf: () => members,
      nameOf: (host) => `host ${host}`,
      firstIndex: FIRST,
    };
  }

  /** A recovery that has not begun. */
  recovery(settings: Partial<RecoverySettings> = {}): ReturnType<typeof recoverCluster> {
    const defaults = { newClusterId: CLUSTER_ID, acceptLoss: false, onLoss: () => undefined };
    return recoverCluster(this.shape, { ...defaults, ...settings });
  }

  /** Runs a recovery to its end. @param stopsBefore  throws when it is about to do this ask */
  recover(
    settings: Partial<RecoverySettings> = {},
    stopsBefore: (ask: Ask) => boolean = () => false,
  ): Recovered {
    const recovery = this.recovery(settings);
    for (let step = recovery.next(); ; ) {
      if (step.done) return step.value;
      const answers = step.value.map((ask) => {
        if (stopsBefore(ask)) throw interrupted('the test has stopped it');
        return this.answer(ask);
      });
      step = recovery.next(answers);
    }
  }

  /** As a host does. */
  answer(ask: Ask): Answer | undefined {
    if (this.down.has(ask.host)) return undefined;
    const disk = this.disks[ask.host];
    const sequence = 'group' in ask ? this.sequence(ask) : undefined;
    switch (ask.what) {
      case 'promise': {
        const isAccepted = ask.era > disk.promised;
        if (isAccepted) {
          disk.promised = ask.era;
          disk.clusterId ??= ask.clusterId;
        }
        const { promised, clusterId, acceptsLoss } = disk;
        return { isAccepted, promised, clusterId, acceptsLoss };
      }
      case 'survey': {
        const sequences = [...disk.eras].flatMap(([era, groups]) =>
          [...groups].map(([group, sequence]) => {
            const { isFirst, snapshotIndex, snapshotFromParent, end } = sequence;
            const isOpened = disk.opened.has(era);
            return { era, group, isOpened, isFirst, snapshotIndex, snapshotFromParent, end };
          }),
        );
        const hasOpened = disk.opened.size > 0;
        const { promised, firstSession } = disk;
        return { promised, sequences, hasOpened, firstSession };
      }
      case 'cut':
        return sequence && cutOf(sequence, ask.parentEnd);
      case 'entries':
        return sequence && entriesOf(sequence, ask);
      case 'open':
        return disk.promised === ask.plan.era ? this.open(ask.host, ask.plan) : undefined;
      case 'opened': {
        if (disk.promised !== ask.era) return { isMarked: false };
        disk.opened.add(ask.era);
        disk.firstSession = ask.firstSession;
        for (const era of disk.eras.keys()) if (era < ask.era) disk.eras.delete(era);
        return { isMarked: true };
      }
      case 'snapshot':
        throw new Error('no coordinator asks for this');
    }
  }

  private sequence({
    host,
    era,
    group,
  }: {
    host: number;
    era: number;
    group: number;
  }): Sequence | undefined {
    return this.disks[host].eras.get(era)?.get(group);
  }

  private open(host: number, plan: EraPlan): Opening {
    const { era, groups } = plan;
    for (const groupPlan of groups) {
      const { group, source, fromEra } = groupPlan;
      const state = this.replay(
        host,
        groupPlan,
        () => this.sequence({ host: source, era: fromEra, group })!,
      );
      this.disks[host].put(era, group, new Sequence(FIRST, FIRST, state, []));
    }
    return { groups: groups.map(({ group }) => group), lastSession: 1 };
  }

  /** As a replica does: entries are numbered without a gap, and continue what has come from the parent. */
  private replay(
    host: number,
    plan: EraPlan['groups'][number],
    source: () => Sequence,
  ): number[] | undefined {
    const own = this.sequence({ host, era: plan.fromEra, group: plan.group });
    const { snapshot, entries } = startOfEra(plan, own, source);
    const base = lackedFrom(plan, own) === undefined ? source : () => own!;
    const from = plan.fromEra === 0 ? undefined : base();
    let next = from?.snapshotIndex ?? FIRST;
    let nextFromParent = from?.snapshotFromParent ?? FIRST;
    const state = snapshot && [...snapshot];
    const ids: number[] = [];
    for (const { index, words, at, count } of entries) {
      if (index !== next++) throw new Error(`entry ${index} instead of ${next - 1}`);
      const sourceAt = at + count - SOURCE.words;
      if (words[sourceAt + SOURCE.id] === PARENT) {
        const parentIndex = words[sourceAt + SOURCE.number];
        if (parentIndex < nextFromParent) throw new Error(`from parent: ${parentIndex} again`);
        nextFromParent = parentIndex + 1;
      }
      if (isFor(words.subarray(at, at + count), plan.group)) ids.push(words[at + MESSAGE.number]);
    }
    if (state === undefined && ids.length === 0) return undefined;
    return [...(state ?? []), ...ids];
  }

  /** The messages that a group begins the era with, on the first host that has it. */
  stateOf(era: number, group: number): number[] {
    const disk = this.disks.find(({ eras }) => eras.get(era)?.has(group))!;
    return [...(disk.eras.get(era)!.get(group)!.readSnapshot() ?? [])];
  }
}

export function isFor(entry: Int32Array, group: number): boolean {
  return contains(entry[MESSAGE.destinationsLow], entry[MESSAGE.destinationsHigh], group);
}

/** An era in which clients send messages: the logs of all groups. Journals have prefixes of them. */
export class Era {
  readonly logs: Int32Array[][];
  private readonly opening: (readonly number[] | undefined)[];

  constructor(
    private readonly model: Model,
    readonly era: number,
  ) {
    this.logs = model.overlay.parents.map(() => []);
    const disk = (group: number): HostDisk | undefined =>
      model.disks.find(({ eras }) => eras.get(era)?.has(group));
    this.opening = model.overlay.parents.map((_, group) => {
      const snapshot = disk(group)?.eras.get(era)?.get(group)?.readSnapshot();
      return snapshot && [...snapshot];
    });
  }

  /** All groups order a message, from its entry group down. */
  send(
    id: number,
    destinations: readonly number[],
    reachesGroup: (group: number) => boolean = () => true,
  ): void {
    const { overlay } = this.model;
    const low = destinations.reduce((mask, group) => mask | lowMask(group), 0);
    const pass = (group: number, fromParent?: number): void => {
      if (!reachesGroup(group)) return;
      const index = FIRST + this.logs[group].push(body(id, destinations, fromParent)) - 1;
      for (const child of overlay.children(group)) {
        if (overlay.reaches(child, low, 0)) pass(child, index);
      }
    };
    pass(overlay.entryGroup(low, 0));
  }

  /** The journal of a host gets the entries of a group below `end`, after a snapshot at `snapshotIndex`. */
  write(
    host: number,
    group: number,
    end: number = FIRST + this.logs[group].length,
    snapshotIndex: number = FIRST,
  ): void {
    const log = this.logs[group];
    const before = log.slice(0, snapshotIndex - FIRST);
    const ids = before.filter((entry) => isFor(entry, group)).map(idOf);
    const opening = this.opening[group];
    const state =
      opening === undefined && snapshotIndex === FIRST ? undefined : [...(opening ?? []), ...ids];
    const kept = log.slice(snapshotIndex - FIRST, end - FIRST);
    const sequence = new Sequence(snapshotIndex, nextFromParent(before), state, kept);
    this.model.disks[host].put(this.era, group, sequence);
  }
}

/** One more than the parent's index of the last entry that came from it. */
export function nextFromParent(log: readonly Int32Array[]): number {
  let next = FIRST;
  for (const entry of log) {
    const source = entry.length - SOURCE.words;
    if (entry[source + SOURCE.id] === PARENT) next = entry[source + SOURCE.number] + 1;
  }
  return next;
}
