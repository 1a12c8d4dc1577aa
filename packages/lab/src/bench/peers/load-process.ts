/**
 * The load on a peer, in a process of its own: keeps messages in flight, and counts and times the answers. Started by `peer.ts`
 * with a `PeerJob`; its report has the form of the load on TRAM.
 */
import { Histogram } from 'tram-multicast/internal/hosting/histogram.js';
import { endWithParent } from '../load/end-with-parent.js';
import { latenciesIn } from '../systems/system.js';
import { connectEtcd } from './etcd.js';
import { connectNats } from './nats.js';
import type { Connect, ForkedReport, PeerClient, PeerId, PeerJob } from './peer.js';
import { connectRedis } from './redis.js';

const CONNECT: Readonly<Record<PeerId, Connect>> = {
  redis: connectRedis,
  nats: connectNats,
  etcd: connectEtcd,
};

const DRAIN_MS = 10_000;
const DRAIN_LOOK_MS = 5;

async function run(job: PeerJob): Promise<ForkedReport> {
  const { sets, outstanding } = job;
  const latency = Histogram.empty();
  const sentMs = new Float64Array(outstanding);
  const free = Array.from({ length: outstanding }, (_, slot) => slot);
  let count = 0;
  let turn = 0;
  let isStopped = false;
  let isRefillDue = false;
  let client: PeerClient | undefined;

  const refill = (): void => {
    isRefillDue = false;
    if (isStopped || client === undefined) return;
    const nowMs = performance.now();
    for (let slot = free.pop(); slot !== undefined; slot = free.pop()) {
      sentMs[slot] = nowMs;
      client.send(slot, sets[turn]);
      turn = turn + 1 < sets.length ? turn + 1 : 0;
    }
    client.flush();
  };
  const answered = (slot: number): void => {
    count++;
    latency.record((performance.now() - sentMs[slot]) * 1e6);
    free.push(slot);
    // One refill for all answers in a chunk of bytes.
    if (isRefillDue) return;
    isRefillDue = true;
    queueMicrotask(refill);
  };
  const failure = new Promise<never>((_, reject) => {
    const payload = Uint8Array.from({ length: job.payloadBytes }, (_, i) => i & 0xff);
    CONNECT[job.peer](job.address, { outstanding, payload, answered, failed: reject }).then(
      (connected) => {
        client = connected;
        refill();
      },
      reject,
    );
  });
  const wait = (ms: number): Promise<void> =>
    Promise.race([failure, new Promise<void>((resolve) => setTimeout(resolve, ms))]);

  await wait(job.warmUpSeconds * 1000);
  const before = latency.snapshot();
  const countBefore = count;
  const startedMs = performance.now();
  await wait(job.seconds * 1000);
  // Wait for at least one message if the system is slower than that.
  for (let looks = 0; count === countBefore && looks < DRAIN_MS / DRAIN_LOOK_MS; looks++) {
    await wait(DRAIN_LOOK_MS);
  }
  const seconds = (performance.now() - startedMs) / 1000;
  const messages = count - countBefore;
  const measured = latency.since(before);
  isStopped = true;
  const limitMs = performance.now() + DRAIN_MS;
  while (free.length < outstanding && performance.now() < limitMs) await wait(DRAIN_LOOK_MS);
  client?.close();
  const { user, system } = process.cpuUsage();
  return {
    messages,
    seconds,
    ...latenciesIn(measured),
    unanswered: outstanding - free.length,
    cpuSeconds: (user + system) / 1e6,
  };
}

endWithParent();
process.once('message', (job: PeerJob) => {
  run(job).then(
    (report) => process.send!(report, () => undefined),
    (error: Error) => process.send!({ failure: error.message }, () => undefined),
  );
});
