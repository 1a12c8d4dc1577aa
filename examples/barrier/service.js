/**
 * Barriers: each client that arrives waits until a given number of clients have arrived. Then all of them go on.
 *
 * The service defers the reply to an arrival, so the call waits, and the client need not ask again. With the last arrival,
 * the service replies to all. When a client gives up or ends while it waits, `abandoned` removes its arrival.
 */
import { defineService } from 'tram-multicast';

/**
 * @typedef {{ type: 'arrive', barrier: string, name: string, parties: number }
 *   | { type: 'look', barrier: string }} Command  `parties`: how many clients have to arrive
 */

/** @typedef {{ names: string[] }} Reply  the clients that have passed the barrier together, or that wait there */

/** @typedef {{ id: string, name: string }} Arrival */

/** @typedef {{ barriers: Record<string, Arrival[]> }} State  for each barrier at which clients wait, these */

/** @type {import('tram-multicast').TypedService<Command, Reply>} */
export default defineService({
  /** @returns {State} */
  initial: () => ({ barriers: {} }),

  /**
   * @param {State} state
   * @param {Command} command
   * @param {import('tram-multicast').DeferringContext<Reply>} context
   */
  deliver({ barriers }, command, context) {
    const waiting = barriers[command.barrier] ?? [];
    if (command.type === 'look') return namesOf(waiting);
    const arrivals = [...waiting, { id: context.id, name: command.name }];
    if (arrivals.length < command.parties) {
      barriers[command.barrier] = arrivals;
      return context.defer();
    }
    delete barriers[command.barrier];
    for (const { id } of waiting) context.reply(id, namesOf(arrivals));
    return namesOf(arrivals);
  },

  /**
   * @param {State} state
   * @param {string} id
   */
  abandoned({ barriers }, id) {
    for (const [barrier, arrivals] of Object.entries(barriers)) {
      barriers[barrier] = arrivals.filter((arrival) => arrival.id !== id);
      if (barriers[barrier].length === 0) delete barriers[barrier];
    }
  },
});

/** @param {Arrival[]} arrivals */
function namesOf(arrivals) {
  return { names: arrivals.map(({ name }) => name) };
}
