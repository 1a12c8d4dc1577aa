/**
 * Barriers: each client that arrives waits until a given number of clients have arrived. Then all of them go on.
 *
 * The reply to an arrival is deferred, so the call waits, and nobody has to ask again. The last arrival answers all others.
 * A client that gives up or ends while it waits is not counted any more: `abandoned`.
 */
import { defineService } from 'tram-multicast';

/**
 * @typedef {{ type: 'arrive', barrier: string, name: string, parties: number }
 *   | { type: 'look', barrier: string }} Command  `parties`: how many clients have to arrive
 */

/** @typedef {{ names: string[] }} Reply  who has passed the barrier together, or who waits there */

/** @typedef {{ id: string, name: string }} Arrival */

/** @typedef {{ barriers: Record<string, Arrival[]> }} State  for each barrier at which somebody waits, who does */

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
