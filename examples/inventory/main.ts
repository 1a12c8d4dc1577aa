/**
 * A typed service: 50 customers compete for 20 pears, and a host crashes while they do. Nobody gets a pear that is not
 * there, and a count of all groups sees every one of them.
 *
 * Node runs JavaScript: compile first. `npx tsc -p examples/inventory && node examples/inventory/dist/main.js`
 */
import { Cluster } from 'tram-multicast';
import inventory from './service.js';

const GROUPS = [0, 1, 2, 3];

const cluster = await Cluster.start({
  groups: GROUPS.length,
  hosts: 3,
  service: new URL('./service.js', import.meta.url),
});
const client = inventory.client(await cluster.connect());

await client.call(groupOf('pears'), { type: 'add', item: 'pears', count: 20 });
await client.call(groupOf('plums'), { type: 'add', item: 'plums', count: 5 });

const customers = Array.from({ length: 50 }, () =>
  client.call(groupOf('pears'), { type: 'take', item: 'pears', count: 1 }),
);
await cluster.crash(0);
const answers = await Promise.all(customers);
check('20 customers got a pear', answers.filter(({ accepted }) => accepted).length === 20);
check('the others were told that none is left', answers.at(-1)?.left === 0);

// One message to all groups: they all count at the same point of the order.
const totals = await client.multicast(GROUPS, { type: 'total' });
const left = [...totals.values()].reduce((sum, total) => sum + total.left, 0);
check('5 items are left in all groups together', left === 5);

await cluster.close();

/** Every client must place an item in the same group. */
function groupOf(item: string): number {
  return [...item].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % GROUPS.length;
}

function check(claim: string, holds: boolean): void {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
