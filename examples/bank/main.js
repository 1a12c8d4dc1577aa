/**
 * A bank whose accounts are distributed over four groups. Clients transfer money between accounts while a host crashes and
 * restarts. Audits of all groups must always find the same total. `node examples/bank/main.js`
 *
 * For comparison it also runs transfers as two messages, for which audits find wrong totals.
 */
import { Cluster } from 'tram-multicast';

const GROUPS = 4;
const ALL_GROUPS = [...Array(GROUPS).keys()];
const ACCOUNTS = 16;
const START_BALANCE = 100;
const TOTAL = ACCOUNTS * START_BALANCE;
const TELLERS = 4;
const DURATION_MS = 1500;

/** @param {number} account */
const groupOf = (account) => account % GROUPS;

const cluster = await Cluster.start({
  groups: GROUPS,
  hosts: 3,
  service: new URL('./service.js', import.meta.url),
});

try {
  await openAccounts();

  const right = await run(transfer, crashAndRestart);
  report('one message to both groups', right);
  check('every audit found the same total', right.audits > 0 && right.wrong === 0);
  check('no account was overdrawn', right.least >= 0);

  const careless = await run(transferInTwoMessages);
  report('for comparison, one message to each group', careless);

  const last = await audit(await cluster.connect());
  check('after all transfers the total is still the same', last.total === TOTAL);
} finally {
  await cluster.close();
}

/** Each account starts with the same balance. Transfers preserve the total. */
async function openAccounts() {
  const client = await cluster.connect();
  for (let account = 0; account < ACCOUNTS; account++) {
    await send(client, [groupOf(account)], { what: 'open', account, amount: START_BALANCE });
  }
  await client.close();
}

/**
 * Runs several tellers and an auditor for a while.
 * @param {typeof transfer} move
 * @param {() => Promise<void>} [disturb]  runs at the same time
 */
async function run(move, disturb = async () => undefined) {
  const figures = { transfers: 0, refused: 0, audits: 0, wrong: 0, least: Infinity };
  const endMs = Date.now() + DURATION_MS;
  const teller = async () => {
    const client = await cluster.connect();
    while (Date.now() < endMs) {
      const from = draw(ACCOUNTS);
      const to = (from + 1 + draw(ACCOUNTS - 1)) % ACCOUNTS;
      if (await move(client, from, to, 1 + draw(80))) figures.transfers++;
      else figures.refused++;
    }
    await client.close();
  };
  const auditor = async () => {
    const client = await cluster.connect();
    while (Date.now() < endMs) {
      const { total, least } = await audit(client);
      figures.audits++;
      if (total !== TOTAL) figures.wrong++;
      figures.least = Math.min(figures.least, least);
    }
    await client.close();
  };
  await Promise.all([...Array.from({ length: TELLERS }, teller), auditor(), disturb()]);
  return figures;
}

/**
 * @param {import('tram-multicast').Client} client
 * @param {number} from
 * @param {number} to
 * @param {number} amount
 * @returns {Promise<boolean>} whether the payer had enough
 */
async function transfer(client, from, to, amount) {
  if (!(await reserve(client, from, amount))) return false;
  await send(client, [groupOf(from), groupOf(to)], { what: 'transfer', from, to, amount });
  return true;
}

/** @type {typeof transfer} */
async function transferInTwoMessages(client, from, to, amount) {
  if (!(await reserve(client, from, amount))) return false;
  await send(client, [groupOf(from)], { what: 'debit', from, amount });
  await send(client, [groupOf(to)], { what: 'credit', to, amount });
  return true;
}

/**
 * @param {import('tram-multicast').Client} client
 * @param {number} account
 * @param {number} amount
 */
async function reserve(client, account, amount) {
  const [{ isReserved }] = await send(client, [groupOf(account)], {
    what: 'reserve',
    account,
    amount,
  });
  return isReserved;
}

/** @param {import('tram-multicast').Client} client */
async function audit(client) {
  const shards = await send(client, ALL_GROUPS, { what: 'audit' });
  return {
    total: shards.reduce((sum, shard) => sum + shard.total, 0),
    least: Math.min(...shards.map((shard) => shard.least)),
  };
}

/** Crashes the host of a leader. Every host runs one replica of each group. */
async function crashAndRestart() {
  await pause(DURATION_MS / 3);
  const { leader, replicas } = cluster.status().groups[0];
  const { host } = replicas[leader ?? 0];
  await cluster.crash(host);
  console.log(`host ${host} has crashed, with the leader of group 0`);
  await pause(DURATION_MS / 3);
  await cluster.restart(host);
  console.log(`host ${host} is back`);
}

/**
 * @param {import('tram-multicast').Client} client
 * @param {number[]} groups
 * @param {import('./service.js').Command} command
 * @returns {Promise<any[]>} what each group replied
 */
async function send(client, groups, command) {
  const replies = await client.multicast(groups, new TextEncoder().encode(JSON.stringify(command)));
  return [...replies.values()].map((reply) => JSON.parse(new TextDecoder().decode(reply)));
}

/**
 * @param {string} how
 * @param {Awaited<ReturnType<typeof run>>} figures
 */
function report(how, { transfers, refused, audits, wrong }) {
  console.log(`${how}:`);
  console.log(`  ${transfers} transfers, ${refused} refused because the payer had too little`);
  console.log(`  ${audits} audits meanwhile, of which ${wrong} found a wrong total`);
}

/**
 * @param {string} claim
 * @param {boolean} holds
 */
function check(claim, holds) {
  console.log(`${holds ? 'ok' : 'WRONG'}: ${claim}`);
  if (!holds) process.exitCode = 1;
}

/** @param {number} below */
function draw(below) {
  return Math.floor(Math.random() * below);
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
