/**
 * What processes of a message-passing system say to each other. One object is filled over and over: a
 * message is valid only during the call that hands it over, and whoever needs it longer copies it.
 *
 * A message that a client multicasts is known everywhere by (client, slot, number). The number grows with
 * each message of the client. The slot is the client's to choose: it has at most one message under way in
 * each of its slots, so that processes can keep what they know of a message in a table.
 */

export const Kind = {
  /** From a client, or from the parent group: the message itself. */
  multicast: 1,
  /** Skeen, between destinations: the timestamp that the sender proposes. */
  proposal: 2,
  /** From a destination to the client: delivered. */
  reply: 3,
  /** Of the transport: who is calling (address in `client`, how many in `number`), and that it is known now. */
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
  payload: Int32Array = NOTHING;
  payloadAt = 0;
  payloadBytes = 0;
  /** Proposal: a whole number, below 2⁵³. */
  timestamp = 0;

  /** Say which message it is about. */
  about(client: number, slot: number, number: number): this {
    this.client = client;
    this.slot = slot;
    this.number = number;
    return this;
  }
}

const NOTHING = new Int32Array(0);

export function wordsFor(bytes: number): number {
  return (bytes + 3) >>> 2;
}
