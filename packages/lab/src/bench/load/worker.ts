/**
 * Runs clients in a thread or process of their own: warm-up, measurement, and draining until all messages are answered.
 * Started by `run.ts` with a `LoadJob`; reports a `Measurement`.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { nowUs } from 'tram-multicast/internal/hosting/clock.js';
import { inlineGenerously } from 'tram-multicast/internal/hosting/v8-flags.js';
import { differenceOf } from '../machines/calls.js';
import { latenciesIn, type Measurement } from '../systems/system.js';
import { cpuSecondsOf } from './cpu.js';
import { endWithParent } from './end-with-parent.js';
import { Load, type LoadOptions } from './load.js';
import { dutyOf } from './loads-duty.js';
import { openTarget, type TargetAddress } from './open-target.js';

export interface LoadJob extends LoadOptions, TargetAddress {
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

const DRAIN_US = 5_000_000;
const SLICE_US = 10_000;

async function run(job: LoadJob): Promise<Measurement> {
  inlineGenerously();
  const target = await openTarget(job, job.clients);
  const { pids } = target;
  const loads = Array.from({ length: job.clients }, (_, i) => new Load(target, job, i));
  const duty = dutyOf(target, job, loads);
  duty.run(job.warmUpSeconds * 1e6);
  const before = target.latency();
  const cpuBefore = cpuSeconds(pids);
  const callsBefore = target.calls?.();
  const startedUs = nowUs();
  const count = answered(loads);
  duty.run(job.seconds * 1e6);
  // Wait for at least one message if the system is slower than that.
  for (const untilUs = nowUs() + DRAIN_US; answered(loads) === count && nowUs() < untilUs; )
    duty.run(SLICE_US);
  const seconds = (nowUs() - startedUs) / 1e6;
  const coresUsed = (cpuSeconds(pids) - cpuBefore) / seconds;
  const messages = answered(loads) - count;
  const callsAfter = target.calls?.();
  const latency = target.latency().since(before);
  for (const load of loads) load.stop();
  const outstanding = (): number => loads.reduce((sum, load) => sum + load.outstanding, 0);
  for (const untilUs = nowUs() + DRAIN_US; outstanding() > 0 && nowUs() < untilUs; )
    duty.run(SLICE_US);
  const unanswered = outstanding();
  for (const load of loads) load.release();
  target.close();
  return {
    messages,
    seconds,
    ...latenciesIn(latency),
    unanswered,
    coresUsed,
    ...(callsBefore !== undefined &&
      callsAfter !== undefined && { calls: differenceOf(callsAfter, callsBefore) }),
  };
}

function answered(loads: readonly Load[]): number {
  return loads.reduce((sum, load) => sum + load.count, 0);
}

/** User and system time of this process with all its threads, and of the hosts if they are other processes. */
function cpuSeconds(pids: readonly number[]): number {
  const { user, system } = process.cpuUsage();
  const others = pids.filter((pid) => pid !== process.pid);
  return others.reduce((sum, pid) => sum + cpuSecondsOf(pid), (user + system) / 1e6);
}

if (parentPort !== null) {
  parentPort.postMessage(await run(workerData as LoadJob));
} else {
  endWithParent();
  process.once('message', async (job: LoadJob) => {
    process.send!(await run(job), () => undefined);
  });
}
