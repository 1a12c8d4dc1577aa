/**
 * Moves the state of a service to another cluster, for example to one of another memory version.
 * `node examples/move/main.js`
 *
 * Everything goes through messages, so the two clusters need not run at the same time: the pages could wait in a file.
 */
import { Cluster } from 'tram-multicast';

const KEYS = 103;
/** @type {import('tram-multicast').StartOptions} */
const OPTIONS = { groups: 2, service: new URL('./service.js', import.meta.url) };

const before = await readAndClose(await fill());
const after = await readAndClose(await load(before));
console.log(`${before.flat(2).length} entries have moved`);
check('the new cluster has all entries', KEYS === before.flat(2).length);
check('and has them in the same groups', JSON.stringify(before) === JSON.stringify(after));

/** A cluster with some state. */
async function fill() {
  const cluster = await Cluster.start(OPTIONS);
  const client = await cluster.connect();
  for (let key = 0; key < KEYS; key++) {
    await client.multicast([key % OPTIONS.groups], encode({ set: [`key ${key}`, `value ${key}`] }));
  }
  await client.close();
  return cluster;
}

/**
 * By group, all pages. Nobody may write meanwhile.
 * @param {Cluster} cluster
 */
async function readAndClose(cluster) {
  const client = await cluster.connect();
  /** @type {[string, string][][][]} */
  const pages = [];
  for (let group = 0; group < OPTIONS.groups; group++) {
    pages[group] = [];
    for (let last = ''; ; last = pages[group].at(-1)?.at(-1)?.[0] ?? '') {
      const replies = await client.multicast([group], encode({ after: last }));
      const page = JSON.parse(new TextDecoder().decode(replies.get(group)));
      if (page.length === 0) break;
      pages[group].push(page);
    }
  }
  await client.close();
  await cluster.close();
  return pages;
}

/** @param {[string, string][][][]} pages  by group */
async function load(pages) {
  const cluster = await Cluster.start(OPTIONS);
  const client = await cluster.connect();
  for (const [group, ofGroup] of pages.entries()) {
    for (const page of ofGroup) await client.multicast([group], encode({ load: page }));
  }
  await client.close();
  return cluster;
}

/** @param {unknown} value */
function encode(value) {
  return new TextEncoder().encode(JSON.stringify(value));
}

/**
 * @param {string} claim
 * @param {boolean} holds
 */
function check(claim, holds) {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
