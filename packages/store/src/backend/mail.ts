/** Listens to all shards: for replies to blocked calls, for messages of channels, and for transactions that nobody ends. */

import { ByteWriter } from '../engine/bytes.js';
import { type Notice, readMail } from '../messages/mail.js';
import { KIND } from '../messages/message.js';
import type { Bytes } from '../resp/reply.js';
import type { Postman } from './postman.js';

export interface MailListener {
  unblocked(blockedAs: number, reply: Uint8Array): void;
  published(channel: Bytes, message: Bytes, isSharded: boolean): void;
  /** The shard has taken this gateway for dead: it knows nothing of its subscriptions and blocked calls any more. */
  forgotten(shard: number): void;
}

/** After an error. */
const RETRY_MS = 100;

export class Mail {
  #isClosed = false;

  constructor(
    private readonly postman: Postman,
    private readonly listener: MailListener,
  ) {}

  /** @returns once all shards know this gateway */
  async start(shards: number): Promise<void> {
    const all = Array.from({ length: shards }, (_, shard) => this.#begin(shard));
    await Promise.all(all);
  }

  close(): void {
    this.#isClosed = true;
  }

  /** @returns once the shard knows this gateway */
  #begin(shard: number): Promise<void> {
    return new Promise((resolve) => this.#listen(shard, 0, resolve));
  }

  /** @param known  called if this was the beginning, once the shard knows the gateway */
  #listen(shard: number, acknowledged: number, known?: () => void): void {
    const content = new ByteWriter().float64(acknowledged).written();
    this.postman.send(
      KIND.listen,
      '',
      [{ group: shard, content }],
      ([reply]) => {
        const mail = readMail(reply);
        known?.();
        for (const notice of mail?.notices ?? []) this.#handle(notice);
        if (this.#isClosed) return;
        if (mail !== undefined) this.#listen(shard, mail.upTo);
        else this.#listen(shard, 0, () => this.listener.forgotten(shard));
      },
      () => {
        if (this.#isClosed) return;
        setTimeout(() => this.#listen(shard, acknowledged, known), RETRY_MS).unref();
      },
    );
  }

  #handle(notice: Notice): void {
    if (notice.type === 'unblocked') this.listener.unblocked(notice.blockedAs, notice.reply);
    else if (notice.type === 'published') {
      this.listener.published(notice.channel, notice.message, notice.isSharded);
    } else {
      const { transaction, groups } = notice;
      const letters = groups.map((group) => ({ group, content: new Uint8Array(0) }));
      const ignored = (): void => undefined;
      const kind = this.postman.isOpen(transaction) ? KIND.keep : KIND.abort;
      this.postman.send(kind, transaction, letters, ignored, ignored);
    }
  }
}
