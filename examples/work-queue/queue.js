/** The client side of the queue, used by all processes. */

const GROUP = 0;

/**
 * @param {import('tram-multicast').Client} client
 * @param {import('./service.js').Command} command
 * @returns {Promise<any>}
 */
export async function ask(client, command) {
  const payload = new TextEncoder().encode(JSON.stringify(command));
  const replies = await client.multicast([GROUP], payload);
  return JSON.parse(new TextDecoder().decode(replies.get(GROUP)));
}

/** @param {number} ms */
export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
