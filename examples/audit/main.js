/**
 * An audit that reads one group after the other. Payments go on meanwhile, so the two sums may differ. But the auditor reads
 * first what the staff has received, and then what the firm has paid. So it must never find that more was received than
 * paid. With `order: 'strict'`, it never does. With `order: 'multicast'`, it may. `node examples/audit/main.js`
 *
 * The staff's group delivers a payment first, and the firm's group a moment later. An audit is wrong if it reads within this
 * moment, which happens by chance. To make it certain, the example prolongs the moment: the group in between loses its
 * majority. With `multicast`, the auditor then sees a payment that the firm's books do not have. With `strict`, the staff's
 * group delivers the payment as early, but its replies wait until the firm's group has the payment too.
 *
 * An audit that sends one message to both groups is right with both orders: see the example `bank`.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster } from 'tram-multicast';
import books, { BETWEEN, FIRM, STAFF } from './service.js';

const PAYERS = 4;
const DURATION_MS = 600;

/** @typedef {ReturnType<typeof books.client>} BooksClient */

await run('multicast');
await run('strict');

/** @param {'multicast' | 'strict'} order */
async function run(order) {
  console.log(`order: '${order}'`);
  // Six hosts: three run groups 0 and 2, and three run group 1.
  const cluster = await Cluster.start({
    groups: 3,
    hosts: 6,
    tree: 'depth',
    order,
    service: new URL('./service.js', import.meta.url),
  });
  try {
    const isRight = await auditUnderLoad(cluster);
    if (order === 'strict') check('no audit found more received than paid', isRight);
    await auditBehindAStoppedGroup(cluster, order);
  } finally {
    await cluster.close();
  }
}

/**
 * Payments and audits at the same time, for a while.
 * @param {Cluster} cluster
 */
async function auditUnderLoad(cluster) {
  const endMs = Date.now() + DURATION_MS;
  let payments = 0;
  const pay = async () => {
    const client = books.client(await cluster.connect());
    for (; Date.now() < endMs; payments++) {
      await client.multicast([STAFF, FIRM], { type: 'pay', amount: 1 });
    }
    await client.close();
  };
  let audits = 0;
  let wrong = 0;
  const auditAll = async () => {
    const client = books.client(await cluster.connect());
    for (; Date.now() < endMs; audits++) {
      const { received, paid } = await audit(client);
      if (received > paid) wrong++;
    }
    await client.close();
  };
  await Promise.all([...Array.from({ length: PAYERS }, pay), auditAll()]);
  console.log(`  ${payments} payments; ${audits} audits meanwhile, of which ${wrong} were wrong`);
  return wrong === 0;
}

/**
 * Reads one group after the other.
 * @param {BooksClient} client
 */
async function audit(client) {
  const received = await client.call(STAFF, { type: 'read' });
  const paid = await client.call(FIRM, { type: 'read' });
  return { received, paid };
}

/**
 * An audit while a payment has reached only one of its groups.
 * @param {Cluster} cluster
 * @param {'multicast' | 'strict'} order
 */
async function auditBehindAStoppedGroup(cluster, order) {
  const payer = books.client(await cluster.connect());
  const auditor = books.client(await cluster.connect());
  const hosts = await stopGroup(cluster, BETWEEN);
  const deliveries = cluster.deliveries({ group: STAFF });
  const delivered = deliveries.next();
  const payment = payer.multicast([STAFF, FIRM], { type: 'pay', amount: 1000 });
  await delivered;
  await deliveries.return(undefined);
  console.log('  a payment of 1000 has reached the staff, but not the firm');

  let hasEnded = false;
  const auditing = audit(auditor).finally(() => {
    hasEnded = true;
  });
  if (order === 'multicast') await auditing;
  else await pause(DURATION_MS);
  check(`the audit ${hasEnded ? 'does not wait' : 'waits'}`, hasEnded === (order === 'multicast'));

  for (const host of hosts) await cluster.restart(host);
  await payment;
  const { received, paid } = await auditing;
  console.log(`  the staff has received ${received}, the firm has paid ${paid}`);
  if (order === 'multicast') check('so the audit was wrong', received > paid);
  else check('the audit was right', received <= paid);
}

/**
 * Crashes the leader of a group and another member.
 * @param {Cluster} cluster
 * @param {number} group
 * @returns {Promise<number[]>} the hosts that have crashed
 */
async function stopGroup(cluster, group) {
  const { leader = 0, replicas } = cluster.status().groups[group];
  const hosts = [leader, (leader + 1) % replicas.length].map((member) => replicas[member].host);
  for (const host of hosts) await cluster.crash(host);
  while (cluster.status().groups[group].health !== 'no-majority') await pause(10);
  console.log(`  hosts ${hosts.join(' and ')} have crashed: group ${group} has lost its majority`);
  return hosts;
}

/**
 * @param {string} claim
 * @param {boolean} holds
 */
function check(claim, holds) {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
