/**
 * One host's side of a recovery (recovery.ts): answers asks from the journal on its disk. `open` is not among them: a host
 * opens an era by starting its replicas (start.ts).
 *
 * Invariants: the promised era never goes back. A host that has promised an era takes nothing of lower ones, unless it
 * withdraws its promise (identity.ts). Older eras are removed only once a later one is marked as open, and all groups of this host are present in it.
 */
import { TramError } from '../errors.js';
import { assert } from '../protocol/assert.js';
import { MESSAGE, NOT_FROM_PARENT, parentIndexIn } from '../protocol/layout.js';
import type { Disk } from './disk.js';
import { eraFolder, eraOf, type JournalIdentity, snapshotOf } from './format.js';
import { markOpened, readIdentity, writeIdentity } from './identity.js';
import { JournalReader, settle } from './reader.js';
import {
  type AnswerTo,
  type Ask,
  type Cut,
  type Entries,
  type EntriesAsk,
  type Marked,
  NO_ERA,
  type OpenAsk,
  type OpenedAsk,
  type PromiseAsk,
  type Promised,
  type SnapshotAsk,
  type SnapshotPiece,
  type Survey,
  type SurveyedSequence,
} from './recovery-asks.js';
import { between, type GroupSequence, type JournalSequence } from './sequence.js';

/** Words of entries, or of a snapshot, in one answer; unless one entry is larger. */
const ANSWER_WORDS_MAX = 262_144;
/** Words of entries that are looked at for one answer. */
const SCAN_WORDS_MAX = 16_777_216;

/** An operator has accepted that messages get lost. Removed when an era is open. */
const ACCEPTS_LOSS_FILE = 'accepts-loss';

/** @internal What can be answered from the disk. */
export type DiskAsk = Exclude<Ask, OpenAsk>;

/** @internal */
export class RecoveryHost {
  private reader: JournalReader | undefined;
  /** The snapshot that is being asked for, piece by piece. */
  private served: { readonly sequence: GroupSequence; readonly words: Int32Array } | undefined;

  constructor(
    private readonly disk: Disk,
    private readonly host: number,
    /** Those that have members on this host. */
    private readonly groups: readonly number[],
  ) {}

  /** Undefined if the journal does not have what is asked for (any more). @throws TRAM_CORRUPT, TRAM_JOURNAL_MISMATCH */
  answer<A extends DiskAsk>(ask: A): AnswerTo<A> | undefined;
  answer(ask: DiskAsk): AnswerTo<DiskAsk> | undefined {
    switch (ask.what) {
      case 'promise':
        return this.promise(ask);
      case 'survey':
        return this.survey();
      case 'opened':
        return this.opened(ask);
    }
    const { era, group, snapshotIndex } = ask;
    const sequence = this.sequences(era, group).find((one) => one.snapshotIndex === snapshotIndex);
    if (sequence === undefined) return undefined;
    if (ask.what === 'snapshot') return this.snapshot(sequence, ask);
    if (ask.what === 'cut') return cutOf(sequence, ask.parentEnd);
    return sequence.end < ask.below ? undefined : answerEntries(sequence, ask);
  }

  /** @throws TRAM_JOURNAL_MISMATCH */
  get identity(): JournalIdentity | undefined {
    const identity = readIdentity(this.disk);
    if (identity === undefined || identity.host === this.host) return identity;
    throw new TramError(
      'TRAM_JOURNAL_MISMATCH',
      `the journal of host ${this.host} is that of host ${identity.host}`,
      { hint: 'Put the folder back in its place.' },
    );
  }

  /** What this host has of a group; empty if the era is not present in it. */
  sequences(era: number, group: number): readonly JournalSequence[] {
    this.reader ??= new JournalReader(this.disk);
    return this.reader.eras.includes(era) ? this.reader.sequences(era, group) : [];
  }

  private promise({ era, clusterId }: PromiseAsk): Promised {
    const { identity, acceptsLoss } = this;
    const promised = identity?.promisedEra ?? 0;
    const isOurs = identity === undefined || identity.clusterId === clusterId;
    if (era <= promised || !isOurs) {
      return { isAccepted: false, promised, clusterId: identity?.clusterId, acceptsLoss };
    }
    this.disk.makeFolder('');
    writeIdentity(this.disk, { ...identity, clusterId, host: this.host, promisedEra: era });
    // What it has read may have been continued until now. What it reads from now on is not lost with its power.
    settle(this.disk);
    this.reader = undefined;
    this.served = undefined;
    return { isAccepted: true, promised: era, clusterId, acceptsLoss };
  }

  survey(): Survey {
    this.reader ??= new JournalReader(this.disk);
    const sequences: SurveyedSequence[] = [];
    const oldest = this.oldestWhole;
    for (const era of this.reader.eras) {
      if (era < oldest) continue;
      const isOpened = this.reader.isOpened(era);
      for (const group of this.groups) {
        const found = this.reader.sequences(era, group);
        sequences.push(...found.map((sequence) => surveyed(sequence, group, era, isOpened)));
      }
    }
    const hasOpened = this.reader.eras.some((era) => this.reader!.isOpened(era));
    const { promisedEra: promised = NO_ERA, firstSession = 0 } = this.identity ?? {};
    return { promised, sequences, hasOpened, firstSession };
  }

