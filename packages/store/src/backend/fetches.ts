/**
 * Fetches the replies that shards have stored: in pieces, several at a time. Shards take turns, and so do the replies of a shard. So a
 * short reply does not wait for a long one, and a long one takes fewer round trips than it has pieces.
 */

import { ByteWriter } from '../engine/bytes.js';
import { REPLY_BYTES_MAX, type StoredReply } from '../messages/message.js';

const PIECE_BYTES = REPLY_BYTES_MAX - 1;
/**
 * How many pieces are under way at a time, from all shards together. They use the client of the messages that end transactions, and a
 * gateway has room for 16 at least (`join.ts`). Shards hold keys until such a message arrives, so some of the room is left to these.
 */
const UNDER_WAY_MAX = 12;
/** How many of these are from one shard: one that does not reply must not keep the gateway from fetching from others. */
const FROM_SHARD_MAX = 8;

/** Asks the shard for a piece, which is valid only during the call. It is empty if the shard has dropped the reply. */
export type AskPiece = (
  shard: number,
  asked: Uint8Array,
  replied: (piece: Uint8Array) => void,
  failed: (error: Error) => void,
) => void;

interface Fetch {
  readonly shard: number;
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

/** What is fetched from one shard. */
class FromShard {
  /** Fetches with pieces that were not requested yet. */
  readonly queue: Fetch[] = [];
  underWay = 0;
}

export class Fetches {
  readonly #shards: readonly FromShard[];
  /** The shard whose turn it is. */
  #turn = 0;
  #underWay = 0;
  #isAsking = false;

  constructor(
    shards: number,
    private readonly ask: AskPiece,
  ) {
    this.#shards = Array.from({ length: shards }, () => new FromShard());
  }

  fetch(shard: number, { number, length }: StoredReply): Promise<Buffer> {
    return new Promise((done, failed) => {
      const bytes = Buffer.allocUnsafeSlow(length);
      const progress = { asked: 0, missing: length, hasFailed: false };
      this.#shards[shard].queue.push({ shard, number, bytes, ...progress, done, failed });
      this.#askMore();
    });
  }

  #askMore(): void {
    // Asking for a piece may fail at once. Then the loop goes on.
    if (this.#isAsking) return;
    this.#isAsking = true;
    while (this.#underWay < UNDER_WAY_MAX) {
      const queue = this.#nextQueue();
      if (queue === undefined) break;
      const fetch = queue.shift()!;
      if (fetch.hasFailed) continue;
      this.#askNext(fetch);
      if (fetch.asked < fetch.bytes.length) queue.push(fetch);
    }
    this.#isAsking = false;
  }

  /** That of the next shard in turn from which another piece can be fetched. */
  #nextQueue(): Fetch[] | undefined {
    for (let left = this.#shards.length; left > 0; left--) {
      const { queue, underWay } = this.#shards[this.#turn];
      this.#turn = (this.#turn + 1) % this.#shards.length;
      if (queue.length > 0 && underWay < FROM_SHARD_MAX) return queue;
    }
    return undefined;
  }

  /** The shard gets these messages in order. With the last piece it drops the reply. */
  #askNext(fetch: Fetch): void {
    const from = fetch.asked;
    const to = from + PIECE_BYTES;
    fetch.asked = to;
    const asked = new ByteWriter().float64(fetch.number).uint32(from).uint32(to).written();
    const replied = (piece: Uint8Array): void => {
      this.#count(fetch, -1);
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
      this.#count(fetch, -1);
      this.#fail(fetch, error);
      this.#askMore();
    };
    this.#count(fetch, 1);
    this.ask(fetch.shard, asked, replied, failed);
  }

  #count({ shard }: Fetch, change: 1 | -1): void {
    this.#underWay += change;
    this.#shards[shard].underWay += change;
  }

  #fail(fetch: Fetch, error: Error): void {
    fetch.hasFailed = true;
    fetch.failed(error);
  }
}
