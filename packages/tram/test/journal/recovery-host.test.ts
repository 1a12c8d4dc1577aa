/** The hosts' side of a recovery, on disks that lose what was not synced. */
import { describe, expect, test } from 'vitest';
import { eraFolder } from '../../src/journal/format.js';
import { HostJournal } from '../../src/journal/host-journal.js';
import { readIdentity } from '../../src/journal/identity.js';
import { JournalReader } from '../../src/journal/reader.js';
import { recoverCluster } from '../../src/journal/recovery.js';
import type {
  Answer,
  Ask,
  EraPlan,
  Opening,
  SnapshotPiece,
  Survey,
} from '../../src/journal/recovery-asks.js';
import { RecoveryHost } from '../../src/journal/recovery-host.js';
import { JournalRing } from '../../src/journal/ring.js';
import { writeOpening } from '../../src/journal/snapshot-file.js';
import { startOfEra, stretchesOf } from '../../src/journal/start.js';
import { JournalWriter } from '../../src/journal/writer.js';
import { FRAME_WORDS, HEAD_WORDS } from '../../src/memory/record.js';
import type { GroupJournal } from '../../src/protocol/edges.js';
import { bodiesOf, body, FIRST, idOf, isFor, Model } from './model.js';
import { PowerDisk } from './power-disk.js';

const CLUSTER_ID = '0123456789abcdef0123456789abcdef';
const HOSTS = 3;
const GROUPS = [0, 1];
const { shape } = new Model([-1, 0]);
/** A snapshot of a member begins with its counters, all of which start again with an era. */
const COUNTERS_WORDS = 64;
const NEXT_FROM_PARENT = 5;

class Cluster {
  readonly disks = Array.from({ length: HOSTS }, () => new PowerDisk());
  private hosts = this.disks.map((disk, host) => new RecoveryHost(disk, host, GROUPS));

  /** Are entries synced when they are written? */
  isSynced = true;

  /** All hosts lose power, and start again. */
  cutPower(): void {
    for (const disk of this.disks) {
      disk.before = () => undefined;
      disk.cutPower();
    }
    this.restart();
  }

  /** All hosts end, and start again. */
  restart(): void {
    this.hosts = this.disks.map((disk, host) => new RecoveryHost(disk, host, GROUPS));
  }

  recover(): number {
    const settings = { newClusterId: CLUSTER_ID, acceptLoss: false, onLoss: () => undefined };
    const recovery = recoverCluster(shape, settings);
    for (let step = recovery.next(); ; ) {
      if (step.done) return step.value.era;
      step = recovery.next(step.value.map((ask) => this.answer(ask)));
    }
  }

  answer(ask: Ask): Answer | undefined {
    return ask.what === 'open' ? this.open(ask.host, ask.plan) : this.hosts[ask.host].answer(ask);
  }

  private open(host: number, { era, clusterId, groups }: EraPlan): Opening {
    const disk = this.disks[host];
    disk.makeFolder(eraFolder(era));
    disk.syncFolder('');
    for (const plan of groups) {
      const { group, fromEra, source, keepFrom } = plan;
      const own = this.hosts[host].sequences(fromEra, group);
      const start = startOfEra(plan, own, () => {
        const found = this.hosts[source].sequences(fromEra, group);
        return found.find(({ snapshotIndex }) => snapshotIndex === keepFrom)!;
      });
      const ids = [...(start.base?.readSnapshot()?.subarray(COUNTERS_WORDS) ?? [])];
      for (const { words, at, count } of stretchesOf([start])) {
        const entries = bodiesOf(words, at, count).filter((entry) => isFor(entry, group));
        ids.push(...entries.map(idOf));
      }
      const snapshot = new Int32Array(COUNTERS_WORDS + ids.length);
      snapshot[NEXT_FROM_PARENT] = FIRST;
      snapshot.set(ids, COUNTERS_WORDS);
      const isFirst = fromEra === 0 && ids.length === 0;
      writeOpening(disk, { clusterId, era, group, index: FIRST }, isFirst ? undefined : snapshot);
    }
    return { groups: GROUPS, lastSession: 1 };
  }

