/** A client of the gateway, as commands see it. */

import type { Conversation } from './conversation.js';
import type { Gateway } from './gateway.js';
import type { Session } from './session.js';
import type { Subscriber } from './subscriptions.js';

export interface Client extends Subscriber {
  readonly id: number;
  readonly gateway: Gateway;
  readonly session: Session;
  readonly conversation: Conversation;
  /** As Redis prints it: `127.0.0.1:50000`, or the path of a Unix socket and `:0`. */
  readonly address: string;
  readonly localAddress: string;
  readonly isLocal: boolean;
  readonly beganMs: number;
  readonly lastActiveMs: number;
  /** What was written, and the client has not read. */
  readonly outputBytes: number;
  readonly isClosed: boolean;
  /** Ends the connection once the reply to the present request was sent. */
  endAfterReply(): void;
  /** Called once a second: ends the connection if the client is silent or slow for too long. */
  check(nowMs: number): void;
}
