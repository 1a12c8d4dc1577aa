/** Which commands a client may send in the state that its session is in. */

import type { CommandSpec } from '../commands/spec.js';
import type { Session } from './session.js';

const NOAUTH = 'NOAUTH Authentication required.';

/** These take effect at once, although a transaction has begun. */
const NOT_QUEUED = new Set(['exec', 'discard', 'multi', 'watch', 'quit', 'reset']);

/** The only commands that a client of RESP 2 may send while it is subscribed. */
const WHILE_SUBSCRIBED = new Set([
  ...['subscribe', 'unsubscribe', 'psubscribe', 'punsubscribe', 'ssubscribe', 'sunsubscribe'],
  ...['ping', 'quit', 'reset'],
]);

/**
 * They have no single reply that could be an element of the array that EXEC replies with, or not at once; or they change how its
 * elements are written.
 */
const NOT_IN_TRANSACTIONS = /subscribe$|^client\|reply$|^info$|^hello$/;

/** @returns the error for a client that may not send this command now */
export function refusalOf({ name, flags }: CommandSpec, session: Session): string | undefined {
  if (!session.isAuthenticated && !flags.includes('no_auth')) return NOAUTH;
  if (session.resp === 2 && session.subscriptions > 0 && !WHILE_SUBSCRIBED.has(name)) {
    return `ERR Can't execute '${name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context`;
  }
  if (session.transaction === undefined || NOT_QUEUED.has(name)) return undefined;
  return flags.includes('no_multi') || NOT_IN_TRANSACTIONS.test(name)
    ? 'ERR Command not allowed inside a transaction'
    : undefined;
}

/** Whether the command is queued until EXEC. */
export function isQueued({ name }: CommandSpec, { transaction }: Session): boolean {
  return transaction !== undefined && !NOT_QUEUED.has(name);
}
