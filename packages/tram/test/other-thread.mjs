/** A client in a worker thread, for tests: connects to the cluster at the address that it is given, and says hello. */
import { parentPort, workerData } from 'node:worker_threads';
import { Client } from 'tram-multicast';

const client = await Client.connect(workerData);
const replies = await client.multicast([0, 2], new TextEncoder().encode('from a thread'));
await client.close();
parentPort.postMessage([...replies.keys()].sort());
