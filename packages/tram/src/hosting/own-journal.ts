/**
 * The journal of this host: its folder, which it locks, and the thread that writes to it. Opened before the replicas of
 * the host start, and closed after they have stopped.
 *
 * The host runs in the last era that was opened. If its folder has none, this is its first start, or it has lost its disk.
 */
import { mkdirSync, statfsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { journalFolder } from '../config/config.js';
import { TramError } from '../errors.js';
import { FileDisk } from '../journal/disk.js';
import { HostJournal } from '../journal/host-journal.js';
import { JournalReader, settle } from '../journal/reader.js';
import { JournalRing } from '../journal/ring.js';
import type { GroupSequence } from '../journal/sequence.js';
import { journalSizes } from '../journal/sizes.js';
import { HOST } from '../memory/arena.js';
import type { GroupJournal } from '../protocol/edges.js';
import type { ClusterContext } from './cluster-context.js';
import { journalFailure } from './journal-failure.js';
import { type JournalLock, lockJournal } from './journal-lock.js';
import type { JournalThreadData, JournalThreadReport, WakeTarget } from './journal-thread.js';

/** A host does not start with less free space than this many segments. */
const SEGMENTS_FREE_MIN = 4;
const MEBIBYTE = 2 ** 20;
const LOOK_MS = 1;

/** @internal */
export class OwnJournal {
  /** Why the disk has failed, if it has. The host must end. */
  failure: TramError | undefined;
  private hasEnded = false;

  private constructor(
    readonly folder: string,
    readonly era: number,
    private readonly reader: JournalReader,
    private readonly journal: HostJournal,
    private readonly worker: Worker,
    private readonly lock: JournalLock,
  ) {
    worker.on('message', (report: JournalThreadReport) => this.onReport(report));
    worker.on('error', (error) => this.fail(error));
    worker.on('exit', () => {
      this.hasEnded = true;
    });
  }
}
