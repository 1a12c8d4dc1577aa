/**
 * The messages between processes of a message-passing system. Message objects are reused: a message is valid only during the
 * call that passes it, and a receiver that needs it longer copies it.
 *
 * A multicast is identified everywhere by (client, slot, number). The number grows with each message of the client. The client
 * chooses the slot and has at most one message in flight in each of its slots, so that groups can keep messages in a table.
 */

export const Kind = {
  /** From a client, or from the parent group: the message itself. */
  multicast: 1,
  /** Skeen, between destinations: the timestamp that the sender proposes. */
  proposal: 2,
  /** From a destination to the client: delivered. */
  reply: 3,
  /** Transport: the caller's first address (in `client`) and their count (in `number`), and the confirmation. */
  hello: 4,
  welcome: 5,
} as const;

export type Kind = (typeof Kind)[keyof typeof Kind];

export class Message {
  kind: Kind = Kind.multicast;
  client = 0;
  slot = 0;
  number = 0;
  /** Multicast: the destinations, as in `protocol/overlay.ts`. */
  low = 0;
  high = 0;
  /** Multicast: `payloadBytes` bytes, from word `payloadAt` of `payload` on. */
  payload: Int32Array = EMPTY;
  payloadAt = 0;
  payloadBytes = 0;
  /** Proposal: a whole number, below 2⁵³. */
  timestamp = 0;

  /** Sets the identity of the multicast that this message is about. */
  about(client: number, slot: number, number: number): this {
    this.client = client;
    this.slot = slot;
    this.number = number;
    return this;
  }
}

const EMPTY = new Int32Array(0);

export function wordsFor(bytes: number): number {
  return (bytes + 3) >>> 2;
}
