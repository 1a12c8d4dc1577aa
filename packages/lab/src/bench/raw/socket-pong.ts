/** The echo server of `socket-ping-pong.ts`. */
import { type AddressInfo, createServer } from 'node:net';
import { serveOrders } from '../load/forked.js';

/** @returns the port */
function listen(address: string): Promise<number> {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('data', (bytes) => socket.write(bytes));
    socket.on('error', () => socket.destroy());
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, address, () => resolve((server.address() as AddressInfo).port));
  });
}

serveOrders({ listen });
