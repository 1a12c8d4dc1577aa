/**
 * The journal of this host while its replicas run: its folder, which is locked, and the thread that writes to it.
 *
 * The replicas hand entries over from the moment they exist. The thread starts once the opening snapshots of the era are on the
 * disk, and takes what has gathered until then. If the disk fails, the host ends: it can no longer make anything durable.
 */
import { statfsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { TramError } from '../errors.js';
import type { Disk } from '../journal/disk.js';
import type { GroupContents, PendingContents } from '../journal/group-progress.js';
import { HostJournal } from '../journal/host-journal.js';
import { JournalRing } from '../journal/ring.js';
import type { Scan } from '../journal/scan.js';
import { journalSizes } from '../journal/sizes.js';
import { type ReplicaStart, replayTogether } from '../journal/start.js';
import type { JournalStatus } from '../journal/status.js';
import type { GroupStart } from '../journal/writer.js';
import type { GroupJournal } from '../protocol/edges.js';
import type { Replica } from '../protocol/replica.js';
import { journalFailure, systemFailure } from './journal-failure.js';
import { type JournalLock, lockJournal } from './journal-lock.js';
import type { JournalThreadData, JournalThreadReport, WakeTarget } from './journal-thread.js';

/** @internal What the replicas of a host start from. */
export interface JournalStart {
  readonly disk: Disk;
  readonly era: number;
  readonly clusterId: string;
  /** What the journal has of a group once its replicas have begun; undefined if it lacks the state. */
  has(group: number): GroupContents | undefined;
  /** What the replicas of each group replay; those of other groups fetch the state. */
  readonly starts: readonly ReplicaStart[];
  /** Called repeatedly while the replicas replay. */
  onReplayed(entries: number): void;
  /** Once all replicas of the host have begun: makes the opening snapshots durable, or does nothing within an era. */
  open(replicas: readonly Replica[]): void;
  /** The segments that the era has then. */
  scan(): Scan;
}

/** @internal */
export interface OwnJournalOptions {
  readonly folder: string;
  readonly host: number;
  /** The groups of its replicas, ascending. */
  readonly groups: readonly number[];
  /** All groups of the cluster. */
  readonly groupCount: number;
  /** With `durability: 'always'`. */
  readonly isAwaited: boolean;
  readonly snapshotBytes: number;
  readonly entryWordsMax: number;
  readonly wakes: WakeTarget;
}

/** A host does not start with less free space than for this many segments. */
const FREE_SEGMENTS_MIN = 4;
const MEBIBYTE = 2 ** 20;
const LOOK_MS = 1;
/** How long replicas keep the thread while they replay. */
const SLICE_MS = 50;

/** @internal */
export class OwnJournal {
  /** Why the disk has failed, if it has. */
  failure: TramError | undefined;
  readonly era: number;
  /** The replicas of these groups begin by opening the era. */
  readonly openedGroups: readonly number[];
  private readonly buffer: SharedArrayBuffer;
  private readonly ring: JournalRing;
  private readonly journal: HostJournal;
  private readonly starts: readonly GroupStart[];
  /** Until the journal thread runs: it may hold states and entries that other hosts have given. */
  private start: JournalStart | undefined;
  private worker: Worker | undefined;
  private isReady = false;
  private hasEnded = false;

  private constructor(
    private readonly options: OwnJournalOptions,
    start: JournalStart,
    private readonly lock: JournalLock,
  ) {
    this.start = start;
    this.era = start.era;
    const opening = start.starts.filter(({ opensEra }) => opensEra);
    this.openedGroups = opening.map(({ group }) => group);
    const { groups, groupCount, isAwaited, snapshotBytes, entryWordsMax } = options;
    const { ringWords, recordWordsMax } = journalSizes(entryWordsMax);
    this.buffer = new SharedArrayBuffer(JournalRing.wordsFor(groupCount, ringWords) * 4);
    this.ring = new JournalRing(new Int32Array(this.buffer), groupCount, isAwaited);
    this.starts = groups.map((group) => {
      const found = start.has(group);
      if (found === undefined) return { group };
      // Plain data, for the thread.
      const { snapshotIndex, end, lastMark, bytes } = found;
      const pending = found.pending.map(plain);
      return { group, has: { snapshotIndex, end, lastMark, bytes, pending } };
    });
    const hostOptions = { isAwaited, snapshotBytes, recordWordsMax };
    this.journal = new HostJournal(this.ring, hostOptions, this.starts);
  }

  /**
   * @param begin  reads the journal, once its folder is locked
   * @throws TRAM_JOURNAL_IN_USE; TRAM_JOURNAL_FAILED if there is little space, or the disk fails; what `begin` throws
   */
  static async open(options: OwnJournalOptions, begin: () => JournalStart): Promise<OwnJournal> {
    const lock = await lockJournal(options.folder);
    try {
      requireSpace(options);
      return new OwnJournal(options, begin(), lock);
    } catch (error) {
      await lock.release();
      throw systemFailure(options.folder, error);
    }
  }

  group(group: number): GroupJournal {
    return this.journal.group(group);
  }

  /** The replicas begin from the journal. Timers and signals get their turn meanwhile. @throws TRAM_CORRUPT */
  async replay(replicas: readonly Replica[]): Promise<void> {
    const start = this.start!;
    let pausedMs = performance.now();
    for (const replayed of replayTogether(start.starts, replicas)) {
      start.onReplayed(replayed);
      if (performance.now() - pausedMs < SLICE_MS) continue;
      await new Promise((resolve) => setImmediate(resolve));
      pausedMs = performance.now();
    }
  }

  /** The replicas have begun: opens the era, and resolves when the journal thread runs. @throws TRAM_JOURNAL_FAILED */
  async run(replicas: readonly Replica[]): Promise<void> {
    const { options, buffer, starts } = this;
    const start = this.start!;
    this.start = undefined;
    const { folder, host, groupCount, isAwaited, entryWordsMax, wakes } = options;
    try {
      start.open(replicas);
    } catch (error) {
      throw journalFailure(folder, error);
    }
    const { era, clusterId } = start;
    const { batchBytesMax, segmentBytes } = journalSizes(entryWordsMax);
    const { segments, lastBatch } = start.scan();
    const data: JournalThreadData = {
      buffer,
      groups: groupCount,
      folder,
      options: { clusterId, host, era, syncsEachBatch: isAwaited, segmentBytes, batchBytesMax },
      starts,
      segments: { segments, lastBatch },
      wakes,
    };
    const worker = new Worker(new URL('./journal-thread.js', import.meta.url), {
      workerData: data,
    });
    this.worker = worker;
    worker.on('message', (report: JournalThreadReport) => {
      if (report.what === 'ready') this.isReady = true;
      else this.fail(Object.assign(new Error(report.message), { code: report.code }));
    });
    worker.on('error', (error) => this.fail(error));
    worker.on('exit', () => {
      this.hasEnded = true;
    });
    await this.until(() => this.isReady);
  }

  /** After each turn of the host. */
  endTurn(): void {
    this.journal.endTurn();
  }

  /** What the journal thread has done. */
  get status(): JournalStatus {
    return this.ring.status;
  }

  /** Resolves when all that was handed over is durable. @throws TRAM_JOURNAL_FAILED */
  async flush(): Promise<void> {
    this.journal.askToFlush();
    await this.until(() => this.journal.isFlushed);
  }

  /** Ends the thread and releases the folder. What was not flushed may be lost. */
  async close(): Promise<void> {
    this.journal.close();
    while (this.worker !== undefined && !this.hasEnded) await pause();
    await this.lock.release();
  }

  private fail(cause: unknown): void {
    this.failure ??= journalFailure(this.options.folder, cause);
  }

  private async until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) {
      if (this.failure !== undefined) throw this.failure;
      if (this.hasEnded) throw journalFailure(this.options.folder, new Error('its thread ended'));
      await pause();
    }
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, LOOK_MS));
}

/** @throws TRAM_JOURNAL_FAILED */
function requireSpace({ folder, entryWordsMax }: OwnJournalOptions): void {
  const { bavail, bsize } = statfsSync(folder);
  const needed = FREE_SEGMENTS_MIN * journalSizes(entryWordsMax).segmentBytes;
  if (bavail * bsize >= needed) return;
  const mebibytes = (bytes: number): number => Math.floor(bytes / MEBIBYTE);
  throw new TramError(
    'TRAM_JOURNAL_FAILED',
    `the journal ${folder} needs ${mebibytes(needed)} MiB to start, and its disk has ${mebibytes(bavail * bsize)} MiB free`,
    { hint: 'Free space on the disk, or choose another directory for `journal`.' },
  );
}

function plain({ snapshotIndex, mark, end, lastMark }: PendingContents): PendingContents {
  return { snapshotIndex, mark, end, lastMark };
}
