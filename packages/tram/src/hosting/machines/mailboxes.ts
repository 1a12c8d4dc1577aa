/**
 * Asks and answers of any size between hosts that do not run their replicas, over the links that they have
 * (`memory/machines/link.ts`). A host has a mailbox for every other host in its arena, with two lanes: one for what that
 * host asks, one for what it answers. The other host writes there; nobody else does.
 *
 *   lane:   taken │ crc  nonce  post  chunk  total  count │ data …
 *
 * A message goes in chunks, one under way in each lane. Its receiver checks the checksum, which covers all the other words,
 * so it does not matter in which order they land. Then it writes the checksum to `taken`, in the lane of the sender's own
 * arena, and the sender goes on. `~checksum` says: I do not have the chunks before, begin again.
 *
 * Nothing that is sent twice does harm. Every writing of a chunk has another number (`post`), so a repeated one is
 * confirmed again. An ask whose connection broke, or that has no answer for long, is sent again with its nonce, and a host
 * that has answered it repeats the answer. A host that has started anew in between answers it as if it were new: all asks can be repeated.
 */
import { randomInt } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { ArenaMap } from '../../memory/arena.js';
import type { Link } from '../../memory/machines/link.js';
import { align } from '../../memory/words.js';

/** From the beginning of a lane. */
const LANE = {
  taken: 0,
  crc: 1,
  nonce: 2,
  post: 3,
  chunk: 4,
  total: 5,
  count: 6,
  data: 7,
} as const;
const HEADER_WORDS = LANE.data - LANE.crc;
const CHUNK_WORDS = 2 ** 16;
const LANE_WORDS = align(LANE.data + CHUNK_WORDS);
const LANES = { asks: 0, answers: 1, count: 2 } as const;

/** The words of each mailbox. */
export const MAILBOX_WORDS: number = LANES.count * LANE_WORDS;
/** What mailboxes may have in flight over a link: a chunk in each lane, once more if it is repeated. */
export const MAILBOX_FLIGHT_WORDS: number = 2 * MAILBOX_WORDS;

/** A chunk that is not confirmed for so long is written again. */
const REPEAT_US = 1_000_000;
/** An ask that has arrived, and has no answer for so long, is sent again: the other host may have begun anew. */
const ASK_AGAIN_US = 5_000_000;
/** A host that is not connected for so long is given up. */
const GIVE_UP_US = 5_000_000;

/** What the lanes of one pair of hosts work with. */
interface Wire {
  readonly link: Link;
  /** Our arena. */
  readonly words: Int32Array;
  /** Where the mailbox of the other host is in our arena, and where ours is in its arena. */
  readonly here: number;
  readonly there: number;
}

/** Sends one message at a time. */
class Sender {
  private message: Int32Array | undefined;
  private nonce = 0;
  private chunk = 0;
  private post: number = randomInt(2 ** 31);
  private crc = 0;
  private postedUs = 0;
  private readonly record = new Int32Array(HEADER_WORDS + CHUNK_WORDS);

  constructor(
    private readonly wire: Wire,
    private readonly lane: number,
  ) {}

  send(nonce: number, message: Int32Array, nowUs: number): void {
    this.nonce = nonce;
    this.message = message;
    this.begin(0, nowUs);
  }

  cancel(): void {
    this.message = undefined;
  }

  /** Was its message sent so long ago that the other host should have answered it? */
  isOverdue(nowUs: number): boolean {
    return this.message === undefined && nowUs - this.postedUs > ASK_AGAIN_US;
  }

  doWork(nowUs: number): void {
    if (this.message === undefined) return;
    const { link, words, here } = this.wire;
    const taken = words[here + this.lane + LANE.taken];
    if (taken === this.crc) this.goOn(nowUs);
    else if (taken === ~this.crc) this.begin(0, nowUs);
    else if (nowUs - this.postedUs > REPEAT_US && link.isSettled) this.begin(this.chunk, nowUs);
  }

  private goOn(nowUs: number): void {
    const isLast = (this.chunk + 1) * CHUNK_WORDS >= this.message!.length;
    if (isLast) this.message = undefined;
    else this.begin(this.chunk + 1, nowUs);
  }

