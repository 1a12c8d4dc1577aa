/**
 * The environment of a participant in a message-passing system. Implemented by `tcp/` between real processes and by
 * `sim/fifo-network.ts` in virtual time.
 *
 * Every network is reliable and FIFO for each pair: messages from one participant to another arrive once, in the order in which
 * they were sent. There is no order between different pairs.
 *
 * Addresses: the groups are 0 … groups - 1, one participant each; client c is groups + c.
 */
import type { Message } from './message.js';

export interface Network {
  /** The caller may reuse `message` afterwards. */
  send(to: number, message: Message): void;
}

/** A group or a client: a state machine that acts only when it receives a message. */
export interface Participant {
  /** `message` is valid during the call. */
  receive(from: number, message: Message): void;
}

/** Receives the events of a group in their order: the application, or the recorder of a history. */
export interface Observer {
  delivered(message: Message): void;
  /** The group ordered a message that is not addressed to it. */
  relayed(message: Message): void;
}

/** Known to all participants from the start, so that tables have a fixed size. */
export interface Sizes {
  readonly groups: number;
  readonly clients: number;
  /** Messages that one client may have in flight. */
  readonly slots: number;
}
