/**
 * Decides who gets room when the ring of a host is full. The groups of the host put records of different sizes there, and one
 * group may want to put something whenever there is room. If each just tried again, a large piece of a snapshot might never
 * find room, because smaller entries come before it; and a group whose snapshot waits might never be durable.
 *
 * So a group that finds no room waits for its *turn*: the entries of a group have one, and the pieces of its snapshot have another.
 * The room that the disk frees is kept for the first turn. Others get only room beyond that. Turns have equal shares: of those
 * that wait, the first is the one that has had the fewest words, so a snapshot does not take more of the disk than the entries
 * of a group.
 *
 * A group that waits may never come back: it may have stopped, or need no room any more. Its turn is over when others have had as much
 * room as the whole ring since it asked last, while there was room for it. Only one turn keeps room, and the ring has room for
 * more than two of them. So the others always find room in the end.
 *
 * Invariant: waiting turns are ordered by `start`, and only the first of them keeps room.
 */
import type { JournalRing } from './ring.js';

/** @internal Of one that puts records into the ring. Only `Turns` changes it. */
export class Turn {
  isWaiting = false;
  /** What it asked for last: words of contents, and records. */
  words = 0;
  records = 0;
  /** Turns are ordered by this: how many words the others had had, about, when this one began to wait. */
  start = 0;
  /** Where its last turn ended: the next one does not start before. */
  end = 0;
}

/** @internal */
export class Turns {
  /** By their starts. */
  private readonly waiting: Turn[] = [];
  /** The start of the latest turn that has ended. */
  private reached = 0;
  /** So many words were given to others since the first one asked last, while there was room for it. */
  private passedBy = 0;

  /** @param reservedRecords  for which there is always room beside what is put in turn */
  constructor(
    private readonly ring: JournalRing,
    private readonly reservedRecords: number,
  ) {}

  /** Is there room for so many records, with so many words of contents together? Otherwise it waits for its turn. */
  hasRoom(turn: Turn, words: number, records: number): boolean {
    const { ring, waiting, reservedRecords } = this;
    if (waiting.length === 0) {
      if (ring.hasRoom(words, records + reservedRecords)) return true;
    } else if (this.hasRoomBeside(waiting[0], turn, words, records)) return true;
    this.wait(turn, words, records);
    return false;
  }

  /** Is there room for another record, besides those for which there always is? It needs no turn. */
  get hasRoomForOne(): boolean {
    return this.ring.hasRoom(0, this.reservedRecords + 1);
  }

  private hasRoomBeside(first: Turn, turn: Turn, words: number, records: number): boolean {
    const { ring, reservedRecords } = this;
    if (first === turn) {
      this.passedBy = 0;
      return ring.hasRoom(words, records + reservedRecords);
    }
    const allRecords = first.records + records + reservedRecords;
    if (!ring.hasRoom(first.words + words, allRecords)) return false;
    this.passedBy += words;
    if (this.passedBy >= ring.size) this.remove(first);
    return true;
  }

  private wait(turn: Turn, words: number, records: number): void {
    const { waiting } = this;
    turn.words = words;
    turn.records = records;
    if (turn.isWaiting) return;
    turn.isWaiting = true;
    turn.start = Math.max(this.reached, turn.end);
    const after = waiting.findIndex(({ start }) => start > turn.start);
    if (after === 0) this.passedBy = 0;
    waiting.splice(after === -1 ? waiting.length : after, 0, turn);
  }

  /** It uses the room that it was given. */
  use(turn: Turn): void {
    if (!turn.isWaiting) return;
    this.reached = Math.max(this.reached, turn.start);
    turn.end = turn.start + turn.words;
    this.remove(turn);
  }

  /** It needs no room any more. */
  giveUp(turn: Turn): void {
    if (turn.isWaiting) this.remove(turn);
  }

  private remove(turn: Turn): void {
    const { waiting } = this;
    const place = waiting.indexOf(turn);
    waiting.splice(place, 1);
    turn.isWaiting = false;
    if (place === 0) this.passedBy = 0;
  }
}
