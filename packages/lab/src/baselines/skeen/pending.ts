/** The state of a message that a group has not delivered yet, and the order of two such messages. */
import { type Message, wordsFor } from '../passing/message.js';

export class Pending {
  /** -1 if there is no message. */
  number = -1;
  /** The number of destinations; 0 until the message itself has arrived. */
  destinations = 0;
  /** Known proposals, including this group's. */
  proposals = 0;
  /** The greatest of them: once all are known, the final timestamp. */
  timestamp = 0;
  /** This group's proposal. */
  proposed = 0;
  isDecided = false;
  payloadBytes = 0;
  payload = new Int32Array(0);

  constructor(
    readonly client: number,
    readonly slot: number,
  ) {}

  begin(number: number): void {
    this.number = number;
    this.destinations = 0;
    this.proposals = 0;
    this.timestamp = 0;
    this.proposed = 0;
    this.isDecided = false;
  }

  keepPayload(message: Message): void {
    const { payload: source, payloadAt, payloadBytes } = message;
    const words = wordsFor(payloadBytes);
    if (this.payload.length < words) this.payload = new Int32Array(words);
    const { payload } = this;
    for (let i = 0; i < words; i++) payload[i] = source[payloadAt + i];
    this.payloadBytes = payloadBytes;
  }
}

/**
 * Does `one`, at `timestamp`, precede `other`, at `otherTimestamp`? Two messages may have equal final timestamps; then client
 * and number decide, in the same way at every group.
 */
export function isBefore(
  one: Pending,
  timestamp: number,
  other: Pending,
  otherTimestamp: number,
): boolean {
  if (timestamp !== otherTimestamp) return timestamp < otherTimestamp;
  return one.client !== other.client ? one.client < other.client : one.number < other.number;
}
