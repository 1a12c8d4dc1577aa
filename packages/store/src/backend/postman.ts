/**
 * Sends messages to shards, of any length: what does not fit goes ahead as an upload, and replies that were stored are fetched.
 */

import { randomBytes } from 'node:crypto';
import { ByteWriter } from '../engine/bytes.js';
import { Traffic } from '../gateway/traffic.js';
import { writePreparation } from '../messages/contents.js';
import {
  type Header,
  KIND,
  type Kind,
  overheadBytes,
  PAYLOAD_BYTES_MAX,
  readReply,
  type Section,
  type StoredReply,
  tellsShort,
  writeMessage,
} from '../messages/message.js';
import type { Bytes } from '../resp/reply.js';
import { Fetches } from './fetches.js';
import type { Wire } from './wire.js';

/** Header of an upload's section: number, position, length of the whole. */
const UPLOAD_HEAD_BYTES = 16;

/** The kinds of messages that shards may let wait. */
const WAITING: ReadonlySet<Kind> = new Set([KIND.batch, KIND.prepare]);

/** An upload to several shards is for a transaction that claims no key. */
const NO_KEYS = { isWhole: false, keys: [] };

/** The content for one group. */
export interface Letter {
  readonly group: number;
  readonly content: Uint8Array;
}

/** The contents of the replies, in the order of the letters. Valid only during the call. */
export type Replied = (contents: readonly Uint8Array[]) => void;

export class Postman {
  /** Random, so that no other gateway has ever had it. */
  readonly gateway: Bytes = randomBytes(9).toString('base64url');
  readonly traffic = new Traffic();
  readonly #writer = new ByteWriter();
  #uploads = 0;
  #transactions = 0;
  readonly #open = new Set<Bytes>();
  readonly #short = new Set<number>();
  readonly #fetches: Fetches;

