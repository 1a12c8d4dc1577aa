/**
 * A ticket shop on tram-store, with an ordinary Redis client. `node examples/ticket-shop/main.js`
 *
 * Seats, orders, payments and wallets are keys of different shards. Buyers who compete for the last seats use WATCH and MULTI on all
 * of them, while a process that leads shards is killed. Audits of the whole shop must find, at any time, that no seat was sold
 * twice, that every payment has its order, and that no money is missing. A cluster of Redis refuses such transactions (CROSSSLOT).
 *
 * For comparison, careless buyers do not use WATCH. They buy seats that are gone.
 *
 * The replicas run in processes (`memory: 'processes'`, which needs the optional package koffi).
 */
import { Redis } from 'ioredis';
import { Store } from 'tram-store';

const SHOWS = ['opera', 'ballet', 'circus'];
const SEATS = 20;
const PRICE = 30;
/** What is in each wallet. Two people use it at a time. */
const MONEY = { ann: 160, bob: 900, zoe: 900 };
const WALLETS = Object.keys(MONEY);
const TOTAL = Object.values(MONEY).reduce((sum, money) => sum + money);

const store = await Store.start({ port: 0, memory: 'processes' });

try {
  const right = await run(buy, killAndRestart);
  report('with WATCH', right);
  check('every seat was sold once', right.sold === SHOWS.length * SEATS);
  check('the shop was in order at every audit', right.audits > 0 && right.wrong === 0);
  check('a process was killed meanwhile, and is back', right.isDisturbed);

  const careless = await run(buyCarelessly);
  report('for comparison, without WATCH', careless);
} finally {
  await store.close();
}

/**
 * Opens the shop, and lets everybody buy until nothing is left, or no money.
 * @param {typeof buy} purchase
 * @param {() => Promise<boolean>} [disturb]  runs at the same time
 */
async function run(purchase, disturb = async () => false) {
  await open();
  let isOver = false;
  const figures = { sold: 0, audits: 0, wrong: 0 };
  const buyer = async (/** @type {string} */ wallet, /** @type {number} */ who) => {
    const client = connect();
    const shows = [...SHOWS];
    for (let order = 0; shows.length > 0; order++) {
      const show = shows[order % shows.length];
      if (await purchase(client, show, wallet, `${wallet}-${who}-${order}`)) figures.sold++;
      else shows.splice(shows.indexOf(show), 1);
    }
    client.disconnect();
  };
  const auditor = async () => {
    const client = connect();
    do {
      figures.audits++;
      if (!(await isInOrder(client))) figures.wrong++;
    } while (!isOver);
    client.disconnect();
  };
  const buyers = WALLETS.flatMap((wallet) => [buyer(wallet, 1), buyer(wallet, 2)]);
  const audits = auditor();
  const [isDisturbed] = await Promise.all([disturb(), ...buyers]);
  isOver = true;
  await audits;
  return { ...figures, isDisturbed };
}

async function open() {
  const client = connect();
  await client
    .multi()
    .flushall()
    .mset(Object.fromEntries(SHOWS.map((show) => [seatsOf(show), SEATS])))
    .mset(Object.fromEntries(Object.entries(MONEY).map(([name, money]) => [walletOf(name), money])))
    .exec();
  client.disconnect();
}

/**
 * @param {Redis} client  of this buyer alone: WATCH belongs to a connection
 * @param {string} show
 * @param {string} wallet
 * @param {string} order
 * @returns {Promise<boolean>} false if there is no seat left, or not enough money
 */
async function buy(client, show, wallet, order) {
  for (;;) {
    await client.watch(seatsOf(show), walletOf(wallet));
    if (!(await isPossible(client, show, wallet))) {
      await client.unwatch();
      return false;
    }
    // Null: another buyer was faster, or has used the wallet. Nothing was done.
    if ((await pay(client, show, wallet, order)) !== null) return true;
  }
}

/** Between the question and the purchase, others buy. @type {typeof buy} */
async function buyCarelessly(client, show, wallet, order) {
  if (!(await isPossible(client, show, wallet))) return false;
  await pay(client, show, wallet, order);
  return true;
}

/**
 * @param {Redis} client
 * @param {string} show
 * @param {string} wallet
 */
async function isPossible(client, show, wallet) {
  const [seats, money] = await client.mget(seatsOf(show), walletOf(wallet));
  return Number(seats) > 0 && Number(money) >= PRICE;
}

/**
 * @param {Redis} client
 * @param {string} show
 * @param {string} wallet
 * @param {string} order
 */
function pay(client, show, wallet, order) {
  return client
    .multi()
    .decr(seatsOf(show))
    .decrby(walletOf(wallet), PRICE)
    .hset('orders', order, show)
    .hset('payments', order, PRICE)
    .exec();
}

/**
 * Reads all shards at one moment.
 * @param {Redis} client
 */
async function isInOrder(client) {
  const replies = await client
    .multi()
    .mget(SHOWS.map(seatsOf))
    .mget(WALLETS.map(walletOf))
    .hgetall('orders')
    .hgetall('payments')
    .exec();
  const [seats, wallets, orders, payments] = (replies ?? []).map(([, reply]) => Object(reply));
  const sold = SHOWS.map((show) => Object.values(orders).filter((one) => one === show).length);
  const paid = Object.values(payments).reduce((sum, price) => sum + Number(price), 0);
  const left = wallets.reduce(
    (/** @type {number} */ sum, /** @type {string} */ money) => sum + Number(money),
    0,
  );
  return (
    SHOWS.every((_, i) => Number(seats[i]) >= 0 && Number(seats[i]) + sold[i] === SEATS) &&
    wallets.every((/** @type {string} */ money) => Number(money) >= 0) &&
    Object.keys(orders).sort().join() === Object.keys(payments).sort().join() &&
    left + paid === TOTAL
  );
}

/** Kills a process that leads the first shard, with `kill -9`. */
async function killAndRestart() {
  const { cluster } = store;
  if (cluster === undefined) return false;
  await new Promise((resolve) => setTimeout(resolve, 100));
  const { leader, replicas } = cluster.status().groups[0];
  const { host } = replicas[leader ?? 0];
  await cluster.crash(host);
  console.log(`process ${host} was killed, and with it the leader of shard 0`);
  await cluster.restart(host);
  console.log(`process ${host} is back`);
  return true;
}

function connect() {
  return new Redis(store.port ?? 0);
}

/** @param {string} show */
function seatsOf(show) {
  return `seats:${show}`;
}

/** @param {string} wallet */
function walletOf(wallet) {
  return `wallet:${wallet}`;
}

/**
 * @param {string} how
 * @param {Awaited<ReturnType<typeof run>>} figures
 */
function report(how, { sold, audits, wrong }) {
  console.log(`${how}:`);
  console.log(`  ${sold} tickets sold`);
  console.log(`  ${audits} audits meanwhile, of which ${wrong} found something wrong`);
}

/**
 * @param {string} claim
 * @param {boolean} holds
 */
function check(claim, holds) {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}
