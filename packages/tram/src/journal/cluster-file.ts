/**
 * The shape of the cluster that a journal belongs to: a small file in the folder of each host. A journal can be used only by a
 * cluster of the same shape: entries and snapshots of another one would mean something else. `tram recover` and
 * `tram journal` learn from it what the folders belong to.
 */
import { TramError } from '../errors.js';
import type { Sizes } from '../protocol/layout.js';
import { Overlay } from '../protocol/overlay.js';
import type { Disk } from './disk.js';
import { IDENTITY_FILE } from './format.js';
import { readIdentity } from './identity.js';
import type { ClusterShape } from './shape.js';

/** @internal */
export interface JournaledCluster {
  readonly parents: readonly number[];
  readonly replicas: number;
  /** By group: the hosts of its members, ascending. Which member is where does not matter: a host has one journal. */
  readonly hostsByGroup: readonly (readonly number[])[];
  /** By host: the folder of its journal, and how messages name it. */
  readonly names: readonly string[];
  /** Are the folders on different machines? */
  readonly isOnMachines: boolean;
  readonly firstIndex: number;
  /** Snapshots hold what is kept for each client and call. */
  readonly clients: number;
  readonly callsMax: number;
  readonly replyBytesMax: number;
  /** Of the largest message that the journal may hold. */
  readonly payloadBytesMax: number;
}

const FILE = 'cluster.json';
const DRAFT = 'cluster.json.draft';

/** @internal */
export function journaledCluster(
  sizes: Sizes,
  parents: readonly number[],
  hostOf: (group: number, member: number) => number,
  names: readonly string[],
  isOnMachines: boolean,
): JournaledCluster {
  const { replicas, firstIndex, clients, callsMax, replyBytesMax, payloadBytesMax } = sizes;
  const members = Array.from({ length: replicas }, (_, member) => member);
  const hostsByGroup = parents.map((_, group) =>
    members.map((member) => hostOf(group, member)).sort((one, other) => one - other),
  );
  return {
    parents,
    replicas,
    hostsByGroup,
    names,
    isOnMachines,
    firstIndex,
    clients,
    callsMax,
    replyBytesMax,
    payloadBytesMax,
  };
}

/** @internal What recovery must know of it. */
export function shapeOf(cluster: JournaledCluster): ClusterShape {
  const { parents, replicas, hostsByGroup, names, firstIndex } = cluster;
  return {
    overlay: new Overlay(parents),
    replicas,
    hosts: names.length,
    hostsOf: (group) => hostsByGroup[group],
    nameOf: (host) => names[host],
    firstIndex,
  };
}

/** @internal The groups that have members on a host. */
export function groupsOn({ hostsByGroup }: JournaledCluster, host: number): number[] {
  return [...hostsByGroup.keys()].filter((group) => hostsByGroup[group].includes(host));
}

/** @internal Undefined if the folder has no journal. */
export function readCluster(disk: Disk): JournaledCluster | undefined {
  if (!disk.list('').includes(FILE)) return undefined;
  const file = disk.open(FILE, 'read');
  try {
    const bytes = new Uint8Array(file.size);
    file.read(0, bytes);
    return JSON.parse(new TextDecoder().decode(bytes)) as JournaledCluster;
  } catch (cause) {
    throw new TramError('TRAM_CORRUPT', `the journal file ${FILE} can't be read`, {
      hint: 'Move the folder of this host away, and start again: the host gets the state from the others.',
      cause,
    });
  } finally {
    file.close();
  }
}

/** @internal It is durable when this returns. */
export function writeCluster(disk: Disk, cluster: JournaledCluster): void {
  disk.makeFolder('');
  disk.remove(DRAFT);
  const file = disk.open(DRAFT, 'create');
  try {
    file.write(0, new TextEncoder().encode(`${JSON.stringify(cluster)}\n`));
    file.sync();
  } finally {
    file.close();
  }
  disk.rename(DRAFT, FILE);
  disk.syncFolder('');
}

/** In the order in which differences are named: what may differ follows from what comes before. */
const SAME = [
  ['groups', ({ parents }: JournaledCluster) => parents.length],
  ['replicas', ({ replicas }: JournaledCluster) => replicas],
  ['tree', ({ parents }: JournaledCluster) => parents.join(',')],
  ['hosts', ({ names }: JournaledCluster) => names.join(', ')],
  ['members', ({ hostsByGroup }: JournaledCluster) => hostsByGroup.join('; ')],
  ['clients', ({ clients }: JournaledCluster) => clients],
  ['callsMax', ({ callsMax }: JournaledCluster) => callsMax],
  ['replyBytesMax', ({ replyBytesMax }: JournaledCluster) => replyBytesMax],
] as const;

/**
 * @internal Checks that the journal of a host can be used by this cluster, and notes the cluster if that is new to it.
 * @param folder  as errors name it
 * @throws TRAM_JOURNAL_MISMATCH, TRAM_CORRUPT, TRAM_VERSION_MISMATCH
 */
export function requireCluster(disk: Disk, cluster: JournaledCluster, folder: string): void {
  // A journal of another format stays as it is, and may describe its cluster in another way.
  readIdentity(disk, `${folder}/${IDENTITY_FILE}`);
  const before = readCluster(disk);
  if (before === undefined) {
    writeCluster(disk, cluster);
    return;
  }
  for (const [option, read] of SAME) {
    const value = read(cluster);
    const was = read(before);
    if (value === was) continue;
    throw mismatch(`the journal in ${folder} is of a cluster with ${option} ${was}, not ${value}`);
  }
  if (cluster.payloadBytesMax < before.payloadBytesMax) {
    throw mismatch(
      `the journal in ${folder} may hold messages of ${before.payloadBytesMax} bytes, and payloadBytesMax is ${cluster.payloadBytesMax}`,
    );
  }
  if (cluster.payloadBytesMax > before.payloadBytesMax) writeCluster(disk, cluster);
}

function mismatch(message: string): TramError {
  return new TramError('TRAM_JOURNAL_MISMATCH', message, {
    hint: 'Give the options that the cluster was started with, or choose another directory for `journal`.',
  });
}
