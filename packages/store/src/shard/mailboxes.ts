/** The mail of gateways: notices that wait until the gateway asks for them, and gateways that wait for notices. */

import { ByteWriter } from '../engine/bytes.js';
import { type Notice, writeMail, writeNoMail, writeNotice } from '../messages/mail.js';
import type { Bytes } from '../resp/reply.js';

/** A gateway that has not asked for this long is considered dead. A live gateway asks again at once. */
const SILENT_MS = 10_000;

/** A gateway that leaves more than this is cut off, as Redis cuts off subscribers that do not read. */
const MAIL_BYTES_MAX = 32 * 1024 * 1024;

/** The approximate size of the mail in one reply. */
const LETTER_BYTES = 8 * 1024;

interface Mailbox {
  /** As `writeNotice` has written them. */
  notices: Uint8Array[];
  bytes: number;
  /** The number of the last notice. */
  last: number;
  /** The message with which the gateway asks: it waits for its reply. */
  listener: string | undefined;
  /** When the gateway asked last, or got mail last. */
  heardMs: number;
}

export class Mailboxes {
  readonly #boxes: Map<Bytes, Mailbox>;
  readonly #writer = new ByteWriter();

  constructor(
    /** Replies to a message that waits. */
    private readonly reply: (id: string, content: Uint8Array) => void,
    state: ReadonlyMap<Bytes, Mailbox> = new Map(),
  ) {
    this.#boxes = new Map(state);
  }

  /** The mailboxes as snapshots store them. */
  get state(): ReadonlyMap<Bytes, Mailbox> {
    return this.#boxes;
  }

  gateways(): Iterable<Bytes> {
    return this.#boxes.keys();
  }

  has(gateway: Bytes): boolean {
    return this.#boxes.has(gateway);
  }

  /**
   * The gateway asks for its mail. @param acknowledged  the number of the last notice that it has; 0: it begins, and is told at once
   * that it is known now. Notices have numbers above 1, so a gateway that was forgotten never seems to begin.
   * @returns the content of the reply; undefined if the message has to wait for it
   */
  listen(
    gateway: Bytes,
    acknowledged: number,
    nowMs: number,
    id: () => string,
  ): Uint8Array | undefined {
    let box = this.#boxes.get(gateway);
    if (box === undefined) {
      if (acknowledged > 0) {
        writeNoMail(this.#writer.reset());
        return this.#writer.copy();
      }
      box = { notices: [], bytes: 0, last: 1, listener: undefined, heardMs: nowMs };
      this.#boxes.set(gateway, box);
    }
    box.heardMs = nowMs;
    const known = Math.min(box.notices.length, acknowledged - (box.last - box.notices.length));
    for (const notice of box.notices.splice(0, known)) box.bytes -= notice.length;
    if (box.notices.length > 0 || acknowledged === 0) return this.#letter(box);
    box.listener = id();
    return undefined;
  }

  post(gateway: Bytes, notice: Notice, nowMs: number): void {
    const box = this.#boxes.get(gateway);
    if (box === undefined) return;
    writeNotice(this.#writer.reset(), notice);
    const written = this.#writer.copy();
    box.notices.push(written);
    box.bytes += written.length;
    box.last++;
    if (box.listener === undefined) return;
    const { listener } = box;
    box.listener = undefined;
    box.heardMs = nowMs;
    this.reply(listener, this.#letter(box));
  }

  /** A message that waited for mail waits no longer: its gateway has ended, or has lost its client. */
  abandoned(id: string): void {
    for (const box of this.#boxes.values()) if (box.listener === id) box.listener = undefined;
  }

  /** Forgets the gateways that are considered dead. @returns their names */
  dropSilent(nowMs: number): Bytes[] {
    const dropped: Bytes[] = [];
    for (const [gateway, { listener, heardMs, bytes }] of this.#boxes) {
      const isSilent = listener === undefined && nowMs - heardMs > SILENT_MS;
      if (isSilent || bytes > MAIL_BYTES_MAX) dropped.push(gateway);
    }
    for (const gateway of dropped) this.#boxes.delete(gateway);
    return dropped;
  }

  /** The oldest notices that were not acknowledged yet. */
  #letter({ notices, last }: Mailbox): Uint8Array {
    let count = 0;
    let bytes = 0;
    while (
      count < notices.length &&
      (count === 0 || bytes + notices[count].length <= LETTER_BYTES)
    ) {
      bytes += notices[count++].length;
    }
    const upTo = last - notices.length + count;
    writeMail(this.#writer.reset(), upTo, notices.slice(0, count));
    return this.#writer.copy();
  }
}
