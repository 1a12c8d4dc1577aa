/** The workload of a simulated client: draws the messages that it sends, and checks the replies. Called by `world.ts`. */

import type {
  Call,
  CallListener,
  Client,
  ReplyOutcome,
} from 'tram-multicast/internal/protocol/data-path/client.js';
import { type Layout, messageId } from 'tram-multicast/internal/protocol/layout.js';
import { highMask, lowMask } from 'tram-multicast/internal/protocol/overlay.js';
import type { Deferrals } from './deferrals.js';
import { type Ledger, type Sent, SimulationFailure } from './ledger.js';
import type { Plan } from './plan.js';
import type { Random } from './random.js';
import { defersOn, failsOn, failureText, REPLY_BYTES } from './service.js';

/** Is told when messages are sent, when a reply has come, and when all replies to a message have come. */
export interface Watch {
  sent(message: Sent): void;
  replied(message: Sent, group: number): void;
  answered(message: Sent): void;
}

/** With so many of its steps a client gives up a message while all its call slots are taken, if replies may be deferred. */
const GIVES_UP_FULL_PERCENT = 10;

/** An unanswered message. */
interface Outstanding {
  readonly sent: Sent;
  readonly call: Call;
  /** What the service knows it by. */
  readonly id: string;
}

export class Workload implements CallListener {
  /** By call slot. */
  private readonly outstanding = new Map<number, Outstanding>();
  private quietUntilUs = 0;
  /** Groups that this client reads with its next step. */
  private readonly toRead: number[] = [];
  /** Messages that this client has not sent yet. */
  remaining: number;

  constructor(
    private readonly plan: Plan,
    private readonly ledger: Ledger,
    private readonly deferrals: Deferrals,
    private readonly random: Random,
    private readonly layout: Layout,
    readonly session: number,
    messages: number,
    private readonly watch: Watch,
  ) {
    this.remaining = messages;
  }

  get isDone(): boolean {
    return this.remaining === 0 && this.outstanding.size === 0;
  }

  /** Send a batch of drawn size, then nothing for a drawn time. */
  send(client: Client, nowUs: number): void {
    this.sendReads(client);
    if (this.plan.serviceDefersEvery > 0) this.giveUpSome(client);
    if (this.remaining === 0 || nowUs < this.quietUntilUs) return;
    const { random, plan } = this;
    const size = plan.isBursty ? random.between(1, 24) : random.between(1, 3);
    let sent = 0;
    while (sent < size && this.remaining > 0 && this.sendOne(client)) sent++;
    this.quietUntilUs = nowUs + this.drawGap(Math.max(sent, 1));
  }

  /** On average, the messages are spread over the time in which the incidents happen. */
  private drawGap(messages: number): number {
    const { messageEveryUs, sizes } = this.plan;
    return this.random.below(2 * messages * messageEveryUs * sizes.clients + 1);
  }

  /** Read `group` with the next step: send a message to this group alone, however quiet the client is otherwise. */
  readSoon(group: number): void {
    this.toRead.push(group);
  }

  private sendReads(client: Client): void {
    for (const group of this.toRead) {
      if (this.remaining === 0) break;
      const payload = this.drawPayload();
      if (!this.multicast(client, lowMask(group), highMask(group), payload)) break;
      this.remaining--;
      this.quietUntilUs += this.drawGap(1);
    }
    this.toRead.length = 0;
  }

  /** Send until the client pushes back. */
  saturate(client: Client): void {
    while (this.remaining > 0 && this.sendOne(client)) {
      // One more.
    }
  }

  private sendOne(client: Client): boolean {
    const { random } = this;
    const { groups } = this.layout.sizes;
    let low = 0;
    let high = 0;
    const isSingle = random.percent(this.plan.singleGroupPercent);
    const count = isSingle ? 1 : random.between(1, groups);
    for (let i = 0; i < count; i++) {
      const group = random.below(groups);
      low |= lowMask(group);
      high |= highMask(group);
    }
    if (this.multicast(client, low, high, this.drawPayload()) === undefined) return false;
    this.remaining--;
    return true;
  }

  /** Send a message. Returns undefined if the client is back-pressured. */
  multicast(client: Client, low: number, high: number, payload: Uint8Array): Sent | undefined {
    if (client.offer(low, high, payload) === 'backPressured') return undefined;
    const { entryGroup, number, slot } = client.lastCall;
    const message = { entryGroup, destinationsLow: low, destinationsHigh: high, payload };
    const sent = this.ledger.multicast(this.session, number, message);
    const id = messageId({ session: this.session, entryGroup, number });
    this.outstanding.set(slot, { sent, call: client.lastCall, id });
    this.watch.sent(sent);
    return sent;
  }

