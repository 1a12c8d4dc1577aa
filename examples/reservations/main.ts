/**
 * Orders over two warehouses: each order gets all its items or none, although one client disappears in the middle of its
 * order. service.ts explains how.
 *
 * Node runs JavaScript: compile first. `npx tsc -p examples/reservations && node examples/reservations/dist/main.js`
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster } from 'tram-multicast';
import warehouse, { type Command } from './service.js';

const WAREHOUSES = [0, 1, 2, 3];
const STOCK = 40;
const CUSTOMERS = 3;
const ORDERS = 40;
/** How many items an order needs from each of its warehouses. */
const COUNT = 2;
const HOLD_MS = 500;
const TICK_MS = 50;

const cluster = await Cluster.start({
  groups: WAREHOUSES.length,
  hosts: 3,
  service: new URL('./service.js', import.meta.url),
});
const clerk = warehouse.client(await cluster.connect());
await clerk.multicast(WAREHOUSES, { type: 'stock', count: STOCK });

await disappear();
const customers = Array.from({ length: CUSTOMERS }, (_, customer) => shop(customer));
const sales = (await Promise.all(customers)).flat();
await expireHolds();

const totals = await clerk.multicast(WAREHOUSES, { type: 'stock', count: 0 });
const isRight = [...totals].every(([group, { free, sold }]) => {
  const orders = sales.filter((warehouses) => warehouses.includes(group)).length;
  return sold === orders * COUNT && free === STOCK - sold;
});
check(
  `each of ${sales.length} confirmed orders got all its items, and no other order got any`,
  isRight,
);
const isSoldOut = [...totals.values()].some(({ free }) => free < COUNT);
check(
  'orders were refused because items were missing',
  isSoldOut && sales.length < CUSTOMERS * ORDERS,
);
await cluster.close();

/** A client holds items of two warehouses, and is gone before it has confirmed or released them. */
async function disappear(): Promise<void> {
  const client = warehouse.client(await cluster.connect());
  const votes = await client.multicast([0, 1], hold('lost order'));
  check('the client that disappears holds items', [...votes.values()].every(isAccepted));
  client.client.destroy();
}

/** Places orders at two warehouses each. Returns the warehouses of the orders that were confirmed. */
async function shop(customer: number): Promise<number[][]> {
  const client = warehouse.client(await cluster.connect());
  const confirmed: number[][] = [];
  for (let n = 0; n < ORDERS; n++) {
    const order = `order ${customer}.${n}`;
    const warehouses = [(customer + n) % 4, (customer + n + 1 + (n % 3)) % 4];
    const votes = await client.multicast(warehouses, hold(order));
    const type = [...votes.values()].every(isAccepted) ? 'confirm' : 'release';
    const answers = await client.multicast(warehouses, { type, order });
    // If the hold has expired, all warehouses of the order refuse.
    if (type === 'confirm' && [...answers.values()].every(isAccepted)) confirmed.push(warehouses);
  }
  await client.close();
  return confirmed;
}

function hold(order: string): Command {
  return { type: 'hold', order, count: COUNT, untilMs: Date.now() + HOLD_MS };
}

function isAccepted({ accepted }: { readonly accepted: boolean }): boolean {
  return accepted;
}

/** Multicasts the time until nothing is on hold. In a real system, some client does this all the time. */
async function expireHolds(): Promise<void> {
  for (;;) {
    const replies = await clerk.multicast(WAREHOUSES, { type: 'expire', nowMs: Date.now() });
    if ([...replies.values()].every(({ held }) => held === 0)) return;
    await pause(TICK_MS);
  }
}

function check(claim: string, holds: boolean): void {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
