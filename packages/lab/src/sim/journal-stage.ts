/**
 * The journal of one host for scripted attacks: the writer, the reader and the recovery of production over a simulated disk.
 * The script hands over entries and snapshots of one group, ends the host, and cuts its power.
 */
import { eraFolder } from 'tram-multicast/internal/journal/format.js';
import { HostJournal } from 'tram-multicast/internal/journal/host-journal.js';
import { joinEra, writeIdentity } from 'tram-multicast/internal/journal/identity.js';
import { JournalReader } from 'tram-multicast/internal/journal/reader.js';
import { RecoveryHost } from 'tram-multicast/internal/journal/recovery-host.js';
import { JournalRing } from 'tram-multicast/internal/journal/ring.js';
import { type CountedSequence, entriesOf } from 'tram-multicast/internal/journal/sequence.js';
import { writeOpening } from 'tram-multicast/internal/journal/snapshot-file.js';
import { JournalWriter } from 'tram-multicast/internal/journal/writer.js';
import { FRAME_WORDS, HEAD_WORDS } from 'tram-multicast/internal/memory/record.js';
import type { GroupJournal } from 'tram-multicast/internal/protocol/edges.js';
import { Random } from './random.js';
import { PowerCut, SimulatedDisk } from './simulated-disk.js';

const CLUSTER_ID = '0123456789abcdef0123456789abcdef';
const HOST = 0;
const GROUP = 0;
const ERA = 1;
const RING_WORDS = 1024;
const RECORD_WORDS_MAX = 256;
/** Three batches fill a segment. */
const SEGMENT_BYTES = 4 * 512;
/** Most of a sector. */
const BODY_WORDS = 100;

export interface JournalStageOptions {
  /** Draws what a power cut leaves of all that is not synced. */
  readonly seed?: number;
  /** Makes every batch durable. */
  readonly syncsEachBatch?: boolean;
}

export class JournalStage {
  /** The index of the first entry. */
  static readonly firstIndex = 2;

  readonly disk: SimulatedDisk;
  readonly journal: GroupJournal;
  private readonly writer: JournalWriter;

  /** The group opens the first era, and the host runs in it. */
  constructor({ seed = 1, syncsEachBatch = true }: JournalStageOptions = {}) {
    this.disk = new SimulatedDisk(new Random(seed));
    const { disk } = this;
    writeIdentity(disk, { clusterId: CLUSTER_ID, host: HOST, promisedEra: ERA, firstSession: 1 });
    this.open(ERA);
    const starts = [{ group: GROUP, has: this.sequence }];
    const ring = new JournalRing(new Int32Array(JournalRing.wordsFor(1, RING_WORDS)), 1, true);
    const options = {
      isAwaited: syncsEachBatch,
      snapshotBytes: Number.POSITIVE_INFINITY,
      recordWordsMax: RECORD_WORDS_MAX,
    };
    this.journal = new HostJournal(ring, options, starts).group(GROUP);
    this.writer = new JournalWriter(
      disk,
      ring,
      {
        clusterId: CLUSTER_ID,
        host: HOST,
        era: ERA,
        syncsEachBatch,
        segmentBytes: SEGMENT_BYTES,
        batchBytesMax: 4 * RECORD_WORDS_MAX,
        onDurable: () => undefined,
      },
      starts,
    );
  }

  // --- the group -----------------------------------------------------------------------------

  /** Hands over an entry, and lets the journal work until it has nothing to do. */
  add(): void {
    const { journal } = this;
    const words = new Int32Array(FRAME_WORDS + BODY_WORDS);
    words[0] = words.length;
    words.fill(journal.next, HEAD_WORDS);
    journal.add(journal.next, words, 0, words.length);
    this.work();
  }

  /** Hands over a snapshot. @param mark  the number of the mark at which it was taken; 0 if at none */
  snapshot(index: number, mark = 0): void {
    const { journal } = this;
    journal.beginSnapshot(index, mark, mark > 0);
    journal.addPiece(new Int32Array(BODY_WORDS).fill(index));
    journal.endSnapshot();
    this.work();
  }

  stable(index: number): void {
    this.journal.stable(index);
    this.work();
  }

  /** The last entry is a mark. */
  mark(number: number): void {
    this.journal.mark(this.journal.next, number);
    this.work();
  }

  complete(number: number): void {
    this.journal.complete(number);
    this.work();
  }

  private work(): void {
    const { writer } = this;
    while (writer.step());
    if (!writer.isPrepared) writer.prepare();
  }

  // --- the host ------------------------------------------------------------------------------

  /** What the journal has, as a host that starts finds it. @throws TRAM_CORRUPT */
  get sequence(): CountedSequence | undefined {
    return new JournalReader(this.disk).sequence(ERA, GROUP);
  }

  /** The indices of the entries that are there as they were handed over. @throws if another one is there */
  get entries(): number[] {
    const { sequence } = this;
    return Array.from(sequence ? entriesOf(sequence) : [], ({ index, words, at, count }) => {
      if (count === BODY_WORDS && words.subarray(at, at + count).every((word) => word === index)) {
        return index;
      }
      throw new Error(`entry ${index} is not the one that was handed over`);
    });
  }

  /** Writes the opening snapshot of an era, as a host does that opens it. */
  open(era: number): void {
    const { disk } = this;
    disk.makeFolder(eraFolder(era));
    disk.syncFolder('');
    const { firstIndex: index } = JournalStage;
    writeOpening(disk, { clusterId: CLUSTER_ID, era, group: GROUP, index });
  }

  /** Joins an era that others run in. */
  join(era: number): void {
    joinEra(this.disk, HOST, era, CLUSTER_ID);
  }

  /** Its part in a recovery, after the host has started again. */
  recovery() {
    const host = new RecoveryHost(this.disk, HOST, [GROUP]);
    return {
      promise: (era: number) =>
        host.answer({ what: 'promise', host: HOST, era, clusterId: CLUSTER_ID })!,
      survey: () => host.answer({ what: 'survey', host: HOST })!,
      opened: (era: number) =>
        host.answer({ what: 'opened', host: HOST, era, firstSession: 1 })!.isMarked,
    };
  }

  // --- power cuts ----------------------------------------------------------------------------

  /**
   * Cuts the power at each call to the disk, one after the other, so many times. Each time another seed draws what is kept.
   * @param work  is interrupted by the cut
   * @param look  at what is left; gets what was durable before the cut
   */
  static cutEverywhere(
    times: number,
    prepare: (stage: JournalStage) => void,
    work: (stage: JournalStage) => void,
    look: (stage: JournalStage, durable: number) => void,
  ): void {
    let seed = 1;
    for (let time = 0; time < times; time++) {
      for (let changes = 0, wasCut = true; wasCut; changes++) {
        const stage = new JournalStage({ seed: seed++ });
        prepare(stage);
        stage.disk.throwAfter(changes);
        wasCut = stage.isCutIn(work);
        const { durable } = stage.journal;
        stage.disk.cutPower();
        look(stage, durable);
      }
    }
  }

  private isCutIn(work: (stage: JournalStage) => void): boolean {
    try {
      work(this);
      return false;
    } catch (error) {
      if (error instanceof PowerCut) return true;
      throw error;
    }
  }
}
