/**
 * A worker: a process that claims jobs until none are left. Started by main.js with the name of the cluster and its fate: `well`,
 * `killed` in the middle of its second job, or `asleep` in the middle of it until it is woken.
 */
import { once } from 'node:events';
import { Client } from 'tram-multicast';
import { ask, pause } from './queue.js';

const JOB_MS = 10;

const [name, fate] = process.argv.slice(2);
const client = await Client.connect(name);
process.send?.({ what: 'ready' });
await once(process, 'message');

let jobs = 0;
for (;;) {
  const { job, claim, isOver } = await ask(client, { what: 'claim' });
  if (isOver) break;
  if (job === undefined) {
    // Others are at work; should one of them die, its job comes back.
    await pause(JOB_MS);
    continue;
  }
  await work(job, ++jobs);
  const { isAccepted } = await ask(client, { what: 'done', job, claim });
  process.send?.({ what: isAccepted ? 'done' : 'refused', job });
}

await client.close();
process.disconnect?.();

/**
 * @param {string} job
 * @param {number} count
 */
async function work(job, count) {
  if (count !== 2 || fate === 'well') return pause(JOB_MS);
  process.send?.({ what: fate, job });
  await once(process, 'message');
}
