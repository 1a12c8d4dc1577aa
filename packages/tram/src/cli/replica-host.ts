/** The host of a replica that the user names: on this machine, or on another one. */
import type { Machine } from '../config/machines.js';
import { TramError } from '../errors.js';
import { ClusterContext } from '../hosting/cluster-context.js';
import { isOwnAddress, type LocalHost, openHere } from '../hosting/local-host.js';
import { readClusterFile } from '../hosting/machines/cluster-file.js';
import type { Mirror } from '../hosting/machines/mirror.js';
import { RemoteHost } from '../hosting/machines/remote-host.js';
import { Layout } from '../protocol/layout.js';
import { locate, withCluster } from './attached.js';
import { commandFor, type Which } from './cluster-name.js';
import { parseReplica } from './replica-name.js';

export interface ReplicaHost extends LocalHost {
  /** `g2/0` */
  readonly replica: string;
}

/** What a command does with the host of a replica. */
export interface Uses<Result> {
  local(host: ReplicaHost): Promise<Result>;
  remote(host: RemoteHost): Promise<Result>;
}

/**
 * @param words  the command, to be repeated by the user on another machine
 * @throws TRAM_UNAVAILABLE, TRAM_UNREACHABLE if the host is neither here nor can be reached
 */
export async function withHostOf<Result>(
  which: Which,
  replica: string,
  words: string,
  uses: Uses<Result>,
): Promise<Result> {
  const location = await locate(which);
  if (location.memory === 'processes') {
    return withCluster(
      { ...which, name: location.name },
      ({ context, path, arena, name, config }) => {
        const { group, member } = parseReplica(replica, context);
        const host = context.map.hostOf(context.layout.replicaParticipant(group, member));
        const local = { name, config, host, title: String(host), path, arena, context };
        return uses.local({ ...local, replica: `g${group}/${member}` });
      },
    );
  }
  const file = await readClusterFile(location.config);
  const { config, credentials } = file;
  const { group, member } = parseReplica(replica, file);
  const participant = new Layout(config.sizes).replicaParticipant(group, member);
  const host = ClusterContext.mapOnMachines(config, credentials.digest).hostOf(participant);
  const name = `g${group}/${member}`;
  const local = openHere(file, location.config, host);
  if (local !== undefined) {
    try {
      return await uses.local({ ...local, replica: name });
    } finally {
      local.arena.close();
    }
  }
  const notHere = errorFor(which, config.machines[host], name, words);
  const mirror = await openMirror(location.config, notHere);
  try {
    const why = mirror.complaintOf(host);
    if (why !== undefined) throw notHere(why);
    return await uses.remote(new RemoteHost(mirror, host, location.config));
  } finally {
    await mirror.close();
  }
}

/** The error for a host that is neither here nor can be reached. */
type NotHere = (why: string, cause?: unknown) => TramError;

function errorFor(
  which: Which,
  { machine, address }: Machine,
  replica: string,
  words: string,
): NotHere {
  const who = `host ${machine}, which runs ${replica}`;
  const start = commandFor(which, `host ${machine}`);
  return (why, cause) => {
    // After a reboot, for example.
    if (isOwnAddress(address)) {
      return new TramError('TRAM_UNAVAILABLE', `${who}, does not run here and has left no memory`, {
        hint: `Start it with \`${start}\`.`,
        cause,
      });
    }
    return new TramError(
      'TRAM_UNREACHABLE',
      `${who}, is not on this machine and can't be reached: ${why}`,
      {
        hint:
          `Run \`${commandFor(which, words)}\` on the machine of ${machine} (${address}). ` +
          `If the host has ended, start it there with \`${start}\`.`,
        cause,
      },
    );
  };
}

async function openMirror(path: string, notHere: NotHere): Promise<Mirror> {
  const { Mirror } = await import('../hosting/machines/mirror.js');
  try {
    return await Mirror.open(path);
  } catch (error) {
    if (!(error instanceof TramError) || error.code !== 'TRAM_UNREACHABLE') throw error;
    throw notHere('no host answers', error);
  }
}
