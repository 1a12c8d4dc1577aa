/** Free ports, for the hosts that tests start. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Below the ephemeral ports: the system gives those to outgoing connections and to servers that ask for any port, also in the
 * time between the check and the use, and while a host that restarts does not listen. (The lab has ports above these.)
 */
const FIRST_PORT = 10_000;
const LAST_PORT = 14_990;

/** Free at all addresses of this machine. @param following  how many ports after each of these are free too */
export async function freePorts(count: number, following = 0): Promise<number[]> {
  const ports: number[] = [];
  const held: Server[] = [];
  try {
    while (ports.length < count) {
      const first = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT));
      const servers = await Promise.all(
        Array.from({ length: 1 + following }, (_, i) => serverAt(first + i)),
      );
      held.push(...servers.filter((server) => server !== undefined));
      if (!servers.includes(undefined)) ports.push(first);
    }
    return ports;
  } finally {
    await Promise.all(held.map((server) => once(server.close(), 'close')));
  }
}

export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port;
}

/** `undefined` if the port is taken. */
function serverAt(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, '0.0.0.0', () => resolve(server));
  });
}
