/**
 * Runs on a machine of test/chaos/machines.mjs, for tests: listens for connections and for datagrams at the port that
 * it is named. It connects, writes (to all connections) and sends as it is told, says when it has, and tells what
 * happens to it.
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