  private snapshot(sequence: GroupSequence, { offset }: SnapshotAsk): SnapshotPiece {
    if (this.served?.sequence !== sequence) {
      this.served = { sequence, words: sequence.readSnapshot() ?? new Int32Array(0) };
    }
    const { words } = this.served;
    const piece = words.slice(offset, offset + ANSWER_WORDS_MAX);
    if (offset + piece.length === words.length) this.served = undefined;
    return { words: piece, totalWords: words.length };
  }

  private opened({ era, firstSession }: OpenedAsk): Marked {
    const { disk, identity } = this;
    if (identity?.promisedEra !== era) return { isMarked: false };
    if (!this.groups.every((group) => this.isPresent(era, group))) return { isMarked: false };
    this.reader = undefined;
    writeIdentity(disk, { ...identity, firstSession });
    markOpened(disk, era);
    disk.remove(ACCEPTS_LOSS_FILE);
    this.removeBefore(era);
    disk.syncFolder('');
    return { isMarked: true };
  }

  /** Eras before the last one that is open, and present in all groups of this host, may have been removed in part. */
  private get oldestWhole(): number {
    const { eras } = this.reader!;
    const replaces = (era: number): boolean =>
      this.reader!.isOpened(era) && this.groups.every((group) => this.isPresent(era, group));
    return eras.findLast(replaces) ?? NO_ERA;
  }

  private isPresent(era: number, group: number): boolean {
    return this.disk.list(eraFolder(era)).some((name) => snapshotOf(name)?.group === group);
  }

  private removeBefore(era: number): void {
    for (const name of this.disk.list('')) {
      const other = eraOf(name);
      if (other !== undefined && other < era) this.disk.remove(name);
    }
  }

  get acceptsLoss(): boolean {
    return this.disk.list('').includes(ACCEPTS_LOSS_FILE);
  }

  /** The next recovery that this host takes part in may lose messages. */
  acceptLoss(): void {
    if (this.acceptsLoss) return;
    this.disk.open(ACCEPTS_LOSS_FILE, 'create').close();
    this.disk.syncFolder('');
  }
}

/** @internal For the answer to a `SurveyAsk`. */
export function surveyed(
  { isFirst, snapshotIndex, snapshotFromParent, end, mark, lastMark }: JournalSequence,
  group: number,
  era: number,
  isOpened: boolean,
): SurveyedSequence {
  return { group, era, isOpened, isFirst, snapshotIndex, snapshotFromParent, end, mark, lastMark };
}

/** @internal Answers a `CutAsk`. */
export function cutOf(sequence: JournalSequence, parentEnd: number): Cut {
  let nextFromParent = sequence.snapshotFromParent;
  for (const part of sequence.parts) {
    if (part.nextFromParent <= parentEnd) {
      nextFromParent = Math.max(nextFromParent, part.nextFromParent);
      continue;
    }
    for (const { first, words, at, end } of between(sequence, part.first, part.end)) {
      let index = first;
      for (let body = at + 1; body <= end; body += words[body - 1] + 1) {
        const parentIndex = parentIndexIn(words, body, words[body - 1]);
        if (parentIndex >= parentEnd) return { end: index, nextFromParent };
        if (parentIndex !== NOT_FROM_PARENT) nextFromParent = parentIndex + 1;
        index++;
      }
    }
  }
  return { end: sequence.end, nextFromParent };
}

/** @internal Answers an `EntriesAsk`. */
export function answerEntries(
  sequence: JournalSequence,
  { from, below, reach }: EntriesAsk,
): Entries {
  const entries: { index: number; body: Int32Array }[] = [];
  let answered = 0;
  let scanned = 0;
  assert(from >= sequence.snapshotIndex, 'a sequence has the entries after its snapshot');
  for (const part of sequence.parts) {
    if (!meets(part.destinationsLow, part.destinationsHigh, reach)) continue;
    const first = Math.max(from, part.first);
    for (const stretch of between(sequence, first, Math.min(below, part.end))) {
      const { words, at, end } = stretch;
      let index = stretch.first;
      for (let body = at + 1; body <= end; body += words[body - 1] + 1, index++) {
        const count = words[body - 1];
        if (answered + count > ANSWER_WORDS_MAX && answered > 0) return { entries, next: index };
        if (scanned > SCAN_WORDS_MAX) return { entries, next: index };
        scanned += count;
        const low = words[body + MESSAGE.destinationsLow];
        if (!meets(low, words[body + MESSAGE.destinationsHigh], reach)) continue;
        entries.push({ index, body: words.slice(body, body + count) });
        answered += count;
      }
    }
  }
  return { entries, next: below };
}

function meets(low: number, high: number, reach: EntriesAsk['reach']): boolean {
  return reach === undefined || ((low & reach.low) | (high & reach.high)) !== 0;
}
