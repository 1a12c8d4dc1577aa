/**
 * A model of a cluster with journals, for tests of recovery: logs and journals are arrays, and a state is the list of the
 * messages that led to it. It decides by itself, from the definitions, what was acknowledged.
 */
import { TramError } from '../../src/errors.js';
import { interrupted } from '../../src/journal/asking.js';
import { PackedEntries } from '../../src/journal/packed-entries.js';
import {
  type Recovered,
  type RecoverySettings,
  recoverCluster,
} from '../../src/journal/recovery.js';
import type { Answer, Ask, EraPlan, Opening } from '../../src/journal/recovery-asks.js';
import { answerEntries, cutOf, surveyed } from '../../src/journal/recovery-host.js';
import type { CountedSequence, SequencePart } from '../../src/journal/sequence.js';
import type { ClusterShape } from '../../src/journal/shape.js';
import { startOfEra, stretchesOf } from '../../src/journal/start.js';
import {
  MARK,
  MESSAGE,
  markNumberIn,
  messageWords,
  NO_CLIENT,
  NOT_FROM_PARENT,
  PARENT,
  parentIndexIn,
  SOURCE,
} from '../../src/protocol/layout.js';
import { contains, lowMask, Overlay } from '../../src/protocol/overlay.js';
import { WIDE } from '../../src/protocol/wide.js';

export const FIRST = 2;
const CLUSTER_ID = '0123456789abcdef0123456789abcdef';

/**
 * The body of an entry: message `id` to these groups; from a client, or from the parent's entry `fromParent`.
 * @param mark  which mark it is; 0 if it is none
 */
export function body(
  id: number,
  destinations: readonly number[],
  fromParent?: number,
  mark = 0,
): Int32Array {
  const words = new Int32Array(messageWords(0) + SOURCE.words);
  words[MESSAGE.client] = mark > 0 ? NO_CLIENT : 0;
  words[MESSAGE.session] = mark || 1;
  words[MESSAGE.payloadBytes] = mark > 0 ? MARK : 0;
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
export class Sequence implements CountedSequence {
  /** Its disk knows that. */
  readonly group = 0;
  readonly pending: Sequence[] = [];
  readonly bytes = 0;

  /** @param before  the entries that the snapshot includes */
  constructor(
    readonly snapshotIndex: number,
    private readonly before: readonly Int32Array[],
    /** Ids of the messages that the snapshot includes; undefined if it is the first. */
    private readonly state: readonly number[] | undefined,
    readonly bodies: readonly Int32Array[],
    readonly mark = 0,
  ) {}

  get snapshotFromParent(): number {
    return nextFromParent(this.before);
  }

  get lastMark(): number {
    return Math.max(lastMark(this.before), lastMark(this.bodies));
  }

  get isFirst(): boolean {
    return this.state === undefined;
  }

  get end(): number {
    return this.snapshotIndex + this.bodies.length;
  }

  readSnapshot(): Int32Array | undefined {
    return this.state && Int32Array.from(this.state);
  }

  get store(): PackedEntries {
    const store = new PackedEntries(this.group, this.snapshotIndex);
    store.add(this.bodies);
    return store;
  }

  /** As if each entry were in a segment of its own. */
  get parts(): SequencePart[] {
    return this.bodies.map((body, i) => ({
      first: this.snapshotIndex + i,
      end: this.snapshotIndex + i + 1,
      nextFromParent: parentIndexIn(body, 0, body.length) + 1,
      destinationsLow: body[MESSAGE.destinationsLow],
      destinationsHigh: body[MESSAGE.destinationsHigh],
    }));
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
    const sequence =
      'group' in ask
        ? this.sequences(ask).find((one) => one.snapshotIndex === ask.snapshotIndex)
        : undefined;
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
          [...groups].flatMap(([group, counted]) =>
            [counted, ...counted.pending].map((one) =>
              surveyed(one, group, era, disk.opened.has(era)),
            ),
          ),
        );
        const hasOpened = disk.opened.size > 0;
        const { promised, firstSession } = disk;
        return { promised, sequences, hasOpened, firstSession };
      }
      case 'cut':
        return sequence && cutOf(sequence, ask.parentEnd);
      case 'entries':
        return sequence && answerEntries(sequence, ask);
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

  private sequences(of: { host: number; era: number; group: number }): Sequence[] {
    const counted = this.disks[of.host].eras.get(of.era)?.get(of.group);
    return counted === undefined ? [] : [counted, ...counted.pending];
  }

  private open(host: number, plan: EraPlan): Opening {
    const { era, groups } = plan;
    for (const groupPlan of groups) {
      const { group, source, fromEra, keepFrom } = groupPlan;
      const state = this.replay(host, groupPlan, () => {
        const found = this.sequences({ host: source, era: fromEra, group });
        return found.find(({ snapshotIndex }) => snapshotIndex === keepFrom)!;
      });
      this.disks[host].put(era, group, new Sequence(FIRST, [], state, []));
    }
    return { groups: groups.map(({ group }) => group), lastSession: 1 };
  }

  /** As a replica does: entries are numbered without a gap, and continue what has come from the parent. */
  private replay(
    host: number,
    plan: EraPlan['groups'][number],
    source: () => Sequence,
  ): number[] | undefined {
    const own = this.sequences({ host, era: plan.fromEra, group: plan.group });
    const start = startOfEra(plan, own, source);
    const { base } = start;
    const end = plan.keepBelow + plan.append.length;
    let next = base?.snapshotIndex ?? FIRST;
    let nextFromParent = base?.snapshotFromParent ?? FIRST;
    const snapshot = base?.readSnapshot();
    const state = snapshot && [...snapshot];
    const ids: number[] = [];
    for (const { first, count, words, at } of stretchesOf([start])) {
      if (first !== next) throw new Error(`entry ${first} instead of ${next}`);
      next += count;
      for (const body of bodiesOf(words, at, count)) {
        const parentIndex = parentIndexIn(body, 0, body.length);
        if (parentIndex !== NOT_FROM_PARENT) {
          if (parentIndex < nextFromParent) throw new Error(`from parent: ${parentIndex} again`);
          nextFromParent = parentIndex + 1;
        }
        if (isFor(body, plan.group)) ids.push(body[MESSAGE.number]);
      }
    }
    if (next !== end) throw new Error(`ends at ${next} instead of ${end}`);
    if (state === undefined && ids.length === 0) return undefined;
    return [...(state ?? []), ...ids];
  }

  /** The messages that a group begins the era with, on the first host that has it. */
  stateOf(era: number, group: number): number[] {
    const disk = this.disks.find(({ eras }) => eras.get(era)?.has(group))!;
    return [...(disk.eras.get(era)!.get(group)!.readSnapshot() ?? [])];
  }
}

