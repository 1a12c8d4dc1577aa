/**
 * The side of the leaders of the copy-only loop: one thread that does the copying of all of them. In each turn it first does
 * what clients wait for: copies to the leader and to as many members as make a majority, feeds of the leaders of children,
 * replies. The other members get their copies afterwards.
 */
import type { Places } from 'tram-multicast/internal/memory/record.js';
import type { Copier } from './copier.js';
import { headOf, LEADER, type Plan, RECORD, REPLY_WORDS } from './plan.js';

interface Child {
  readonly group: number;
  /** By member. */
  readonly feeds: readonly Places[];
  readonly feedEnds: readonly number[];
  /** How far the feed was written, and how far in the turn before. */
  end: number;
  endBefore: number;
}

interface Group {
  readonly group: number;
  /** By member. */
  readonly logs: readonly Places[];
  readonly children: readonly Child[];
  readonly feed: Places;
  readonly feedEndAt: number;
  /** By client. */
  readonly inboxes: readonly Places[];
  /** How far each inbox was read, and the number of the next record there. */
  readonly inboxPositions: Int32Array;
  readonly inboxNumbers: Int32Array;
  feedPosition: number;
  /** How far the log was written, and how far in the turn before. */
  end: number;
  endBefore: number;
}

export class Leaders {
  private readonly groups: readonly Group[];
  private readonly words: Int32Array;
  private readonly majority: number;
  private readonly replicas: number;

  constructor(
    private readonly copier: Copier,
    private readonly plan: Plan,
  ) {
    this.words = copier.words;
    this.replicas = plan.load.sizes.replicas;
    this.majority = (this.replicas >> 1) + 1;
    this.groups = plan.groups.map((group) => this.groupOf(group));
  }

  /** One turn of all leaders. Returns how many entries were written. */
  step(): number {
    let entries = 0;
    for (let i = 0; i < this.groups.length; i++) entries += this.lead(this.groups[i]);
    if (entries > 0) for (let i = 0; i < this.groups.length; i++) this.copyRest(this.groups[i]);
    return entries;
  }

  private lead(group: Group): number {
    group.endBefore = group.end;
    this.takeFromParent(group);
    this.takeFromClients(group);
    const words = (group.end - group.endBefore) | 0;
    if (words === 0) return 0;
    for (let member = 1; member < this.majority; member++) this.copyLog(group, member);
    this.forward(group);
    this.reply(group);
    return words / this.plan.entryWords;
  }

  private takeFromParent(group: Group): void {
    const { feedPosition } = group;
    const end = this.words[group.feedEndAt];
    const words = (end - feedPosition) | 0;
    if (words === 0) return;
    this.copier.copy(group.feed, feedPosition, group.logs[LEADER], group.end, words);
    group.end = (group.end + words) | 0;
    group.feedPosition = end;
  }

  private takeFromClients(group: Group): void {
    let room = this.plan.batchEntries;
    for (let client = 0; client < group.inboxes.length && room > 0; client++) {
      room -= this.takeFrom(group, client, room);
    }
  }

  private takeFrom(group: Group, client: number, entriesMax: number): number {
    const { copier, plan, words } = this;
    const { at, mask } = group.inboxes[client];
    const { inboxRecordWords, entryWords } = plan;
    let position = group.inboxPositions[client];
    let number = group.inboxNumbers[client];
    let count = 0;
    let last = 0;
    while (count < entriesMax) {
      const place = at + ((position + count * inboxRecordWords) & mask);
      if (words[place] !== headOf(number + count)) break;
      last = place;
      count++;
    }
    if (count === 0) return 0;
    // No body is read before the heads.
    Atomics.load(words, last);
    for (let i = 0; i < count; i++) {
      copier.copy(group.inboxes[client], position, group.logs[LEADER], group.end, inboxRecordWords);
      position = (position + inboxRecordWords) | 0;
      group.end = (group.end + entryWords) | 0;
    }
    number = (number + count) | 0;
    group.inboxPositions[client] = position;
    group.inboxNumbers[client] = number;
    return count;
  }

  private copyLog({ logs, end, endBefore }: Group, member: number): void {
    this.copier.copy(logs[LEADER], endBefore, logs[member], endBefore, (end - endBefore) | 0);
  }

  /** To the leader of each child. */
  private forward(group: Group): void {
    const { children } = group;
    for (let i = 0; i < children.length; i++) {
      const child = children[i];
      child.endBefore = child.end;
      child.end = this.feed(group, child, LEADER);
      if (child.end !== child.endBefore) this.words[child.feedEnds[LEADER]] = child.end;
    }
  }

  /** Write the new entries that go to a child, as few long pieces of the log, to one member's feed. Returns its new end. */
  private feed(group: Group, child: Child, member: number): number {
    const { copier, plan, words } = this;
    const { isReached, entryWords } = plan;
    const { at, mask } = group.logs[LEADER];
    const groups = this.groups.length;
    let end = child.endBefore;
    let run = 0;
    for (let position = group.endBefore; ; position = (position + entryWords) | 0) {
      const isThere = position !== group.end;
      const set = isThere ? words[at + ((position + RECORD.set) & mask)] : 0;
      if (isThere && isReached[set * groups + child.group] === 1) {
        run += entryWords;
        continue;
      }
      if (run > 0) {
        copier.copy(group.logs[LEADER], (position - run) | 0, child.feeds[member], end, run);
        end = (end + run) | 0;
        run = 0;
      }
      if (!isThere) return end;
    }
  }

  private reply(group: Group): void {
    const { copier, plan, words } = this;
    const { isDestination, entryWords } = plan;
    const { at, mask } = group.logs[LEADER];
    const groups = this.groups.length;
    for (let from = group.endBefore; from !== group.end; from = (from + entryWords) | 0) {
      const set = words[at + ((from + RECORD.set) & mask)];
      if (isDestination[set * groups + group.group] === 0) continue;
      const serial = words[at + ((from + RECORD.serial) & mask)];
      const client = words[at + ((from + RECORD.client) & mask)];
      const to = plan.reply(client, group.group, words[at + ((from + RECORD.slot) & mask)]);
      for (let i = REPLY_WORDS - 1; i > 0; i--) words[to + i] = serial;
      copier.publish(to, headOf(serial));
    }
  }

  /** What nobody waits for. */
  private copyRest(group: Group): void {
    if (group.end === group.endBefore) return;
    for (let member = this.majority; member < this.replicas; member++) this.copyLog(group, member);
    const { children } = group;
    for (let i = 0; i < children.length; i++) {
      const child = children[i];
      if (child.end === child.endBefore) continue;
      for (let member = 1; member < this.replicas; member++) {
        this.feed(group, child, member);
        this.words[child.feedEnds[member]] = child.end;
      }
    }
  }

  private groupOf(group: number): Group {
    const { plan } = this;
    const { clients, sizes } = plan.load;
    const members = Array.from({ length: sizes.replicas }, (_, member) => member);
    return {
      group,
      logs: members.map((member) => plan.log(group, member)),
      children: plan.overlay.children(group).map((child) => ({
        group: child,
        feeds: members.map((member) => plan.feed(child, member)),
        feedEnds: members.map((member) => plan.feedEnd(child, member)),
        end: 0,
        endBefore: 0,
      })),
      feed: plan.feed(group, LEADER),
      feedEndAt: plan.feedEnd(group, LEADER),
      inboxes: Array.from({ length: clients }, (_, client) => plan.inbox(group, LEADER, client)),
      inboxPositions: new Int32Array(clients),
      inboxNumbers: new Int32Array(clients),
      feedPosition: 0,
      end: 0,
      endBefore: 0,
    };
  }
}
