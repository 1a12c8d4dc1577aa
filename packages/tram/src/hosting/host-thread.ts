/** The entry point of a host in a worker thread, started by `Cluster.start` for `memory: 'threads'`. */
import { parentPort, workerData } from 'node:worker_threads';
import { TramError } from '../errors.js';
import type { EraPlan } from '../journal/recovery-asks.js';
import type { ParticipantId } from '../memory/contract.js';
import { threadsArena } from '../memory/threads.js';
import { ClusterContext } from './cluster-context.js';
import { failureOf, Host, type HostReport } from './host.js';
import { localJournal } from './journal-start.js';
import type { LeftSnapshots } from './left-snapshots.js';
import { pacingOfThreads } from './pacing.js';

export interface HostThreadData {
  readonly buffer: SharedArrayBuffer;
  readonly host: number;
  readonly resumes: boolean;
  /** What its replicas left when it last stopped in an orderly way. */
  readonly left: ReadonlyMap<ParticipantId, Int32Array>;
  readonly plan: EraPlan | undefined;
}

/** A snapshot that a replica leaves, for the next start of its host. */
export interface LeftSnapshot {
  readonly what: 'left';
  readonly participant: ParticipantId;
  readonly snapshot: Int32Array<ArrayBuffer>;
}

const { buffer, host, resumes, left, plan } = workerData as HostThreadData;
const starter = parentPort!;
const context = ClusterContext.attach(threadsArena(buffer));
const snapshots: LeftSnapshots = {
  find: (participant) => left.get(participant),
  keep: (participant, snapshot) => {
    const message = { what: 'left', participant, snapshot } as LeftSnapshot;
    starter.postMessage(message, [message.snapshot.buffer]);
    return true;
  },
  // The starter has done that.
  discard: () => undefined,
};
const report = (report: HostReport): void => starter.postMessage(report);
let running: Host | undefined;
let isStopped = false;
// The only message: to stop.
starter.once('message', () => {
  isStopped = true;
  running?.stop();
});
starter.unref();
try {
  running = await Host.start(context, {
    host,
    resumes,
    pacing: pacingOfThreads(context.config),
    report,
    left: snapshots,
    arena: buffer,
    journal: localJournal(context, host, plan, report),
  });
  if (isStopped) running.stop();
  await running.run();
  running.leave();
} catch (error) {
  // Any other error is a bug: it ends the thread and shows its stack.
  if (!(error instanceof TramError)) throw error;
  starter.postMessage(failureOf(error));
}
