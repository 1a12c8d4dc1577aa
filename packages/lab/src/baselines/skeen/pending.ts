/** What a group knows of a message that it has not delivered yet, and which of two comes first. */
import { type Message, wordsFor } from '../passing/message.js';

export class Pending {
  /** -1 if there is no message. */
  number = -1;
  /** Destinations of the message; 0 as long as only proposals of others have come. */
  destinations = 0;
  /** Proposals known, our own included. */
  proposals = 0;
  /** The greatest of them: once all are known, the final timestamp. */
  timestamp = 0;
  /** Our own. */
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
 * Is `one`, at `timestamp`, before `other`, at `otherTimestamp`? Final timestamps of two messages may be
 * the same; then their names decide, everywhere alike.
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