  /** The journal of a host gets these entries in the present era. */
  write(host: number, era: number, group: number, ...bodies: Int32Array[]): void {
    this.use(host, era, group, (journal) => add(journal, bodies));
  }

  /** It leaves entries out, and goes on from a snapshot of these messages at a mark, with these entries. */
  leap(
    host: number,
    era: number,
    group: number,
    { index, ids, mark }: { index: number; ids: readonly number[]; mark: number },
    ...bodies: Int32Array[]
  ): void {
    const snapshot = new Int32Array(COUNTERS_WORDS + ids.length);
    // In both groups, the same messages have the same indices.
    snapshot[NEXT_FROM_PARENT] = index;
    snapshot.set(ids, COUNTERS_WORDS);
    this.use(host, era, group, (journal) => {
      journal.leaveOut();
      journal.beginSnapshot(index, mark, true);
      journal.addPiece(snapshot);
      journal.endSnapshot();
      add(journal, bodies);
    });
  }

  private use(
    host: number,
    era: number,
    group: number,
    handOver: (journal: GroupJournal) => void,
  ): void {
    const disk = this.disks[host];
    const words = new Int32Array(JournalRing.wordsFor(GROUPS.length, 1024));
    const ring = new JournalRing(words, GROUPS.length, true);
    const reader = new JournalReader(disk);
    const starts = GROUPS.map((one) => ({ group: one, has: reader.sequence(era, one) }));
    const options = { isAwaited: true, snapshotBytes: 4096, recordWordsMax: 256 };
    const journal = new HostJournal(ring, options, starts).group(group);
    const { isSynced: syncsEachBatch } = this;
    const writing = { clusterId: CLUSTER_ID, host, era, syncsEachBatch, segmentBytes: 8192 };
    const writer = new JournalWriter(
      disk,
      new JournalRing(words, GROUPS.length, true),
      { ...writing, batchBytesMax: 2048, onDurable: () => undefined },
      starts,
      reader.segments(era),
    );
    handOver(journal);
    while (writer.step());
    writer.close();
  }

  /** The messages that a group begins an era with, by host. */
  states(era: number, group: number): number[][] {
    return this.disks.map((disk) => {
      const snapshot = new JournalReader(disk).sequence(era, group)!.readSnapshot();
      return [...(snapshot?.subarray(COUNTERS_WORDS) ?? [])];
    });
  }
}

function add(journal: GroupJournal, bodies: readonly Int32Array[]): void {
  for (const one of bodies) {
    const entry = new Int32Array(one.length + FRAME_WORDS);
    entry[0] = entry.length;
    entry.set(one, HEAD_WORDS);
    journal.add(journal.next, entry, 0, entry.length);
  }
}

/**
 * In its first era, both groups have message 1, and mark 1 with the id 2. On host 2 no journal has anything, those of host 0 have a
 * snapshot right after the mark, and those of host 1 also message 3, which follows it.
 */
function leapt(): Cluster {
  const cluster = new Cluster();
  const era = cluster.recover();
  const index = FIRST + 2;
  for (const group of GROUPS) {
    const snapshot = { index, ids: [1, 2], mark: 1 };
    const fromParent = group === 0 ? undefined : index;
    cluster.leap(0, era, group, snapshot);
    cluster.leap(1, era, group, snapshot, body(3, [0, 1], fromParent));
  }
  return cluster;
}

/** In its first era, both groups have message 1. Message 2 is in the journal of g0 on host 0 only. */
function journaled(): Cluster {
  const cluster = new Cluster();
  const era = cluster.recover();
  for (let host = 0; host < HOSTS; host++) {
    cluster.write(host, era, 0, body(1, [0, 1]), ...(host === 0 ? [body(2, [0, 1])] : []));
    cluster.write(host, era, 1, body(1, [0, 1], FIRST));
  }
  return cluster;
}

