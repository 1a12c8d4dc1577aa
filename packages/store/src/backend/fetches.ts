/**
 * Fetches the replies that one shard has stored: in pieces, several at a time, those of all replies in turn. So a short reply does not
 * wait for a long one, and a long one takes fewer round trips than it has pieces.
 */

import { ByteWriter } from '../engine/bytes.js';
import { REPLY_BYTES_MAX, type StoredReply } from '../messages/message.js';

const PIECE_BYTES = REPLY_BYTES_MAX - 1;
/** How many pieces are under way at a time. The messages that end transactions use the same client, and need room too. */
const UNDER_WAY_MAX = 8;

/** Asks the shard for a piece, which is valid only during the call. It is empty if the shard has dropped the reply. */
export type AskPiece = (
  asked: Uint8Array,
  replied: (piece: Uint8Array) => void,
  failed: (error: Error) => void,
) => void;

interface Fetch {
  readonly number: number;
  readonly bytes: Buffer;
  /** The position up to which pieces were requested. */
  asked: number;
  /** How many bytes have not arrived yet. */
  missing: number;
  hasFailed: boolean;
  readonly done: (bytes: Buffer) => void;
  readonly failed: (error: Error) => void;
}

export class Fetches {
  /** Fetches with pieces that were not requested yet. */
  readonly #queue: Fetch[] = [];
  #underWay = 0;
  #isAsking = false;

  constructor(private readonly ask: AskPiece) {}

  fetch({ number, length }: StoredReply): Promise<Buffer> {
    return new Promise((done, failed) => {
      const bytes = Buffer.allocUnsafeSlow(length);
      const progress = { asked: 0, missing: length, hasFailed: false };
      this.#queue.push({ number, bytes, ...progress, done, failed });
      this.#askMore();
    });
  }

  #askMore(): void {
    // Asking for a piece may fail at once. Then the loop goes on.
    if (this.#isAsking) return;
    this.#isAsking = true;
    while (this.#underWay < UNDER_WAY_MAX) {
      const fetch = this.#queue.shift();
      if (fetch === undefined) break;
      if (fetch.hasFailed) continue;
      this.#underWay++;
      this.#askNext(fetch);
      if (fetch.asked < fetch.bytes.length) this.#queue.push(fetch);
    }
    this.#isAsking = false;
  }

  /** The shard gets these messages in order. With the last piece it drops the reply. */
  #askNext(fetch: Fetch): void {
    const from = fetch.asked;
    const to = from + PIECE_BYTES;
    fetch.asked = to;
    const asked = new ByteWriter().float64(fetch.number).uint32(from).uint32(to).written();
    const replied = (piece: Uint8Array): void => {
      this.#underWay--;
      if (piece.length === 0) {
        this.#fail(fetch, new Error('the reply was dropped before it was fetched'));
      } else {
        fetch.bytes.set(piece, from);
        fetch.missing -= piece.length;
        if (fetch.missing === 0) fetch.done(fetch.bytes);
      }
      this.#askMore();
    };
    const failed = (error: Error): void => {
      this.#underWay--;
      this.#fail(fetch, error);
      this.#askMore();
    };
    this.ask(asked, replied, failed);
  }

  #fail(fetch: Fetch, error: Error): void {
    fetch.hasFailed = true;
    fetch.failed(error);
  }
}
