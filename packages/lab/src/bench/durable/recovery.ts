/**
 * How long a cluster takes to recover from its journals, from the call of `Cluster.start` until every group has a leader and
 * clients are let in. Beside it: the start of the same cluster without a journal to recover, a bare loop that reads the same
 * files, and a bare loop that delivers as many messages to the service.
 *
 * The files are in the page cache when they are read, by recovery and by the bare loop alike.
 */
import { closeSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { loadService } from 'tram-multicast/internal/hosting/service.js';
import type { ClusterStatus } from 'tram-multicast/internal/hosting/status.js';
import { destinationSets } from '../load/destinations.js';
import { measure } from '../load/measure.js';
import { type RunningTram, startTram } from '../systems/tram.js';
import { deliveriesOf } from './clusters.js';
import { OVERLAY, type Run, SETUP, TREE } from './setting.js';

export interface RecoveryCost {
  /** `with snapshots`, `without snapshots` */
  readonly name: string;
  /** Journaled in all groups together. */
  readonly messages: number;
  /** Of all files of all hosts. */
  readonly bytes: number;
  readonly recoverSeconds: number;
  /** The start of the same cluster with an empty journal. */
  readonly emptySeconds: number;
  /** Reading the same files. */
  readonly readSeconds: number;
  /** Delivering all messages once to each of the replicas that this process runs. */
  readonly deliverSeconds: number;
}

export interface RecoveryOptions {
  /** With snapshots: so many messages. */
  readonly messages: number;
  /** Without: so many bytes of journal, at each host. */
  readonly bytes: number;
}

const SERVICE = new URL('./service.js', import.meta.url);
/** So that there is no snapshot. */
const NEVER_BYTES = 2 ** 40;
const IN_FLIGHT = 256;
const FILL_SECONDS = 0.5;
const LOOK_MS = 1;
const READ_BYTES = 2 ** 20;

export async function measureRecovery(
  run: Recover,
  { messages, bytes }: RecoveryOptions,
): Promise<RecoveryCost[]> {
  const emptySeconds = await secondsOf(async () => (await start(run, 'empty')).close());
  const isLong = (status: ClusterStatus): boolean =>
    status.hosts.every(({ journal }) => journal!.bytes >= bytes);
  return [
    {
      emptySeconds,
      ...(await recover(
        run,
        'with snapshots',
        undefined,
        (status) => deliveriesOf(status) >= messages,
      )),
    },
    { emptySeconds, ...(await recover(run, 'without snapshots', NEVER_BYTES, isLong)) },
  ];
}

type Recover = Run & { readonly memory: 'threads' | 'processes' };

function start(
  { memory, folder, signal }: Recover,
  name: string,
  snapshotBytes?: number,
): Promise<RunningTram> {
  const journal = join(folder, name);
  const sizes = snapshotBytes === undefined ? {} : { snapshotBytes };
  const options = { tree: TREE, memory, signal, service: SERVICE, ...sizes };
  return startTram({ ...options, durability: 'everySecond', journal }, SETUP);
}

async function recover(
  run: Recover,
  name: string,
  snapshotBytes: number | undefined,
  isEnough: (status: ClusterStatus) => boolean,
): Promise<Omit<RecoveryCost, 'emptySeconds'>> {
  const messages = await fill(run, name, snapshotBytes, isEnough);
  const journal = join(run.folder, name);
  run.step(`${name}: reading the files`);
  const bytes = bytesIn(journal);
  const readSeconds = await secondsOf(() => readAll(journal));
  run.step(`${name}: delivering the messages`);
  const deliverSeconds = await deliverAll(messages);
  run.step(`${name}: recovering`);
  let cluster: RunningTram | undefined;
  try {
    const recoverSeconds = await secondsOf(async () => {
      cluster = await start(run, name, snapshotBytes);
    });
    const found = deliveriesOf(cluster!.status());
    if (found !== messages) throw new Error(`${messages} messages were journaled, ${found} found`);
    return { name, messages, bytes, recoverSeconds, readSeconds, deliverSeconds };
  } finally {
    await cluster?.close();
    rmSync(journal, { recursive: true });
  }
}

/** Journals messages until there are enough. @returns how many */
async function fill(
  run: Recover,
  name: string,
  snapshotBytes: number | undefined,
  isEnough: (status: ClusterStatus) => boolean,
): Promise<number> {
  run.step(`${name}: journaling messages`);
  const cluster = await start(run, name, snapshotBytes);
  try {
    const load = {
      ...{ clients: 1, outstanding: IN_FLIGHT, sets: destinationSets(OVERLAY, 'rotating', 1) },
      ...{ payloadBytes: SETUP.payloadBytesMax, warmUpSeconds: 0, seconds: FILL_SECONDS },
    };
    while (!isEnough(cluster.status())) {
      run.signal.throwIfAborted();
      await measure(cluster, load);
    }
    // A leader answers before it notes what it has delivered.
    while (deliveriesOf(cluster.status()) < cluster.status().answered) await setTimeout(LOOK_MS);
    return deliveriesOf(cluster.status());
  } finally {
    await cluster.close();
  }
}

async function deliverAll(messages: number): Promise<number> {
  const payload = new Uint8Array(SETUP.payloadBytesMax);
  const replier = { reply: () => false };
  const delivery = {
    ...{ group: 0, client: 0, session: 1, number: 0, entryGroup: 0 },
    ...{ destinationsLow: 1, destinationsHigh: 0, payload },
  };
  const members = await Promise.all(
    Array.from({ length: SETUP.replicas }, (_, member) =>
      loadService(SERVICE.href, { group: 0, member }, 1),
    ),
  );
  return secondsOf(() => {
    for (const member of members) {
      for (let number = 0; number < messages; number++) member.deliver(delivery, replier);
    }
  });
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}

function bytesIn(folder: string): number {
  return filesIn(folder).reduce((sum, path) => sum + statSync(path).size, 0);
}

function readAll(folder: string): void {
  const bytes = new Uint8Array(READ_BYTES);
  for (const path of filesIn(folder)) {
    const descriptor = openSync(path, 'r');
    while (readSync(descriptor, bytes) > 0);
    closeSync(descriptor);
  }
}

async function secondsOf(task: () => unknown): Promise<number> {
  const startedMs = performance.now();
  await task();
  return (performance.now() - startedMs) / 1000;
}
