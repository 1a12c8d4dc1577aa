/**
 * The journal thread of a host: the entry point of a worker that the host starts (`own-journal.ts`). It runs the writer of
 * the journal, so that the thread that runs replicas never waits for the disk. It sleeps when there is nothing to write.
 *
 * When a group is durable further than before, it sets the ready flags of the group's replicas and wakes the host. If the
 * disk fails, it tells the host and ends: nobody knows what is durable after a failed sync.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { FileDisk } from '../journal/disk.js';
import { eraFolder } from '../journal/format.js';
import { JournalRing } from '../journal/ring.js';
import type { SegmentsStart } from '../journal/segments.js';
import { type GroupStart, JournalWriter, type WriterOptions } from '../journal/writer.js';
import { wake } from '../memory/fabric/waiting.js';
import { endPark } from '../memory/shared.js';
import { nowUs } from './clock.js';
import { openArena } from './open-arena.js';

export interface JournalThreadData {
  /** For the ring and the board. */
  readonly buffer: SharedArrayBuffer;
  /** All groups of the cluster. */
  readonly groups: number;
  readonly folder: string;
  readonly options: Omit<WriterOptions, 'onDurable'>;
  readonly starts: readonly GroupStart[];
  readonly segments: SegmentsStart;
  readonly wakes: WakeTarget;
}

/** The host that is to be woken. */
export interface WakeTarget {
  /** The arena, or its path. */
  readonly arena: SharedArrayBuffer | string;
  /** The word that says whether the host is parked. */
  readonly parked: number;
  /** By group: the ready flags of its replicas on the host. */
  readonly ready: readonly (readonly number[])[];
  /** On machines, where a host parks in its network: what ends that. */
  readonly descriptor?: number | undefined;
}

/** What it tells the host. */
export type JournalThreadReport =
  | { readonly what: 'ready' }
  /** Of the error that the disk has thrown. */
  | { readonly what: 'failed'; readonly code: string | undefined; readonly message: string };

/** With `everySecond`: how often it writes, and how often it makes durable what it has written. */
const WRITE_MS = 200;
const SYNC_US = 1_000_000;
/** With `always`, every record wakes it. */
const SLEEP_MS = 1000;
/** With `always`: after so long without work it prepares the next segment. With `everySecond`, nobody waits for a sync. */
const IDLE_MS = 1;

const { buffer, groups, folder, options, starts, segments, wakes } =
  workerData as JournalThreadData;
const ring = new JournalRing(new Int32Array(buffer), groups, options.syncsEachBatch);
const arena = openArena(wakes.arena);
let isAdvanced = false;
/** The size of the era's files. */
let bytes = 0;

try {
  run();
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  tell({ what: 'failed', code, message });
} finally {
  arena.close();
}

function tell(report: JournalThreadReport): void {
  parentPort!.postMessage(report);
}

function run(): void {
  const onDurable = (group: number): void => {
    for (const flag of wakes.ready[group]) Atomics.store(arena.words, flag, 1);
    isAdvanced = true;
  };
  const disk = new FileDisk(folder);
  const writer = new JournalWriter(disk, ring, { ...options, onDurable }, starts, segments);
  work(writer);
  if (options.syncsEachBatch) writer.prepare(options.segmentBytes);
  bytes = bytesOnDisk();
  tell({ what: 'ready' });
  serve(writer);
  writer.close();
}

function serve(writer: JournalWriter): void {
  const restMs = options.syncsEachBatch ? SLEEP_MS : WRITE_MS;
  let syncedUs = nowUs();
  while (!ring.isClosed) {
    const prepares = options.syncsEachBatch && !writer.isPrepared;
    const isWoken = ring.sleep(prepares ? IDLE_MS : restMs);
    if (prepares && !isWoken) writer.prepare();
    if (nowUs() - syncedUs >= SYNC_US) {
      syncedUs = nowUs();
      writer.wantSync();
      bytes = bytesOnDisk();
    }
    work(writer);
    flush(writer);
  }
}

function flush(writer: JournalWriter): void {
  const flush = ring.flushWanted;
  if (flush === undefined) return;
  do writer.wantSync();
  while (writer.step());
  wakeHost();
  ring.publishFlushed(flush);
}

/** Writes what there is. */
function work(writer: JournalWriter): void {
  for (let hasWorked = true; hasWorked; ) {
    const { syncs } = writer;
    const startedUs = nowUs();
    hasWorked = writer.step();
    if (isAdvanced) wakeHost();
    if (writer.syncs > syncs) publishStatus(writer, nowUs() - startedUs);
  }
}

function publishStatus({ syncs, syncedBytes, pendingSnapshots }: JournalWriter, us: number): void {
  const syncedAtMs = Date.now();
  const lastSyncNs = us * 1000;
  ring.publishStatus({ bytes, syncs, syncedBytes, syncedAtMs, lastSyncNs, pendingSnapshots });
}

function bytesOnDisk(): number {
  const era = join(folder, eraFolder(options.era));
  const names = readdirSync(era);
  return names.reduce((sum, name) => sum + statSync(join(era, name)).size, 0);
}

function wakeHost(): void {
  isAdvanced = false;
  const { parked, descriptor } = wakes;
  if (!endPark(arena.words, parked)) return;
  if (descriptor === undefined) arena.parking.wake(parked);
  else wake(descriptor);
}