/** The bodies of `count` entries that lie side by side from `at` on. */
export function bodiesOf(words: Int32Array, at: number, count: number): Int32Array[] {
  return Array.from({ length: count }, () => {
    const body = words.subarray(at + 1, at + 1 + words[at]);
    at += 1 + body.length;
    return body;
  });
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
    mark = 0,
  ): void {
    const { overlay } = this.model;
    const low = destinations.reduce((mask, group) => mask | lowMask(group), 0);
    const pass = (group: number, fromParent?: number): void => {
      if (!reachesGroup(group)) return;
      const index = FIRST + this.logs[group].push(body(id, destinations, fromParent, mark)) - 1;
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
    this.model.disks[host].put(this.era, group, this.sequence(group, end, snapshotIndex));
  }

  /** It also gets a snapshot right after a mark, which does not count, and the entries after it below `end`. */
  writePending(host: number, group: number, mark: number, end?: number): void {
    const counted = this.model.disks[host].eras.get(this.era)!.get(group)!;
    const index = this.indexAfter(group, mark)!;
    counted.pending.push(this.sequence(group, end ?? index, index, mark));
  }

  private sequence(group: number, end: number, snapshotIndex: number, mark = 0): Sequence {
    const log = this.logs[group];
    const before = log.slice(0, snapshotIndex - FIRST);
    const ids = before.filter((entry) => isFor(entry, group)).map(idOf);
    const opening = this.opening[group];
    const state =
      opening === undefined && snapshotIndex === FIRST ? undefined : [...(opening ?? []), ...ids];
    const kept = log.slice(snapshotIndex - FIRST, end - FIRST);
    return new Sequence(snapshotIndex, before, state, kept, mark);
  }

  /** The index of the entry after a mark; undefined if the group has not got it. */
  indexAfter(group: number, mark: number): number | undefined {
    const at = this.logs[group].findIndex((entry) => markNumberIn(entry, 0) === mark);
    return at < 0 ? undefined : FIRST + at + 1;
  }
}

/** The number of the last mark among entries; 0 if there is none. */
function lastMark(entries: readonly Int32Array[]): number {
  return Math.max(0, ...entries.map((entry) => markNumberIn(entry, 0)));
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

/** By group: the messages that it begins the era with. */
export function states(model: Model, era: number): number[][] {
  return model.overlay.parents.map((_, group) => model.stateOf(era, group));
}

/** The code of the error that is thrown; undefined if none is. */
export function codeOf(action: () => unknown): string | undefined {
  try {
    action();
  } catch (error) {
    if (error instanceof TramError) return error.code;
    throw error;
  }
  return undefined;
}