describe('a host', () => {
  test('promises an era once, durably, and no lower one after it', () => {
    const cluster = new Cluster();
    const promise = (era: number, clusterId = CLUSTER_ID): unknown =>
      cluster.answer({ what: 'promise', host: 0, era, clusterId });
    expect(promise(0)).toMatchObject({ isAccepted: false, promised: 0, clusterId: undefined });
    const accepted = { isAccepted: true, promised: 5, clusterId: CLUSTER_ID, acceptsLoss: false };
    expect(promise(5)).toEqual(accepted);
    cluster.cutPower();
    for (const era of [5, 4, 0]) expect(promise(era)).toEqual({ ...accepted, isAccepted: false });
    expect(promise(6, 'f'.repeat(32))).toEqual({ ...accepted, isAccepted: false });
  });

  test('has the journal of no other host', () => {
    const cluster = journaled();
    const host = new RecoveryHost(cluster.disks[1], 0, GROUPS);
    expect(() => host.answer({ what: 'promise', host: 0, era: 2, clusterId: CLUSTER_ID })).toThrow(
      expect.objectContaining({ code: 'TRAM_JOURNAL_MISMATCH' }),
    );
  });

  test('marks an era that it has promised, and then removes older ones', () => {
    const cluster = journaled();
    const era = cluster.recover();
    cluster.cutPower();
    expect(era).toBe(2);
    for (const disk of cluster.disks) {
      const reader = new JournalReader(disk);
      expect(reader.eras).toEqual([2]);
      expect(reader.isOpened(2)).toBe(true);
    }
    expect(cluster.answer({ what: 'opened', host: 0, era: 1, firstSession: 1 })).toEqual({
      isMarked: false,
    });
  });

  test('gives the entries of an era that it has, and none of another', () => {
    const cluster = journaled();
    const many = Array.from({ length: 20 }, (_, i) => body(100 + i, [0]));
    cluster.write(0, 1, 0, ...many);
    const below = FIRST + 2 + many.length;
    const found = new RecoveryHost(cluster.disks[0], 0, GROUPS).answer({
      what: 'entries',
      host: 0,
      group: 0,
      era: 1,
      snapshotIndex: FIRST,
      from: FIRST,
      below,
    })!;
    expect(found.next).toBe(below);
    expect(found.entries.map((entry) => idOf(entry.body))).toEqual([1, 2, ...many.map(idOf)]);
    const ask = { what: 'entries', host: 0, group: 0, snapshotIndex: FIRST, from: FIRST } as const;
    expect(cluster.answer({ ...ask, era: 9, below: 9 })).toBeUndefined();
    expect(cluster.answer({ ...ask, era: 1, snapshotIndex: FIRST + 1, below: 9 })).toBeUndefined();
  });

  test('shows snapshots at marks that do not count, and gives what follows each', () => {
    const cluster = leapt();
    const { sequences } = cluster.answer({ what: 'survey', host: 1 }) as Survey;
    const index = FIRST + 2;
    const counted = { snapshotIndex: FIRST, end: FIRST, mark: 0, lastMark: 0 };
    const pending = { snapshotIndex: index, end: index + 1, mark: 1, lastMark: 1 };
    expect(sequences).toMatchObject([
      { group: 0, ...counted },
      { group: 0, ...pending, snapshotFromParent: index },
      { group: 1, ...counted },
      { group: 1, ...pending },
    ]);
    const of = { host: 1, group: 1, era: 1 };
    const snapshot = (snapshotIndex: number) =>
      cluster.answer({ what: 'snapshot', ...of, snapshotIndex, offset: 0 }) as SnapshotPiece;
    expect([...snapshot(index).words.subarray(COUNTERS_WORDS)]).toEqual([1, 2]);
    expect(snapshot(FIRST).totalWords).toBe(0);
    const cut = (snapshotIndex: number) =>
      cluster.answer({ what: 'cut', ...of, snapshotIndex, parentEnd: 99 });
    expect(cut(index)).toEqual({ end: index + 1, nextFromParent: index + 1 });
    expect(cut(FIRST)).toEqual({ end: FIRST, nextFromParent: FIRST });
  });

  test('notes that loss is accepted until an era is open', () => {
    const cluster = journaled();
    const host = new RecoveryHost(cluster.disks[0], 0, GROUPS);
    host.acceptLoss();
    cluster.cutPower();
    const ask = { what: 'promise', host: 0, era: 0, clusterId: CLUSTER_ID } as const;
    expect(cluster.answer(ask)).toMatchObject({ acceptsLoss: true });
    cluster.recover();
    cluster.cutPower();
    expect(cluster.answer(ask)).toMatchObject({ acceptsLoss: false });
  });

  test('keeps what it has shown to a recovery, even if its power is cut then', () => {
    // 1. A host has written message 3, and ends before it is synced. The page cache still has it.
    // 2. It promises an era and is surveyed. The plan names it as the source of message 3.
    // 3. One host has fetched message 3 when the power of the source is cut. Then another one fetches.
    //    Harm: the other one opens the era without message 3, and their states differ.
    const cluster = journaled();
    cluster.isSynced = false;
    cluster.write(0, 1, 0, body(3, [0]));
    const survey = () => cluster.answer({ what: 'survey', host: 0 });
    cluster.answer({ what: 'promise', host: 0, era: 2, clusterId: CLUSTER_ID });
    const before = survey();
    expect(before).toMatchObject({ sequences: [{ group: 0, end: FIRST + 3 }, { group: 1 }] });
    cluster.cutPower();
    expect(survey()).toEqual(before);
  });

  test('does not answer with fewer entries than it was asked for', () => {
    const cluster = journaled();
    const of = { host: 0, group: 0, era: 1, snapshotIndex: FIRST } as const;
    const ask = { what: 'entries', ...of, from: FIRST } as const;
    expect(cluster.answer({ ...ask, below: FIRST + 2 })).toMatchObject({ next: FIRST + 2 });
    expect(cluster.answer({ ...ask, below: FIRST + 3 })).toBeUndefined();
  });

  test('that ended while it removed an older era is not corrupt', () => {
    const cluster = journaled();
    cluster.write(0, 1, 0, body(3, [0]));
    const [disk] = cluster.disks;
    const { remove } = disk;
    disk.remove = (path) => {
      if (path !== 'era-1') return remove.call(disk, path);
      remove.call(disk, 'era-1/segment-1');
      throw new Error('killed');
    };
    expect(() => cluster.recover()).toThrow('killed');
    disk.remove = remove;
    cluster.restart();
    const era = cluster.recover();
    expect(era).toBe(3);
    expect(cluster.states(era, 0)).toEqual(Array(HOSTS).fill([1, 2, 3]));
  });
});