  private begin(chunk: number, nowUs: number): void {
    const { wire, record, lane } = this;
    const message = this.message!;
    const data = message.subarray(chunk * CHUNK_WORDS, (chunk + 1) * CHUNK_WORDS);
    this.chunk = chunk;
    this.postedUs = nowUs;
    this.post = (this.post + 1) | 0;
    record.set([0, this.nonce, this.post, chunk, message.length, data.length]);
    record.set(data, HEADER_WORDS);
    const words = record.subarray(0, HEADER_WORDS + data.length);
    this.crc = checksum(words.subarray(1));
    record[0] = this.crc;
    wire.link.writeWords(wire.there + lane + LANE.crc, words);
  }
}

/** Puts the chunks of one message at a time together. */
class Receiver {
  private nonce = 0;
  private post = 0;
  private message = new Int32Array(0);
  /** How many chunks of the message there are here. */
  private chunks = 0;

  constructor(
    private readonly wire: Wire,
    private readonly lane: number,
  ) {}

  /** @returns a message that has become complete; without its words if it was complete before, and was repeated */
  take(): { readonly nonce: number; readonly words: Int32Array | undefined } | undefined {
    const { words, here } = this.wire;
    const at = here + this.lane;
    const nonce = words[at + LANE.nonce];
    const post = words[at + LANE.post];
    const count = words[at + LANE.count];
    if (nonce === 0 || (nonce === this.nonce && post === this.post)) return undefined;
    const end = at + LANE.data + count;
    if (count < 0 || count > CHUNK_WORDS) return undefined;
    const crc = words[at + LANE.crc];
    // Else some of it is still on its way.
    if (crc !== checksum(words.subarray(at + LANE.nonce, end))) return undefined;
    this.post = post;
    const chunk = words[at + LANE.chunk];
    const total = words[at + LANE.total];
    if (nonce !== this.nonce) this.expect(nonce, total);
    if (chunk > this.chunks) {
      this.confirm(~crc);
      return undefined;
    }
    const isLast = (chunk + 1) * CHUNK_WORDS >= total;
    const isNew = chunk === this.chunks;
    if (isNew) {
      this.message.set(words.subarray(at + LANE.data, end), chunk * CHUNK_WORDS);
      this.chunks++;
    }
    this.confirm(crc);
    if (!isLast) return undefined;
    const { message } = this;
    if (isNew) this.message = new Int32Array(0);
    return { nonce, words: isNew ? message : undefined };
  }

  private expect(nonce: number, total: number): void {
    this.nonce = nonce;
    this.message = new Int32Array(total);
    this.chunks = 0;
  }

  private confirm(word: number): void {
    const { link, there } = this.wire;
    link.writeWords(there + this.lane + LANE.taken, Int32Array.of(word));
  }
}

/** An ask of ours that is not answered yet. */
interface Pending {
  readonly nonce: number;
  readonly message: Int32Array;
  readonly resolve: (answer: Int32Array | undefined) => void;
  /** When the other host was last connected. */
  connectedUs: number;
  /** Was it sent over the connection that there is now? */
  isSent: boolean;
}

/** What we ask one other host, and answer it. */
class Correspondence {
  private readonly asks: Sender;
  private readonly answers: Sender;
  private readonly asked: Receiver;
  private readonly answered: Receiver;
  private pending: Pending | undefined;
  private readonly queue: Pending[] = [];
  /** The last ask of the other host, and our answer as soon as there is one. */
  private current: { readonly nonce: number; answer: Int32Array | undefined } | undefined;

  constructor(
    private readonly wire: Wire,
    private readonly answer: (message: Int32Array) => Promise<Int32Array | undefined>,
    private readonly nowUs: () => number,
  ) {
    this.asks = new Sender(wire, LANES.asks * LANE_WORDS);
    this.answers = new Sender(wire, LANES.answers * LANE_WORDS);
    this.asked = new Receiver(wire, LANES.asks * LANE_WORDS);
    this.answered = new Receiver(wire, LANES.answers * LANE_WORDS);
  }

