/**
 * Scripted attacks on the ring between the replicas of a host and its journal: a group that puts something whenever there is room
 * does not starve another one.
 */
import { expect } from 'vitest';
import type { Subject } from '../../src/sim/mutations/mutant.js';
import { attack } from '../protocol/attack.js';

const HARM = /expected .+ to/;
const RING_WORDS = 1024;
const GROUPS = 3;
const ENTRY_WORDS = 20;
const PIECE_WORDS = 200;
/** In so many steps of the disk, everybody gets room several times. */
const STEPS = 400;

/** The journal of a host with three groups, whose entries all have the same size, and a disk that takes records one by one. */
function stage({ HostJournal, JournalRing }: Subject) {
  const words = new Int32Array(JournalRing.wordsFor(GROUPS, RING_WORDS));
  const disk = new JournalRing(words, GROUPS, true);
  const options = { isAwaited: true, snapshotBytes: 1e9, recordWordsMax: PIECE_WORDS };
  const has = { snapshotIndex: 1, end: 1, lastMark: 0, pending: [] };
  const starts = Array.from({ length: GROUPS }, (_, group) => ({ group, has }));
  const journal = new HostJournal(new JournalRing(words, GROUPS, true), options, starts);
  const groups = starts.map(({ group }) => journal.group(group));
  const [busy] = groups;
  const entry = new Int32Array(ENTRY_WORDS).fill(ENTRY_WORDS);
  const record = { kind: 0, group: 0, index: 0, words: 0, position: 0 };
  return {
    groups,
    /** The quorum needs the first group: it puts an entry whenever there is room. */
    fill: () => {
      while (busy.hasRoom(ENTRY_WORDS)) busy.add(busy.next, entry, 0, ENTRY_WORDS);
    },
    takes: () => {
      if (disk.peek(record)) disk.take(record);
    },
  };
}

attack(
  'a snapshot that waits for room gets it, although another group fills the ring again and again',
  { 'turns-not-kept': HARM },
  (subject) => {
    // 1. A group has left entries out, and begins its snapshot at a mark. The disk is slow.
    // 2. Whatever the disk takes, a group whose quorum needs this host puts new entries there.
    //    Harm: the snapshot never gets on, and what the first group delivers is never durable here.
    const { groups, fill, takes } = stage(subject);
    const [, snapshotting] = groups;
    fill();
    snapshotting.leaveOut();
    expect(snapshotting.wantsMark).toBe(true);
    snapshotting.beginSnapshot(10, 1, true);
    let pieces = 0;
    for (let i = 0; i < STEPS; i++) {
      takes();
      fill();
      if (!snapshotting.hasRoomForPiece(PIECE_WORDS)) continue;
      snapshotting.addPiece(new Int32Array(PIECE_WORDS));
      pieces++;
    }
    expect(pieces).toBeGreaterThan(10);
  },
);

attack(
  'a group that asked for room and never comes back does not hold up the others',
  { 'turn-never-over': HARM },
  (subject) => {
    // 1. A member asks for room for a snapshot, and stops.
    // 2. Another group waits for room as well, while a third one fills the ring again and again.
    //    Harm: the room is kept for the one that has stopped, and the third group takes the rest before the other one.
    const { groups, fill, takes } = stage(subject);
    const [, gone, waiting] = groups;
    fill();
    expect(gone.hasRoomForPiece(PIECE_WORDS)).toBe(false);
    let pieces = 0;
    for (let i = 0; i < STEPS; i++) {
      takes();
      fill();
      if (!waiting.hasRoomForPiece(PIECE_WORDS)) continue;
      waiting.addPiece(new Int32Array(PIECE_WORDS));
      pieces++;
    }
    expect(pieces).toBeGreaterThan(10);
  },
);
