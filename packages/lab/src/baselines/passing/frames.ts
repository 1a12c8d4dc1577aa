/**
 * The encoding of messages: words in native byte order, because both ends are on one machine. Used by every network, including
 * the simulated one, so that simulation also checks the encoding.
 *
 *   word   0       1     2       3     4       5    6     7              8 …
 *          length  kind  client  slot  number  low  high  payload bytes  payload    multicast
 *          length  kind  client  slot  number  timestamp                            proposal
 *          length  kind  client  slot  number                                       all others
 *
 * The length counts all words of the frame.
 */
import { Kind, type Message, wordsFor } from './message.js';

export const FRAME_WORDS_MIN = 5;
const TIMESTAMP_END = 7;
const PAYLOAD = 8;

const TWO_32 = 2 ** 32;

/** The size of the encoded message, in words. */
export function frameWords(message: Message): number {
  switch (message.kind) {
    case Kind.multicast:
      return PAYLOAD + wordsFor(message.payloadBytes);
    case Kind.proposal:
      return TIMESTAMP_END;
    default:
      return FRAME_WORDS_MIN;
  }
}

/** @returns the end of the frame */
export function encode(message: Message, words: Int32Array, at: number): number {
  const length = frameWords(message);
  words[at] = length;
  words[at + 1] = message.kind;
  words[at + 2] = message.client;
  words[at + 3] = message.slot;
  words[at + 4] = message.number;
  if (message.kind === Kind.multicast) {
    words[at + 5] = message.low;
    words[at + 6] = message.high;
    words[at + 7] = message.payloadBytes;
    const { payload, payloadAt } = message;
    const payloadWords = length - PAYLOAD;
    for (let i = 0; i < payloadWords; i++) words[at + PAYLOAD + i] = payload[payloadAt + i];
  } else if (message.kind === Kind.proposal) {
    words[at + 5] = message.timestamp; // The low word: stored modulo 2³².
    words[at + 6] = message.timestamp / TWO_32;
  }
  return at + length;
}

/** The payload is not copied: the message is valid as long as `words` are. */
export function decode(message: Message, words: Int32Array, at: number): void {
  message.kind = words[at + 1] as Kind;
  message.client = words[at + 2];
  message.slot = words[at + 3];
  message.number = words[at + 4];
  if (message.kind === Kind.multicast) {
    message.low = words[at + 5];
    message.high = words[at + 6];
    message.payloadBytes = words[at + 7];
    message.payload = words;
    message.payloadAt = at + PAYLOAD;
  } else if (message.kind === Kind.proposal) {
    message.timestamp = words[at + 6] * TWO_32 + (words[at + 5] >>> 0);
  }
}