  ask(message: Int32Array): Promise<Int32Array | undefined> {
    return new Promise((resolve) => {
      const nonce = randomInt(1, 2 ** 31);
      this.queue.push({ nonce, message, resolve, connectedUs: this.nowUs(), isSent: false });
    });
  }

  doWork(nowUs: number): void {
    this.runAsk(nowUs);
    this.asks.doWork(nowUs);
    this.answers.doWork(nowUs);
    const answered = this.answered.take();
    if (answered?.words !== undefined && answered.nonce === this.pending?.nonce) {
      this.settle(answered.words);
    }
    const asked = this.asked.take();
    if (asked !== undefined) this.onAsk(asked.nonce, asked.words, nowUs);
  }

  /** The other host does not answer any more. */
  giveUp(): void {
    this.pending ??= this.queue.shift();
    while (this.pending !== undefined) {
      this.settle(undefined);
      this.pending = this.queue.shift();
    }
  }

  private runAsk(nowUs: number): void {
    this.pending ??= this.queue.shift();
    const { pending } = this;
    if (pending === undefined) return;
    if (this.wire.link.isOpen) {
      pending.connectedUs = nowUs;
      if (!pending.isSent || this.asks.isOverdue(nowUs)) {
        this.asks.send(pending.nonce, pending.message, nowUs);
      }
      pending.isSent = true;
    } else {
      pending.isSent = false;
      if (nowUs - pending.connectedUs > GIVE_UP_US) this.settle(undefined);
    }
  }

  private settle(answer: Int32Array | undefined): void {
    const { pending } = this;
    this.pending = undefined;
    this.asks.cancel();
    pending!.resolve(answer);
  }

  private onAsk(nonce: number, words: Int32Array | undefined, nowUs: number): void {
    if (this.current?.nonce === nonce) {
      if (this.current.answer !== undefined) this.answers.send(nonce, this.current.answer, nowUs);
      return;
    }
    if (words === undefined) return;
    const current: { nonce: number; answer: Int32Array | undefined } = { nonce, answer: undefined };
    this.current = current;
    void this.answer(words).then((answer) => {
      if (this.current !== current || answer === undefined) return;
      current.answer = answer;
      this.answers.send(nonce, answer, this.nowUs());
    });
  }
}

export class Mailboxes {
  private readonly correspondences: readonly (Correspondence | undefined)[];

  /**
   * @param links  by host, undefined for ourselves
   * @param answer  answers the ask of another host. It must not throw. Without a result there is no answer.
   */
  constructor(
    words: Int32Array,
    map: ArenaMap,
    self: number,
    links: readonly (Link | undefined)[],
    answer: (from: number, message: Int32Array) => Promise<Int32Array | undefined>,
    nowUs: () => number,
  ) {
    const there = map.mailbox(self);
    this.correspondences = links.slice(0, map.hosts).map((link, host) => {
      if (link === undefined) return undefined;
      clear(words, map.mailbox(host));
      const wire = { link, words, here: map.mailbox(host), there };
      return new Correspondence(wire, (message) => answer(host, message), nowUs);
    });
  }

  /** Asks another host. Resolves to undefined if it is not connected for some seconds, or was given up. */
  ask(host: number, message: Int32Array): Promise<Int32Array | undefined> {
    return this.correspondences[host]!.ask(message);
  }

  /** This host does not answer any more: it has ended, or runs its replicas. */
  giveUp(host: number): void {
    this.correspondences[host]?.giveUp();
  }

  /** To be called after each poll of the network. */
  doWork(nowUs: number): void {
    for (const correspondence of this.correspondences) correspondence?.doWork(nowUs);
  }
}

/** What an earlier start of this host has left there counts no more. */
function clear(words: Int32Array, mailbox: number): void {
  for (let lane = 0; lane < LANES.count; lane++) {
    words[mailbox + lane * LANE_WORDS + LANE.taken] = 0;
    words[mailbox + lane * LANE_WORDS + LANE.nonce] = 0;
  }
}

function checksum(words: Int32Array): number {
  return crc32(new Uint8Array(words.buffer, words.byteOffset, words.byteLength)) | 0;
}
