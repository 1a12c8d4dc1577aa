/**
 * For `tram recover`: what a recovery of a cluster on this machine would lose, found out without changing anything; and an
 * operator's consent to it, which is noted in the journals for the next recovery.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TramError } from '../errors.js';
import { groupsOn, type JournaledCluster, readCluster, shapeOf } from '../journal/cluster-file.js';
import { FileDisk } from '../journal/disk.js';
import { recoverCluster } from '../journal/recovery.js';
import type { Answer, Ask } from '../journal/recovery-asks.js';
import { RecoveryHost } from '../journal/recovery-host.js';

/** The journals in a directory. */
export interface Journals {
  readonly cluster: JournaledCluster;
  /** By host; those that have no journal there included. */
  readonly hosts: readonly RecoveryHost[];
  /** Those that are there. */
  readonly folders: readonly string[];
}

/** @throws TRAM_NOT_FOUND if there are none; TRAM_CORRUPT */
export function journalsIn(directory: string): Journals {
  const cluster = clusterIn(directory);
  const hosts = cluster.names.map(
    (name, host) =>
      new RecoveryHost(new FileDisk(join(directory, name)), host, groupsOn(cluster, host)),
  );
  const folders = cluster.names.map((name) => join(directory, name)).filter(isFolder);
  return { cluster, hosts, folders };
}

function clusterIn(directory: string): JournaledCluster {
  for (const name of new FileDisk(directory).list('')) {
    const folder = join(directory, name);
    const cluster = isFolder(folder) ? readCluster(new FileDisk(folder)) : undefined;
    if (cluster?.names.includes(name)) return cluster;
  }
  throw new TramError('TRAM_NOT_FOUND', `there are no journals in ${directory}`, {
    hint: 'Give the directory of the option `journal`, or the configuration file of the cluster.',
  });
}

function isFolder(path: string): boolean {
  try {
    readdirSync(path);
    return true;
  } catch {
    // A file, or a folder that is not ours.
    return false;
  }
}

/** One line for each thing that a recovery would lose; none if it loses nothing. */
export function lossesOf({ cluster, hosts }: Journals): readonly string[] {
  let losses: readonly string[] = [];
  const recovery = recoverCluster(shapeOf(cluster), {
    newClusterId: '',
    acceptLoss: true,
    onLoss: (found) => {
      losses = found;
    },
  });
  const promises = new Promises();
  for (let step = recovery.next(); !step.done; ) {
    if (step.value.some(({ what }) => what === 'open')) break;
    step = recovery.next(step.value.map((ask) => promises.answerOf(hosts[ask.host], ask)));
  }
  return losses;
}

/** Promises are made only in words: nothing is to change. */
class Promises {
  /** By host. */
  private readonly eras = new Map<number, number>();

  answerOf(host: RecoveryHost, ask: Ask): Answer | undefined {
    if (ask.what === 'open') return undefined;
    const { identity } = host;
    const promised = this.eras.get(ask.host) ?? identity?.promisedEra ?? 0;
    if (ask.what === 'survey') return { ...host.survey(), promised };
    if (ask.what !== 'promise') return host.answer(ask);
    const isAccepted = ask.era > promised;
    if (isAccepted) this.eras.set(ask.host, ask.era);
    const { acceptsLoss } = host;
    return { isAccepted, promised, clusterId: identity?.clusterId, acceptsLoss };
  }
}

/** The next recovery goes on without the journals that are missing. */
export function acceptLoss({ hosts }: Journals): void {
  for (const host of hosts) if (host.identity !== undefined) host.acceptLoss();
}
