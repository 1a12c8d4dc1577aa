/** Free ports of the loopback interface, for the servers of measured systems. */
import { createServer, type Server } from 'node:net';

export const LOOPBACK = '127.0.0.1';

/** Below the ephemeral ports, so that no outgoing connection takes one between the check and its use. */
const FIRST_PORT = 15_000;
const LAST_PORT = 32_000;

/** @param following  how many ports after each of these are free too */
export async function freePorts(count: number, following = 0): Promise<number[]> {
  const held: Server[] = [];
  const ports: number[] = [];
  try {
    while (ports.length < count) {
      const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
      const servers = Array.from({ length: 1 + following }, () => createServer());
      const areFree = await Promise.all(servers.map((server, i) => canListen(server, port + i)));
      held.push(...servers.filter((_, i) => areFree[i]));
      if (areFree.every((isFree) => isFree)) ports.push(port);
    }
    return ports;
  } finally {
    await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

function canListen(server: Server, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, LOOPBACK, () => resolve(true));
  });
}
