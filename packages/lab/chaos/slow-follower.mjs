/**
 * Measures what a follower that is slow or hangs costs its group: throughput as a share of that with all members well,
 * and the longest time without a reply. Rounds alternate, so that both are measured under the same conditions.
 *
 *   npm run build && node packages/lab/chaos/slow-follower.mjs [rounds]
 *
 * One group of three replicas on processes, one client with 16 messages of 100 bytes under way.
 */
import { Cluster } from 'tram-multicast';

const ROUNDS = Number(process.argv[2] ?? 5);
const ROUND_MS = 2500;
const REST_MS = 500;
const OUTSTANDING = 16;
/** A slow follower is stopped for so long, then runs for so long: a tenth of the time. */
const STOPPED_MS = 200;
const RUNNING_MS = 20;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

const cluster = await Cluster.start({ groups: 1, replicas: 3, memory: 'processes', hosts: 3 });
const client = await cluster.connect();
let replies = 0;
let lastMs = performance.now();
/** The longest times without a reply, in the present round. */
let gaps = [];
let isOver = false;

async function send() {
  const payload = new Uint8Array(100);
  while (!isOver) {
    await client.multicast([0], payload, { timeoutMs: 120_000 });
    const nowMs = performance.now();
    gaps.push(nowMs - lastMs);
    lastMs = nowMs;
    replies++;
  }
}

function followerPid() {
  const { groups, hosts } = cluster.status();
  const { leader, replicas } = groups[0];
  return hosts[replicas[(leader + 1) % 3].host].pid;
}

/** Treat the follower in this way until `isDone`. */
async function treat(way, pid, isDone) {
  if (way === 'well') return;
  while (!isDone()) {
    process.kill(pid, 'SIGSTOP');
    await sleep(way === 'slow' ? STOPPED_MS : ROUND_MS);
    process.kill(pid, 'SIGCONT');
    if (way === 'slow') await sleep(RUNNING_MS);
  }
}

async function measure(way) {
  let isDone = false;
  gaps = [];
  const before = replies;
  const startMs = performance.now();
  lastMs = startMs;
  const treatment = treat(way, followerPid(), () => isDone);
  await sleep(ROUND_MS);
  const rate = (replies - before) / ((performance.now() - startMs) / 1000);
  const [longest, second] = gaps.sort((a, b) => b - a);
  isDone = true;
  await treatment;
  await sleep(REST_MS);
  return { rate, longest, second };
}

const senders = Array.from({ length: OUTSTANDING }, send);
await sleep(ROUND_MS);
const results = { well: [], slow: [], hung: [] };
for (let round = 0; round < ROUNDS; round++) {
  for (const way of Object.keys(results)) results[way].push(await measure(way));
}
isOver = true;
await Promise.all(senders);
await client.close();
await cluster.close();

const wellRate = median(results.well.map(({ rate }) => rate));
console.log('follower   messages/s   share   longest gap (ms)   second longest');
for (const [way, rounds] of Object.entries(results)) {
  const rate = median(rounds.map((round) => round.rate));
  const longest = Math.max(...rounds.map((round) => round.longest));
  const second = Math.max(...rounds.map((round) => round.second));
  console.log(
    `${way.padEnd(8)} ${Math.round(rate).toLocaleString('en').padStart(12)} ${(rate / wellRate).toFixed(2).padStart(7)} ${longest.toFixed(0).padStart(18)} ${second.toFixed(0).padStart(16)}`,
  );
}
