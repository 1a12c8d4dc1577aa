/**
 * A program that `namespaces.test.ts` runs on a machine: it listens for connections and datagrams at the given port. It
 * connects, writes to all its connections and sends datagrams on request, confirms each request, and reports all events.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';

const port = Number(process.argv[2]);
const connections = [];

function join(connection) {
  connections.push(connection);
  createInterface(connection).on('line', (line) => process.send(`tcp: ${line}`));
  connection.on('error', ({ code }) => process.send(`error: ${code}`));
  connection.on('close', () => process.send('closed'));
}

const server = createServer(join).listen(port);
const datagrams = createSocket('udp4').bind(port);
datagrams.on('message', (text) => process.send(`udp: ${text}`));

process.on('message', ({ what, to, text }) => {
  if (what === 'send') {
    datagrams.send(text, port, to, () => process.send('done'));
  } else if (what === 'write') {
    for (const connection of connections) connection.write(`${text}\n`);
    process.send('done');
  } else {
    const connection = connect(port, to, () => process.send('connected'));
    join(connection);
    process.send('done');
  }
});
process.on('disconnect', () => process.exit());
await Promise.all([once(server, 'listening'), once(datagrams, 'listening')]);
process.send('listening');
