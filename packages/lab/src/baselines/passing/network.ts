/**
 * All that a message-passing process sees of the world. Implemented by `tcp/` between real processes and
 * by `sim/fifo-network.ts` in virtual time.
 *
 * What every network promises: messages from one process to another arrive, once, in the order in which
 * they were sent. Nothing is promised about messages between different pairs.
 *
 * Addresses: the groups are 0 … groups - 1, one process each; client c is groups + c.
 */
import type { Message } from './message.js';

export interface Network {
  /** `message` may be changed as soon as this returns. */
  send(to: number, message: Message): void;
}

/** A group or a client: a state machine that acts only when it receives something. */
export interface Participant {
  /** `message` is valid until this returns. */
  receive(from: number, message: Message): void;
}

/** Is told what a group does, in the order in which it does it: the application, or who writes a history. */
export interface Observer {
  delivered(message: Message): void;
  /** The group ordered a message that is not addressed to it. */
  relayed(message: Message): void;
}

/** Known to all processes from the start: tables are made as large as they will ever need to be. */
export interface Sizes {
  readonly groups: number;
  readonly clients: number;
  /** Messages that one client may have under way. */
  readonly slots: number;
}
