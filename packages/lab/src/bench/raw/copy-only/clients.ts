/**
 * The clients of the copy-only loop, all in one thread: they keep messages in flight as the clients of TRAM do, and wait for a
 * reply from each destination.
 */
import { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import type { Places } from 'tram-multicast/internal/memory/record.js';
import type { Copier } from './copier.js';
import { headOf, LEADER, type Plan, RECORD, REPLY_WORDS } from './plan.js';

export class Clients {
  /** Messages that all destinations have replied to. */
  answered = 0;
  /** Nanoseconds from the offer of a message to its last reply. */
  latency: Histogram = Histogram.empty();
  /** When the last replies were found. */
  nowMs = 0;
  private readonly clients: readonly Client[];
  private isStopped = false;

  constructor(
    private readonly copier: Copier,
    readonly plan: Plan,
    /** Called for each new record, to change its contents; for tests. */
    private readonly fill?: (mirror: Places, position: number, serial: number) => void,
  ) {
    const { words } = copier;
    for (let i = 0; i < plan.inboxRecordWords; i++) words[plan.template.at + i] = i;
    this.clients = Array.from({ length: plan.load.clients }, (_, i) => new Client(plan, i));
    this.nowMs = performance.now();
  }

  get outstanding(): number {
    return this.clients.reduce((sum, client) => sum + client.outstanding, 0);
  }

  /** Offers no more messages. */
  stop(): void {
    this.isStopped = true;
  }

  /** Collect replies, then send new messages. Returns how much was done. */
  step(): number {
    let answered = 0;
    let sent = 0;
    for (let i = 0; i < this.clients.length; i++) answered += this.collect(this.clients[i]);
    if (answered > 0) {
      this.nowMs = performance.now();
      this.answered += answered;
    }
    for (let i = 0; i < this.clients.length; i++) {
      const client = this.clients[i];
      this.note(client);
      if (!this.isStopped) sent += this.send(client);
    }
    return answered + sent;
  }

  /** Returns how many messages have all their replies now. */
  private collect(client: Client): number {
    const { outboxes } = client;
    let answered = 0;
    for (let i = 0; i < outboxes.length; i++) {
      const outbox = outboxes[i];
      while (outbox.length > 0 && this.isAnswered(client, outbox)) {
        client.noteAnswered(outbox.takeFirst());
        outbox.oldest = (outbox.oldest + this.plan.inboxRecordWords) | 0;
        answered++;
      }
    }
    return answered;
  }

  /** Take the replies to the oldest message of an outbox, in the order in which the leaders work. */
  private isAnswered(client: Client, outbox: Outbox): boolean {
    const { plan, copier } = this;
    const { words } = copier;
    const destinations = plan.destinations[outbox.firstSet];
    const head = headOf(outbox.firstSerial);
    for (; outbox.replies < destinations.length; outbox.replies++) {
      const at = plan.reply(client.index, destinations[outbox.replies], outbox.firstSlot);
      // The second load keeps those of the body behind it.
      if (words[at] !== head || Atomics.load(words, at) !== head) return false;
      for (let i = 0; i < REPLY_WORDS; i++) client.reply[i] = words[at + i];
    }
    return true;
  }

  /** Record the latencies of the answered messages, and free their slots. */
  private note(client: Client): void {
    for (let i = 0; i < client.answered; i++) {
      const slot = client.answeredSlots[i];
      this.latency.record((this.nowMs - client.sentMs[slot]) * 1e6);
      client.freeSlots[client.free++] = slot;
    }
    client.answered = 0;
  }

  private send(client: Client): number {
    const { sets } = this.plan.load;
    let sent = 0;
    while (client.free > 0) {
      const outbox = client.outboxOf[client.turn];
      if (!outbox.hasRoom(this.plan.inboxRecordWords)) break;
      this.encode(client, outbox, client.turn);
      client.turn = client.turn + 1 < sets.length ? client.turn + 1 : 0;
      sent++;
    }
    if (sent > 0) this.flush(client);
    return sent;
  }

  private encode(client: Client, outbox: Outbox, set: number): void {
    const { copier, plan } = this;
    const { words } = copier;
    const { at, mask } = outbox.mirror;
    const slot = client.freeSlots[--client.free];
    const position = outbox.end;
    const serial = client.nextSerial++ & 0x7fffffff;
    copier.copy(plan.template, 0, outbox.mirror, position, plan.inboxRecordWords);
    words[at + (position & mask)] = headOf(outbox.nextNumber++);
    words[at + ((position + RECORD.set) & mask)] = set;
    words[at + ((position + RECORD.slot) & mask)] = slot;
    words[at + ((position + RECORD.client) & mask)] = client.index;
    words[at + ((position + RECORD.serial) & mask)] = serial;
    this.fill?.(outbox.mirror, position, serial);
    outbox.add(set, slot, serial);
    outbox.end = (position + plan.inboxRecordWords) | 0;
    client.sentMs[slot] = this.nowMs;
  }

  /** Copy what is new to the leaders of all entry groups, then to the other members. */
  private flush({ outboxes }: Client): void {
    const { replicas } = this.plan.load.sizes;
    for (let member = LEADER; member < replicas; member++) {
      for (let i = 0; i < outboxes.length; i++) this.post(outboxes[i], member);
    }
    for (let i = 0; i < outboxes.length; i++) outboxes[i].sent = outboxes[i].end;
  }

  private post({ mirror, inboxes, sent, end }: Outbox, member: number): void {
    if (end !== sent) this.copier.copy(mirror, sent, inboxes[member], sent, (end - sent) | 0);
  }
}

class Client {
  /** One for each entry group, and the same by set. */
  readonly outboxes: readonly Outbox[];
  readonly outboxOf: readonly Outbox[];
  readonly freeSlots: Int32Array;
  free: number;
  /** The slots of messages that were answered in this turn. */
  readonly answeredSlots: Int32Array;
  answered = 0;
  /** By slot. */
  readonly sentMs: Float64Array;
  readonly reply: Int32Array = new Int32Array(REPLY_WORDS);
  nextSerial = 0;
  turn: number;

  constructor(
    plan: Plan,
    readonly index: number,
  ) {
    const { outstanding, sets } = plan.load;
    this.freeSlots = Int32Array.from({ length: outstanding }, (_, slot) => slot);
    this.free = outstanding;
    this.answeredSlots = new Int32Array(outstanding);
    this.sentMs = new Float64Array(outstanding);
    this.turn = index % sets.length;
    const outboxes = new Map<number, Outbox>();
    for (const group of plan.entryGroups) {
      if (!outboxes.has(group)) outboxes.set(group, new Outbox(plan, index, group));
    }
    this.outboxes = [...outboxes.values()];
    this.outboxOf = plan.entryGroups.map((group) => outboxes.get(group)!);
  }

  get outstanding(): number {
    return this.freeSlots.length - this.free - this.answered;
  }

  noteAnswered(slot: number): void {
    this.answeredSlots[this.answered++] = slot;
  }
}

/** The messages of one client at one entry group. */
class Outbox {
  readonly mirror: Places;
  /** By member. */
  readonly inboxes: readonly Places[];
  /** Positions: of the oldest message without all its replies, and up to where messages were copied and encoded. */
  oldest = 0;
  sent = 0;
  end = 0;
  nextNumber = 0;
  /** How many destinations of the oldest message have replied. */
  replies = 0;
  /** The messages in flight, oldest first, as a ring. */
  private readonly sets: Int32Array;
  private readonly slots: Int32Array;
  private readonly serials: Int32Array;
  private first = 0;
  length = 0;

  constructor(plan: Plan, client: number, group: number) {
    const { outstanding, sizes } = plan.load;
    this.mirror = plan.mirror(client, group);
    this.inboxes = Array.from({ length: sizes.replicas }, (_, member) =>
      plan.inbox(group, member, client),
    );
    this.sets = new Int32Array(outstanding);
    this.slots = new Int32Array(outstanding);
    this.serials = new Int32Array(outstanding);
  }

  get firstSet(): number {
    return this.sets[this.first];
  }

  get firstSlot(): number {
    return this.slots[this.first];
  }

  get firstSerial(): number {
    return this.serials[this.first];
  }

  hasRoom(words: number): boolean {
    return ((this.end - this.oldest) | 0) + words <= this.mirror.mask + 1;
  }

  add(set: number, slot: number, serial: number): void {
    const place = this.first + this.length++;
    const at = place < this.sets.length ? place : place - this.sets.length;
    this.sets[at] = set;
    this.slots[at] = slot;
    this.serials[at] = serial;
  }

  /** Returns its slot. */
  takeFirst(): number {
    const slot = this.slots[this.first];
    this.first = this.first + 1 < this.slots.length ? this.first + 1 : 0;
    this.length--;
    this.replies = 0;
    return slot;
  }
}
