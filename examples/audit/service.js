/**
 * The books of a firm and of its staff, in two groups. A payment is one message to both: it adds to what the firm has paid,
 * and to what the staff has received.
 *
 * The tree is a chain: 0, 1, 2. So a payment enters at group 0, which delivers it first, and passes through group 1 on its
 * way to group 2. Group 1 is no destination of payments.
 */
import { defineService } from 'tram-multicast';

export const STAFF = 0;
export const BETWEEN = 1;
export const FIRM = 2;

/** @typedef {{ type: 'pay', amount: number } | { type: 'read' }} Command */

export default defineService({
  initial: () => ({ sum: 0 }),

  /**
   * @param {{ sum: number }} state
   * @param {Command} command
   * @returns the sum of all payments
   */
  deliver(state, command) {
    if (command.type === 'pay') state.sum += command.amount;
    return state.sum;
  },
});
