/**
 * Recovery of a cluster whose hosts are all on this machine: the process that starts the cluster coordinates it, and reads
 * the journals of the hosts from their folders. The hosts open the era when they are started with its plan.
 *
 * The coordinator holds the locks of all folders until it starts the hosts, which then lock their own. So if two processes
 * start the same cluster, one of them fails. If a journal has promised a later era in between, its host does not open this one.
 */
import { randomBytes } from 'node:crypto';
import { accessSync, constants, mkdirSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type ClusterConfig, journalFolder } from '../config/config.js';
import { TramError } from '../errors.js';
import {
  groupsOn,
  type JournaledCluster,
  journaledCluster,
  requireCluster,
  shapeOf,
} from '../journal/cluster-file.js';
import { FileDisk } from '../journal/disk.js';
import { type Recovered, recoverCluster } from '../journal/recovery.js';
import type { Answer, Ask, OpenAsk, Opening } from '../journal/recovery-asks.js';
import { type DiskAsk, RecoveryHost } from '../journal/recovery-host.js';
import { systemFailure } from './journal-failure.js';
import { type JournalLock, lockJournal } from './journal-lock.js';
import type { Logger } from './own-hosts.js';

const CLUSTER_ID_BYTES = 16;
/** Smaller journals are read before anybody asks. */
const TOLD_BYTES = 2 ** 30;
const GIGABYTE = 1e9;

interface LocalHost {
  readonly folder: string;
  readonly journal: RecoveryHost;
  readonly lock: JournalLock;
}

/** Starts the hosts with their plans, and resolves when all of them have opened the era. */
export type OpenHosts = (asks: readonly OpenAsk[]) => Promise<readonly Opening[]>;

/**
 * @param config  with a journal
 * @throws TRAM_RECOVERY_REFUSED, TRAM_JOURNAL_MISMATCH, TRAM_CORRUPT, TRAM_JOURNAL_IN_USE, TRAM_JOURNAL_FAILED, TRAM_SYSTEM;
 *   what `open` throws
 */
export async function recoverLocally(
  config: ClusterConfig,
  logger: Logger,
  open: OpenHosts,
): Promise<Recovered> {
  const cluster = journaledClusterOf(config);
  const hosts: LocalHost[] = [];
  const unlock = async (): Promise<void> => {
    for (const { lock } of hosts) await lock.release();
  };
  try {
    for (const host of cluster.names.keys()) hosts.push(await openJournal(config, cluster, host));
    tellSize(config, logger);
    return await recover(cluster, hosts, logger, async (asks) => {
      await unlock();
      return open(asks);
    });
  } finally {
    await unlock();
  }
}

async function recover(
  cluster: JournaledCluster,
  hosts: readonly LocalHost[],
  logger: Logger,
  open: OpenHosts,
): Promise<Recovered> {
  const recovery = recoverCluster(shapeOf(cluster), {
    newClusterId: randomBytes(CLUSTER_ID_BYTES).toString('hex'),
    acceptLoss: false,
    onLoss: (losses) => {
      for (const loss of losses)
        logger.warn(`as an operator has accepted, messages are lost: ${loss}`);
    },
  });
  for (let step = recovery.next(); ; ) {
    if (step.done) return step.value;
    const asks = step.value;
    step = recovery.next(isOpening(asks) ? await open(asks) : await answerAll(hosts, asks));
  }
}

function isOpening(asks: readonly Ask[]): asks is readonly OpenAsk[] {
  return asks[0]?.what === 'open';
}

async function answerAll(
  hosts: readonly LocalHost[],
  asks: readonly Ask[],
): Promise<(Answer | undefined)[]> {
  const answers: (Answer | undefined)[] = [];
  for (const ask of asks) {
    // Reading takes long, and signals are to be heard in between.
    await new Promise((resolve) => setImmediate(resolve));
    if (ask.what !== 'open') answers.push(answerFrom(hosts[ask.host], ask));
  }
  return answers;
}

/** The host of a journal is named, not only the file in it. */
function answerFrom({ folder, journal }: LocalHost, ask: DiskAsk): Answer | undefined {
  try {
    return journal.answer(ask);
  } catch (error) {
    if (!(error instanceof TramError)) throw systemFailure(folder, error);
    const { code, message, hint } = error;
    throw new TramError(code, `${folder}: ${message}`, { hint, cause: error });
  }
}

/** What the journals of this cluster must belong to. */
export function journaledClusterOf(config: ClusterConfig): JournaledCluster {
  const { sizes, parents, placement, hosts, machines } = config;
  const names = Array.from({ length: hosts }, (_, host) => basename(journalFolder(config, host)!));
  const hostOf = (group: number, member: number): number =>
    placement[group * sizes.replicas + member];
  return journaledCluster(sizes, parents, hostOf, names, machines !== undefined);
}

/** Locks the journal of a host, and checks that this cluster can use it. */
async function openJournal(
  config: ClusterConfig,
  cluster: JournaledCluster,
  host: number,
): Promise<LocalHost> {
  const folder = journalFolder(config, host)!;
  requireWritable(folder);
  const lock = await lockJournal(folder);
  try {
    const disk = new FileDisk(folder);
    requireCluster(disk, cluster, folder);
    return { folder, journal: new RecoveryHost(disk, host, groupsOn(cluster, host)), lock };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** The folder exists from then on, durably. @throws TRAM_SYSTEM */
export function requireWritable(folder: string): void {
  try {
    const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (first !== undefined) syncNames(folder, first);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    const { message } = cause as Error;
    throw new TramError('TRAM_SYSTEM', `can't use the journal folder ${folder}: ${message}`, {
      hint: 'Give a directory in which the user of the hosts may write: the option `journal`.',
      cause,
    });
  }
}

/** Makes the names of folders durable, from the innermost to the outermost that is new. */
function syncNames(innermost: string, outermost: string): void {
  for (let folder = innermost; folder.length >= outermost.length; folder = dirname(folder)) {
    new FileDisk(dirname(folder)).syncFolder('');
  }
}

/** Reading may take long: say how much it is. */
function tellSize({ journal }: ClusterConfig, logger: Logger): void {
  const bytes = bytesIn(journal!);
  if (bytes < TOLD_BYTES) return;
  logger.info(`reads the journals in ${journal}: ${(bytes / GIGABYTE).toFixed(1)} GB`);
}

function bytesIn(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name)).size;
  }
  return bytes;
}