  constructor(
    /** Carries messages that may wait for a transaction. */
    private readonly data: Wire,
    /** Carries messages that end transactions, which must not queue behind messages that wait for these. */
    private readonly control: Wire,
    readonly nowMs: () => number,
    /** The number of shards. */
    private readonly shards: number,
  ) {
    this.#fetches = new Fetches(shards, (group, asked, replied, failed) => {
      this.traffic.fetchedPieces++;
      const letters = [{ group, content: asked }];
      this.send(KIND.fetch, '', letters, ([piece]) => replied(piece), failed);
    });
  }

  /** @returns whether the caller may reuse the contents of the letters */
  send(
    kind: Kind,
    subject: Bytes,
    letters: readonly Letter[],
    replied: Replied,
    failed: (error: Error) => void,
  ): boolean {
    const header = this.#header(kind, subject);
    let bytes = overheadBytes(header, letters.length);
    for (const { content } of letters) bytes += content.length;
    if (bytes <= PAYLOAD_BYTES_MAX) {
      this.#multicast(header, letters, replied, failed);
      return true;
    }
    if (kind === KIND.batch && letters.length > 1) this.#sendTogether(letters, replied, failed);
    else {
      // A `prepare` comes before its transaction exists at the shards, so its upload must not belong to the transaction.
      const owner = kind === KIND.prepare ? '' : subject;
      this.#upload(owner, letters).then((uploaded) => {
        this.#multicast(this.#header(kind, subject), uploaded, replied, failed);
      }, failed);
    }
    return false;
  }

  /** Whether the memory of a shard was short when it last replied to this gateway. */
  isShort(shard: number): boolean {
    return this.#short.has(shard);
  }

  /** Begins a transaction. @returns its id */
  open(): Bytes {
    const id = `${this.gateway} ${++this.#transactions}`;
    this.#open.add(id);
    return id;
  }

  /** Whether this gateway has begun the transaction, and it has not ended. */
  isOpen(transaction: Bytes): boolean {
    return this.#open.has(transaction);
  }

  ended(transaction: Bytes): void {
    this.#open.delete(transaction);
  }

  /**
   * A batch that is too long for a message. All its shards have to run it or none, so what is uploaded belongs to a
   * transaction: no shard drops it before all do.
   */
  #sendTogether(
    letters: readonly Letter[],
    replied: Replied,
    failed: (error: Error) => void,
  ): void {
    const id = this.open();
    const end: Replied = (contents) => {
      this.ended(id);
      replied(contents);
    };
    const fail = (error: Error): void => {
      this.ended(id);
      failed(error);
    };
    const groups = letters.map(({ group }) => group);
    const writer = new ByteWriter();
    writePreparation(writer, { groups, ...NO_KEYS });
    const content = writer.written();
    this.ask(
      KIND.prepare,
      id,
      groups.map((group) => ({ group, content })),
    )
      .then(() => this.#upload(id, letters))
      .then((uploaded) => {
        this.#multicast(this.#header(KIND.batch, id), uploaded, end, fail);
      }, fail);
  }

  /** Like `send`, but returns a promise, with copies of the contents. */
  ask(kind: Kind, subject: Bytes, letters: readonly Letter[]): Promise<Buffer[]> {
    return new Promise((resolve, reject) => {
      const copied = (contents: readonly Uint8Array[]): void =>
        resolve(contents.map((content) => Buffer.from(content)));
      this.send(kind, subject, letters, copied, reject);
    });
  }

  #header(kind: Kind, subject: Bytes): Header {
    const seed = Math.floor(Math.random() * 2 ** 32);
    return {
      kind,
      shards: this.shards,
      stampMs: this.nowMs(),
      seed,
      sender: this.gateway,
      subject,
    };
  }

  #multicast(
    header: Header,
    sections: readonly Section[],
    replied: Replied,
    failed: (error: Error) => void,
  ): void {
    const groups = sections.map(({ group }) => group);
    const contents: (Uint8Array | StoredReply)[] = [];
    let left = groups.length;
    let isLong = false;
    const wire = WAITING.has(header.kind) ? this.data : this.control;
    wire.multicast(groups, writeMessage(this.#writer, header, sections), {
      replied: (group, reply) => {
        if (tellsShort(reply)) this.#short.add(group);
        else this.#short.delete(group);
        const content = readReply(reply);
        const isLast = --left === 0;
        if (!Buffer.isBuffer(content)) isLong = true;
        // The bytes of the last reply are valid until `replied` returns: the others have to be copied.
        contents[groups.indexOf(group)] =
          (isLast && !isLong) || !Buffer.isBuffer(content) ? content : Buffer.from(content);
        if (isLast && !isLong) replied(contents as Uint8Array[]);
      },
      answered: () => {
        if (isLong) this.fetchAll(groups, contents).then(replied, failed);
      },
      failed,
    });
  }

  /** Replaces the contents by uploads. @param owner  the transaction that they belong to; empty: none */
  #upload(owner: Bytes, letters: readonly Letter[]): Promise<Section[]> {
    const room = PAYLOAD_BYTES_MAX - overheadBytes(this.#header(KIND.upload, owner), 1);
    return Promise.all(
      letters.map(async ({ group, content }) => {
        const number = ++this.#uploads;
        for (let at = 0; at < content.length; at += room - UPLOAD_HEAD_BYTES) {
          const piece = content.subarray(at, at + room - UPLOAD_HEAD_BYTES);
          const written = new ByteWriter()
            .float64(number)
            .uint32(at)
            .uint32(content.length)
            .raw(piece)
            .written();
          this.traffic.uploadedPieces++;
          await this.ask(KIND.upload, owner, [{ group, content: written }]);
        }
        return { group, content: number };
      }),
    );
  }

  /** Fetches replies that shards have stored. @param groups  the shards that have stored a reply */
  fetchAll(
    groups: readonly number[],
    contents: readonly (Uint8Array | StoredReply)[],
  ): Promise<Uint8Array[]> {
    return Promise.all(
      contents.map((content, i) =>
        content instanceof Uint8Array ? content : this.#fetches.fetch(groups[i], content),
      ),
    );
  }
}
