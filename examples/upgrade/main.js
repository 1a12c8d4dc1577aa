/**
 * Replaces the code of a service while clients use it. `node examples/upgrade/main.js`
 *
 * The hosts restart one after the other, each with the new code. Then a message switches the new behaviour on. The
 * example checks that every point was counted by the rules that applied to it, and that all replicas agree.
 */
import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster } from 'tram-multicast';

const GROUPS = [0, 1];
const IN_FLIGHT = 4;
const directory = mkdtempSync(join(tmpdir(), 'tram-upgrade-'));
const service = join(directory, 'service.mjs');

install(1);
const cluster = await Cluster.start({
  groups: GROUPS.length,
  hosts: 3,
  service,
  // Small, so that replicas that restart need snapshots.
  logBytes: 4096,
  payloadBytesMax: 64,
});

try {
  const client = await cluster.connect();
  /** By group: what its points must be. */
  const expected = GROUPS.map(() => 0);
  let isOver = false;
  const load = Promise.all(Array.from({ length: IN_FLIGHT }, sendOn));
  await until(() => expected[0] >= 1000);

  install(2);
  await cluster.rollingRestart();
  console.log(`all hosts run version 2, after ${expected[0]} points by the rules of version 1`);
  await send({ rules: 2 });
  const atSwitch = expected[0];
  await until(() => expected[0] >= atSwitch + 1000);
  isOver = true;
  await load;

  for (const group of GROUPS) {
    const states = await askEveryReplica(group);
    console.log(`the replicas of group ${group} have ${states.join(', ')}`);
    const right = JSON.stringify({ points: expected[group], rules: 2 });
    check(
      `group ${group} has counted every point, and its replicas agree`,
      states.every((state) => state === right),
    );
  }
  await client.close();

  /** Adds points until it is over, and adds up what the replies say. */
  async function sendOn() {
    while (!isOver) {
      const replies = await send({ add: 1 });
      for (const [group, { rules = 1 }] of replies) expected[group] += rules;
    }
  }

  /** @param {object} message @param {number[]} groups */
  async function send(message, groups = GROUPS) {
    const payload = new TextEncoder().encode(JSON.stringify(message));
    const replies = await client.multicast(groups, payload);
    return [...replies].map(
      ([group, reply]) =>
        /** @type {const} */ ([group, JSON.parse(new TextDecoder().decode(reply))]),
    );
  }

  /** Only the leader replies, so each replica leads in turn and is asked. @param {number} group */
  async function askEveryReplica(group) {
    const states = [];
    for (const { member } of cluster.status().groups[group].replicas) {
      while (cluster.status().groups[group].leader !== member) {
        cluster.lead(group, member);
        await pause();
      }
      const [[, state]] = await send({}, [group]);
      states.push(JSON.stringify(state));
    }
    return states;
  }
} finally {
  await cluster.close();
  rmSync(directory, { recursive: true });
}

/** Puts a version of the service in place, whole or not at all. @param {number} version */
function install(version) {
  copyFileSync(new URL(`./service-${version}.js`, import.meta.url), `${service}.new`);
  renameSync(`${service}.new`, service);
}

/** @param {() => boolean} isSo */
async function until(isSo) {
  while (!isSo()) await pause();
}

function pause() {
  return new Promise((resolve) => setTimeout(resolve, 20));
}

/**
 * @param {string} claim
 * @param {boolean} holds
 */
function check(claim, holds) {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