describe('a power cut of all hosts', () => {
  /** Cuts the power at each call that a recovery makes, and lets another one follow. */
  function cutAnywhere(
    make: () => Cluster,
    check: (cluster: Cluster, era: number, last: number) => void,
  ): void {
    let calls = 0;
    for (let last = 0; calls >= last; last++) {
      const cluster = make();
      calls = 0;
      for (const disk of cluster.disks) {
        disk.before = () => {
          if (calls++ === last) throw new Error('power cut');
        };
      }
      try {
        cluster.recover();
      } catch (error) {
        expect(error).toEqual(new Error('power cut'));
      }
      cluster.cutPower();
      check(cluster, cluster.recover(), last);
    }
    expect(calls).toBeGreaterThan(20);
  }

  test('at any call to a disk during a recovery: the next one has all messages, in both groups', () => {
    cutAnywhere(journaled, (cluster, era, last) => {
      for (const group of GROUPS) {
        expect(cluster.states(era, group), `cut at call ${last}`).toEqual([
          [1, 2],
          [1, 2],
          [1, 2],
        ]);
      }
    });
  });

  test('at any call to a disk during a recovery from snapshots that did not count', () => {
    cutAnywhere(leapt, (cluster, era, last) => {
      for (const group of GROUPS) {
        expect(cluster.states(era, group), `cut at call ${last}`).toEqual([
          [1, 2, 3],
          [1, 2, 3],
          [1, 2, 3],
        ]);
      }
    });
  });

  test('at any call to a disk during the first start: the next one starts, without state', () => {
    cutAnywhere(
      () => new Cluster(),
      (cluster, era) => {
        for (const group of GROUPS) expect(cluster.states(era, group)).toEqual([[], [], []]);
        for (const disk of cluster.disks) expect(readIdentity(disk)?.promisedEra).toBe(era);
      },
    );
  });
});
