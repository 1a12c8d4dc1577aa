/**
 * A tour of the API, part by part; docs/api.md explains it with excerpts from this file.
 * `node examples/tour/main.js`
 */
import { subscribe } from 'node:diagnostics_channel';
import { Cluster, TramError } from 'tram-multicast';

/** @param {string} text */
const encode = (text) => new TextEncoder().encode(text);
/** @param {Uint8Array | undefined} bytes */
const decode = (bytes) => new TextDecoder().decode(bytes);

console.log('--- start, and look');

const cluster = await Cluster.start({
  groups: 4,
  replicas: 3,
  tree: [-1, 0, 0, 1],
  memory: 'threads',
  hosts: 3,
  service: new URL('./service.js', import.meta.url),
  logger: { info: () => undefined, warn: console.log, error: () => undefined },
});

for (const { group, parent, leader, replicas } of cluster.status().groups) {
  const states = replicas.map(({ name, state }) => `${name} ${state}`);
  console.log(`group ${group} under ${parent}, led by ${leader}: ${states.join(', ')}`);
}

console.log('--- multicast, and read along');

const client = await cluster.connect();
const deliveries = cluster.deliveries({ group: 3 });

const replies = await client.multicast([1, 3], encode('hello'), { timeoutMs: 5000 });
for (const [group, reply] of replies) console.log(`group ${group} has ${decode(reply)} message`);

for await (const { index, id, destinations, payload } of deliveries) {
  console.log(`group 3 delivered ${id} to ${destinations} as number ${index}: ${decode(payload)}`);
  break;
}
check('both groups have replied', replies.size === 2);

console.log('--- errors');

/** @param {unknown} error */
function explain(error) {
  if (!(error instanceof TramError)) throw error;
  console.log(`${error.code} (retry: ${error.retry}): ${error.message}`);
  return error.code;
}

const failed = await client.multicast([2], encode('fail')).catch(explain);
const unknown = await client.multicast([7], encode('nobody')).catch(explain);
const signal = AbortSignal.abort('no longer needed');
const aborted = await client.multicast([2], encode('never sent'), { signal }).catch(explain);

check('a service that throws fails its message', failed === 'TRAM_SERVICE_FAILED');
check('there is no group 7', unknown === 'TRAM_INVALID_DESTINATIONS');
check('what was aborted before was not sent', aborted === 'TRAM_ABORTED');

console.log('--- many messages, without promises');

let answered = 0;
const fast = await cluster.connect({
  listener: {
    replied: (ticket, group, reply, outcome) => {
      if (outcome !== 'ok') console.log(`message ${ticket} failed at group ${group}`);
      if (ticket === 1) console.log(`group ${group} replied ${decode(reply)} to the first one`);
    },
    answered: () => {
      answered++;
    },
  },
});

const everybody = fast.destinations([0, 1, 2, 3]);
const payload = encode('one of many');
for (let sent = 0; sent < 1000; ) {
  const offer = fast.offer(everybody, payload);
  if (offer === 'accepted') sent++;
  // Full: let the event loop turn, so that replies come in.
  else await new Promise((resolve) => setImmediate(resolve));
}
await fast.close();
console.log(`${answered} of ${fast.ticket} messages are answered`);
check('a client that closes waits for its replies', answered === 1000);

console.log('--- a crash');

/** @type {number[]} */
const newLeaders = [];
subscribe('tram:leader', (message) => {
  const { group, member } = /** @type {{ group: number, member: number }} */ (message);
  console.log(`g${group}/${member} leads`);
  newLeaders.push(group);
});

const { leader = 0, replicas } = cluster.status().groups[0];
await cluster.crash(replicas[leader].host);
await client.multicast([0, 1, 2, 3], encode('still here'));
await cluster.restart(replicas[leader].host);
check('somebody else leads group 0 now', newLeaders.includes(0));

console.log('--- from outside');

const attached = await Cluster.attach(cluster.address);
const { hosts, clients } = attached.status();
console.log(`${hosts.length} hosts, ${clients.connected} client`);
await attached.close();
check('whoever is attached sees the client', clients.connected === 1);

await cluster.close();

/**
 * @param {string} claim
 * @param {boolean} holds
 */
function check(claim, holds) {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