  /** Now and then, give up one of the unanswered messages; more often if there is no room for another one. */
  private giveUpSome(client: Client): void {
    const { random, outstanding, layout } = this;
    // At the end, every message that gets a reply must receive it.
    if (outstanding.size === 0 || this.remaining === 0) return;
    const isFull = outstanding.size === layout.sizes.callsMax;
    if (!random.percent(isFull ? GIVES_UP_FULL_PERCENT : 1)) return;
    const picked = random.pick([...outstanding.values()]);
    const isWaiting = this.deferrals.isWaiting(picked.id);
    if (isWaiting || random.percent(25)) this.giveUp(client, picked);
  }

  /** Give up the messages whose replies the service still defers. All others must be answered. */
  giveUpDeferred(client: Client): void {
    for (const unanswered of this.outstanding.values()) {
      if (this.deferrals.isWaiting(unanswered.id)) this.giveUp(client, unanswered);
    }
  }

  private giveUp(client: Client, { call, id }: Outstanding): void {
    this.deferrals.giveUp(id);
    client.giveUp(call);
  }

  /** Draw a payload: of full length, all zero, random, or of small numbers that look like heads and ends of records. */
  private drawPayload(): Uint8Array {
    const { random } = this;
    const { payloadBytesMax } = this.layout.sizes;
    const style = random.below(4);
    const length = style === 0 ? payloadBytesMax : random.below(payloadBytesMax + 1);
    const payload = new Uint8Array(length);
    if (style === 1) return payload;
    for (let i = 0; i < length; i++) {
      payload[i] = style === 2 ? (i % 4 === 0 ? random.below(32) : 0) : random.below(256);
    }
    return payload;
  }

  replied(call: Call, group: number, reply: Uint8Array, outcome: ReplyOutcome): void {
    const unanswered = this.outstanding.get(call.slot)!;
    const { sent } = unanswered;
    this.ledger.answered(sent, group);
    this.requireReply(unanswered, group, reply, outcome);
    this.watch.replied(sent, group);
  }

  private requireReply(
    { sent, call, id }: Outstanding,
    group: number,
    reply: Uint8Array,
    outcome: ReplyOutcome,
  ): void {
    const expected = this.expectedOutcome(call);
    if (outcome !== expected) {
      throw new SimulationFailure(
        'reply',
        `group ${group} replied to ${sent.id}: ${outcome}, not ${expected}`,
      );
    }
    if (outcome === 'failed') this.requireFailureText(call, group, reply);
    if (outcome !== 'ok') return;
    const count = new DataView(reply.buffer, reply.byteOffset).getInt32(0, true);
    const delivered = this.ledger.orders[group][count - 1];
    if (defersOn(this.plan.serviceDefersEvery, group, this.session, call.number)) {
      this.deferrals.requireAnswer(group, id, reply);
      // The reply shows what the group had delivered when it gave the reply.
      this.ledger.answered(delivered, group);
      return;
    }
    if (delivered !== sent) {
      throw new SimulationFailure(
        'reply',
        `group ${group} replied to ${sent.id} as its delivery number ${count - 1}, which is ${delivered?.id}`,
      );
    }
  }

  /** The reply is what the service threw, up to the last character that fits. */
  private requireFailureText(call: Call, group: number, reply: Uint8Array): void {
    const { replyBytesMax } = this.layout.sizes;
    let expected = '';
    for (const character of failureText(group, call.number)) {
      if (new TextEncoder().encode(expected + character).length > replyBytesMax) break;
      expected += character;
    }
    const text = new TextDecoder().decode(reply);
    if (text === expected) return;
    throw new SimulationFailure('reply', `group ${group} failed with "${text}", not "${expected}"`);
  }

  private expectedOutcome(call: Call): ReplyOutcome {
    if (failsOn(this.plan.serviceFailsEvery, this.session, call.number)) return 'failed';
    return REPLY_BYTES <= this.layout.sizes.replyBytesMax ? 'ok' : 'tooLarge';
  }

  answered(call: Call): void {
    this.watch.answered(this.outstanding.get(call.slot)!.sent);
    this.outstanding.delete(call.slot);
  }

  cancelled(call: Call): void {
    const { sent, id } = this.outstanding.get(call.slot)!;
    for (const group of this.plan.parents.keys()) {
      if (sent.isFor(group)) this.deferrals.requireEnd(group, id);
    }
    this.outstanding.delete(call.slot);
  }
}
