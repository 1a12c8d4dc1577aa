/**
 * How the feed of a child group gets into the memory of one of its members: its start, its entries, its end with our gates
 * beside it, and the wake that follows. feed.ts decides what is posted to whom, and in which order.
 */
import { type Memory, OPEN, type ParticipantId } from '../../memory/contract.js';
import {
  commonRun,
  FRAME_WORDS,
  HEAD_WORDS,
  type Places,
  placeOf,
  seal,
  slotAt,
  type Window,
} from '../../memory/record.js';
import { FEED_GATES, FEED_START, GATES_AFTER_END } from '../layout.js';
import { SlotWriter } from '../leadership/slots.js';
import type { Member } from '../member.js';
import { failureTagOf, KIND } from '../tags.js';
import { writeWide } from '../wide.js';

const END_AND_GATES_WORDS = GATES_AFTER_END + FRAME_WORDS + FEED_GATES.words;

export class FeedWriter {
  /** Without gates, the end is a single word. */
  readonly tellsGates: boolean;
  private readonly memory: Memory;
  private readonly incarnation: number;
  private readonly isStrict: boolean;
  private readonly firstMember: ParticipantId;
  private readonly replicas: number;
  /** Where our feed lies at a child member: its start, its end, and the ring. */
  private readonly startAt: number;
  private readonly endAt: number;
  private readonly ring: Places;
  private readonly tag: number;
  private readonly startSlot = new SlotWriter(FEED_START.words);
  private startWrites = 0;
  private readonly endAndGates = new Int32Array(END_AND_GATES_WORDS);
  private readonly gatesRecord: Window = slotAt(this.endAndGates, GATES_AFTER_END);
  private gateWrites = 0;

  constructor(
    member: Member,
    /** The child's place among this group's children. */
    place: number,
  ) {
    const { layout, edges } = member;
    this.memory = edges.memory;
    this.incarnation = member.incarnation;
    this.isStrict = edges.order === 'strict';
    this.tellsGates = this.isStrict || edges.journal !== undefined;
    this.firstMember = layout.replicaParticipant(member.children[place], 0);
    this.replicas = member.replicas;
    this.startAt = layout.feedStart(member.index);
    this.endAt = layout.feedEnd(member.index);
    this.ring = { at: layout.feedRing(member.index), mask: layout.feedWords - 1 };
    this.tag = failureTagOf(KIND.feed, place);
  }

  /** Tell a child member, in this incarnation of it, that the feed starts here. */
  start(other: number, incarnation: number, epoch: number, index: number, position: number): void {
    const { memory, startSlot, startAt, tag } = this;
    const { body } = startSlot;
    body[FEED_START.epoch] = epoch;
    body[FEED_START.incarnation] = incarnation;
    writeWide(body, FEED_START.index, index);
    body[FEED_START.position] = position;
    const peer = this.firstMember + other;
    const number = ++this.startWrites;
    startSlot.post(memory, peer, startAt, FEED_START.words, this.incarnation, number, tag);
  }

  /** Tell a child member that the feed ends here, and our gates. */
  end(other: number, position: number, gate: number, recoverable: number): void {
    const { memory, endAt, tag, endAndGates } = this;
    const peer = this.firstMember + other;
    if (!this.tellsGates) {
      memory.writeWord(peer, endAt, position, OPEN, tag);
      return;
    }
    const body = GATES_AFTER_END + HEAD_WORDS;
    endAndGates[0] = position;
    // Without strict order the gate is infinite, and no child looks at it.
    writeWide(endAndGates, body + FEED_GATES.strict, this.isStrict ? gate : 0);
    writeWide(endAndGates, body + FEED_GATES.recoverable, recoverable);
    const number = ++this.gateWrites;
    seal(this.gatesRecord, 0, FEED_GATES.words, this.incarnation, number);
    memory.write(peer, endAt, endAndGates, 0, END_AND_GATES_WORDS, OPEN, tag);
  }

  /** Copy from the log to the feed at a child member; either may wrap. */
  write(other: number, log: Window, logPosition: number, position: number, count: number): void {
    const { memory, ring, tag } = this;
    const peer = this.firstMember + other;
    for (let done = 0; done < count; ) {
      const from = placeOf(log, logPosition + done);
      const to = placeOf(ring, position + done);
      const run = commonRun(log, logPosition + done, ring, position + done, count - done);
      memory.write(peer, to, log.words, from, run, OPEN, tag);
      done += run;
    }
  }

  /** Wake the child's leader as we know it. When only the others get what they were owed, it has nothing new to look at. */
  wakeLeader(leader: number): void {
    this.memory.wake(this.firstMember + leader, true);
  }

  /** If that has ended, the others are woken too; otherwise they are in no hurry. */
  wakeOthers(leader: number): void {
    const { memory, firstMember } = this;
    const isGone = memory.hasEnded(firstMember + leader);
    for (let other = 0; other < this.replicas; other++)
      if (other !== leader) memory.wake(firstMember + other, isGone);
  }
}
