/** A journal for tests: a host's side, a ring and a writer over one disk, with small files. */
import type { Disk } from '../../src/journal/disk.js';
import { eraFolder } from '../../src/journal/format.js';
import { HostJournal } from '../../src/journal/host-journal.js';
import { writeIdentity } from '../../src/journal/identity.js';
import { JournalReader } from '../../src/journal/reader.js';
import { JournalRing } from '../../src/journal/ring.js';
import { entriesOf } from '../../src/journal/sequence.js';
import { writeOpening } from '../../src/journal/snapshot-file.js';
import { type GroupStart, JournalWriter } from '../../src/journal/writer.js';
import { FRAME_WORDS, HEAD_WORDS } from '../../src/memory/record.js';
import { MARK, MESSAGE, messageWords, NO_CLIENT, SOURCE } from '../../src/protocol/layout.js';

export const CLUSTER_ID = '0123456789abcdef0123456789abcdef';
export const FIRST_INDEX = 2;

export interface BenchOptions {
  readonly groups?: number;
  readonly syncsEachBatch?: boolean;
  readonly ringWords?: number;
  readonly segmentBytes?: number;
  readonly snapshotBytes?: number;
}

export class Bench {
  readonly host: HostJournal;
  readonly writer: JournalWriter;
  readonly ring: JournalRing;
  /** The groups of which the writer has said that they are durable further than before. */
  readonly told: number[] = [];

  /** The first start of a host, or a later one in the same era. */
  static open(disk: Disk, options: BenchOptions = {}): Bench {
    const { groups = 2 } = options;
    if (new JournalReader(disk).identity === undefined) {
      writeIdentity(disk, { clusterId: CLUSTER_ID, host: 0, promisedEra: 1, firstSession: 1 });
      disk.makeFolder(eraFolder(1));
      for (let group = 0; group < groups; group++) {
        writeOpening(disk, { clusterId: CLUSTER_ID, era: 1, group, index: FIRST_INDEX });
      }
    }
    return new Bench(disk, options);
  }

  constructor(
    readonly disk: Disk,
    options: BenchOptions,
  ) {
    const { groups = 2, syncsEachBatch = true } = options;
    const { ringWords = 1024, segmentBytes = 8192, snapshotBytes = 4096 } = options;
    const reader = new JournalReader(disk);
    const starts: GroupStart[] = Array.from({ length: groups }, (_, group) => ({
      group,
      has: reader.sequence(1, group),
    }));
    const words = new Int32Array(JournalRing.wordsFor(groups, ringWords));
    this.ring = new JournalRing(words, groups, true);
    const hostOptions = { isAwaited: syncsEachBatch, snapshotBytes, recordWordsMax: 256 };
    this.host = new HostJournal(new JournalRing(words, groups, true), hostOptions, starts);
    this.writer = new JournalWriter(
      disk,
      this.ring,
      {
        clusterId: CLUSTER_ID,
        host: 0,
        era: 1,
        syncsEachBatch,
        segmentBytes,
        batchBytesMax: 2048,
        onDurable: (group) => this.told.push(group),
      },
      starts,
      reader.segments(1),
    );
  }

  /** Hands over entries with payloads of so many bytes, and returns their bodies. */
  add(group: number, ...payloadBytes: number[]): number[][] {
    const journal = this.host.group(group);
    const entries = payloadBytes.map((bytes, i) => entry(group, journal.next + i, bytes));
    const words = Int32Array.from(entries.flat());
    journal.add(journal.next, words, 0, words.length);
    return entries.map(bodyOf);
  }

  /** Hands over a mark, as an entry. */
  mark(group: number, number: number): void {
    const journal = this.host.group(group);
    const words = Int32Array.from(entry(group, journal.next, 0));
    words[HEAD_WORDS + MESSAGE.payloadBytes] = MARK;
    words[HEAD_WORDS + MESSAGE.client] = NO_CLIENT;
    words[HEAD_WORDS + MESSAGE.session] = number;
    journal.add(journal.next, words, 0, words.length);
    journal.mark(journal.next, number);
  }

  /** Hands over a whole snapshot, in pieces. @param mark  at which it is taken; 0: at none */
  snapshot(group: number, index: number, state: readonly number[], mark = 0): void {
    const pieceWords = 100;
    const journal = this.host.group(group);
    journal.beginSnapshot(index, mark, mark > 0);
    for (let at = 0; at < state.length; at += pieceWords) {
      journal.addPiece(Int32Array.from(state.slice(at, at + pieceWords)));
    }
    journal.endSnapshot();
  }

  /** Works until there is nothing to do. */
  settle(): void {
    while (this.writer.step());
  }
}

/** An entry as in a log: its frame does not matter here. */
function entry(group: number, index: number, payloadBytes: number): number[] {
  const words = FRAME_WORDS + messageWords(payloadBytes) + SOURCE.words;
  return Array.from({ length: words }, (_, i) =>
    i === 0 ? words : (index << 16) ^ (group << 8) ^ i,
  );
}

function bodyOf(entry: number[]): number[] {
  return entry.slice(HEAD_WORDS, -1);
}

/** Bodies of a group's entries, as a reader finds them. */
export function bodiesIn(disk: Disk, group: number, from?: number): number[][] {
  const sequence = new JournalReader(disk).sequence(1, group)!;
  return Array.from(entriesOf(sequence, from), ({ words, at, count }) =>
    Array.from(words.subarray(at, at + count)),
  );
}
