/**
 * A cluster that is ended at once, with all its replicas, and goes on where it was: its journal is on a disk. Then a backup
 * of the running cluster, from which another cluster starts. `node examples/durable/main.js`
 *
 * It checks that every deposit that was replied to is there after each start, in both groups.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster } from 'tram-multicast';
import account from './service.js';

const DEPOSITS = 200;
const directory = mkdtempSync(join(tmpdir(), 'tram-durable-'));
const service = new URL('./service.js', import.meta.url);

try {
  /** @type {import('tram-multicast').StartOptions} */
  const options = {
    groups: 2,
    service,
    durability: 'always',
    journal: join(directory, 'journal'),
  };
  let cluster = await Cluster.start(options);
  let client = account.client(await cluster.connect());
  for (let i = 0; i < DEPOSITS; i++) await client.multicast([0, 1], { deposit: 1 });
  // Not in an orderly way: as if the power had been cut.
  await cluster.destroy();

  cluster = await Cluster.start(options);
  client = account.client(await cluster.connect());
  const found = await client.multicast([0, 1], { deposit: 0 });
  check('all deposits are there after a start from the journal', isComplete(found));

  const backup = join(directory, 'backup');
  await cluster.backup(backup);
  await client.multicast([0, 1], { deposit: 1000 });
  await cluster.destroy();

  const restored = join(directory, 'restored');
  await Cluster.restore(backup, { journal: restored });
  cluster = await Cluster.start({ ...options, journal: restored });
  client = account.client(await cluster.connect());
  const saved = await client.multicast([0, 1], { deposit: 0 });
  check('the backup has all deposits before it, and none after it', isComplete(saved));
  await cluster.close();
} finally {
  rmSync(directory, { recursive: true });
}

/** @param {ReadonlyMap<number, { balance: number }>} replies */
function isComplete(replies) {
  return [...replies.values()].every(({ balance }) => balance === DEPOSITS);
}

/**
 * @param {string} claim
 * @param {boolean} holds
 */
function check(claim, holds) {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
