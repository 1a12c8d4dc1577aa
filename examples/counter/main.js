/**
 * A counter that survives crashes: three replicas, three clients, and a crash of the leader's host in the middle.
 * `node examples/counter/main.js`
 *
 * It checks that every increment is counted once and that all replicas agree.
 */
import { Cluster } from 'tram-multicast';

const CLIENTS = 3;
const INCREMENTS = 2000;
const GROUP = 0;
const ONE = Uint8Array.of(1);
const NOTHING = Uint8Array.of(0);

const cluster = await Cluster.start({
  groups: 1,
  hosts: 3,
  service: new URL('./service.js', import.meta.url),
});

try {
  /** The replies to all clients: each increment is answered with the new value. */
  const values = (await Promise.all([...Array(CLIENTS).keys()].map(increment))).flat();
  console.log(`${CLIENTS} clients have made ${values.length} increments`);
  check(
    'exactly one client got each value from 1 on',
    [...values].sort((a, b) => a - b).every((value, i) => value === i + 1),
  );

  const counts = await askEveryReplica();
  console.log(`the replicas have counted to ${counts.join(', ')}`);
  check(
    'no increment was lost, none was counted twice',
    counts.every((count) => count === CLIENTS * INCREMENTS),
  );
} finally {
  await cluster.close();
}

/** @param {number} who */
async function increment(who) {
  const client = await cluster.connect();
  const values = [];
  for (let i = 0; i < INCREMENTS; i++) {
    values.push(await send(client, ONE));
    if (who === 0 && i === INCREMENTS / 2) await crashTheLeader();
  }
  await client.close();
  return values;
}

/** The other clients go on meanwhile; the next leader orders their messages. */
async function crashTheLeader() {
  const leader = await untilLed();
  await cluster.crash(leader.host);
  console.log(`${leader.name}, the leader, has crashed with its host`);
  await cluster.restart(leader.host);
  console.log(`its host is back; ${(await untilLed()).name} leads now`);
}

/** Only the leader replies, so each replica leads in turn and is asked. */
async function askEveryReplica() {
  const client = await cluster.connect();
  const values = [];
  for (const { member } of cluster.status().groups[GROUP].replicas) {
    await untilLed(member);
    values.push(await send(client, NOTHING));
  }
  return values;
}

/** @param {number} [member]  the member that shall lead; any member by default */
async function untilLed(member) {
  for (;;) {
    const leader = leadingReplica();
    if (leader !== undefined && (member === undefined || leader.member === member)) return leader;
    if (member !== undefined) cluster.lead(GROUP, member);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function leadingReplica() {
  const { leader, replicas } = cluster.status().groups[GROUP];
  return leader === undefined ? undefined : replicas[leader];
}

/**
 * @param {import('tram-multicast').Client} client
 * @param {Uint8Array} payload
 */
async function send(client, payload) {
  const replies = await client.multicast([GROUP], payload);
  const [reply] = replies.values();
  return new DataView(reply.buffer).getFloat64(0);
}

/**
 * @param {string} claim
 * @param {boolean} holds
 */
function check(claim, holds) {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
