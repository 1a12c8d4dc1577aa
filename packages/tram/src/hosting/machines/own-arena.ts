/**
 * The arena file of a host on its machine, `/dev/shm/tram-NAME-HOST` (of other threads `…-HOST#1` and so on): opened if the host has left one, created otherwise,
 * and removed at the end if the host never ran its replicas.
 */
import type { MachinesConfig } from '../../config/config.js';
import { hostsWith } from '../../config/machines.js';
import { TramError } from '../../errors.js';
import { ARENA, ARENA_STATE, type ArenaMap, HOST } from '../../memory/arena.js';
import type { NetworkOptions } from '../../memory/machines/network-options.js';
import {
  type ArenaFile,
  arenaPath,
  createArenaFile,
  leftSnapshotPath,
  openArenaFile,
  removeUnlocked,
} from '../../memory/processes/arena-file.js';
import { writeHeader } from '../cluster-context.js';

/** Times that outlive a host are counted from here. */
export const SINCE_MS: number = Date.UTC(2026, 0);

/** Less than a start takes, so that memory which a host makes later has a later birth. */
const BIRTH_MS = 250;

/** The path of a host's arena file on its machine. */
export function machineArenaPath(config: MachinesConfig, host: number): string {
  const { name: hostName, machine } = config.machines[host];
  // What tells the threads of a machine apart is not part of any name.
  const thread = hostName.slice(machine.length);
  return `${arenaPath(`${config.name ?? 'cluster'}-${machine}`)}${thread}`;
}

/** The arena file of this host: the existing one, or a new one. */
export function openOwn(
  config: MachinesConfig,
  digest: Uint8Array,
  host: number,
  map: ArenaMap,
): ArenaFile {
  const { name } = config.machines[host];
  const path = machineArenaPath(config, host);
  const left = openLeft(path, host);
  const file = left ?? createArenaFile(path, map.words, map.partsOf(host));
  try {
    lockOwn(file, name, host, file.words[map.host(host) + HOST.pid] ?? 0);
    // Two processes may start this host at once.
    file.requireAtPath();
    if (left !== undefined) {
      requireSame(left, digest, map);
      requireRecent(left, config, host, map);
    }
    // Before the header: a file with a header has a birth. Memory that was never used is as good as new.
    if (!hasBegun(file)) file.words[map.host(host) + HOST.birth] = birthAt(Date.now());
    if (left === undefined) writeHeader(file.words, map.words, digest);
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

/** How a host maps the arenas of the other hosts of its machine, if there are some. */
export function mappingOfOthers(
  config: MachinesConfig,
  host: number,
): Pick<NetworkOptions, 'mapArenaOf'> {
  const beside = hostsWith(config.threads, host);
  if (beside.length === 1) return {};
  return {
    mapArenaOf: (other) => {
      if (!beside.includes(other)) return undefined;
      try {
        return openArenaFile(machineArenaPath(config, other));
      } catch (error) {
        // That host begins anew: then its connection is about to end. Or no more can be mapped: the network will do.
        if (error instanceof TramError) return undefined;
        throw error;
      }
    },
  };
}

function lockOwn(file: ArenaFile, name: string, host: number, pid: number): void {
  try {
    file.lockHost(host, pid);
  } catch (cause) {
    if (!(cause instanceof TramError) || cause.code !== 'TRAM_HOST_RUNNING') throw cause;
    const message = `host ${name} is already running, as process ${pid}`;
    throw new TramError('TRAM_HOST_RUNNING', message, { cause });
  }
}

/** Removes the file of a host that never ran its replicas. */
export function closeOwn(file: ArenaFile): void {
  if (!hasBegun(file)) file.removeFile();
  file.close();
}

/** Has the host ever run its replicas with this memory? */
export function hasBegun({ words }: ArenaFile): boolean {
  return words[ARENA.state] === ARENA_STATE.running;
}

function openLeft(path: string, host: number): ArenaFile | undefined {
  try {
    return openArenaFile(path);
  } catch (error) {
    if (!(error instanceof TramError)) throw error;
    if (error.code === 'TRAM_NOT_FOUND') return undefined;
    // The host was killed while it created the file, so the file contains no promise.
    if (error.code === 'TRAM_CORRUPT' && error.retry === 'safe') {
      removeUnlocked(path, host);
      return undefined;
    }
    throw error;
  }
}

/** @throws TRAM_INVALID_CONFIG, having closed the file, if it belongs to another configuration */
export function requireSame(file: ArenaFile, digest: Uint8Array, map: ArenaMap): void {
  const { words, path } = file;
  const left = new Uint8Array(
    words.buffer,
    words.byteOffset + ARENA.description * 4,
    digest.length,
  );
  if (words.length === map.words && Buffer.compare(left, digest) === 0) return;
  file.close();
  throw new TramError(
    'TRAM_INVALID_CONFIG',
    `${path} was left by a host of another configuration of this cluster`,
    {
      hint: `Give the cluster another name, or remove ${path} and ${leftSnapshotPath(path, '*')} on all hosts: that loses what they hold.`,
    },
  );
}

/** @throws TRAM_INVALID_CONFIG, having closed the file, if the other hosts would refuse this revision */
function requireRecent(
  file: ArenaFile,
  { revision }: MachinesConfig,
  host: number,
  map: ArenaMap,
): void {
  const least = file.words[map.host(host) + HOST.leastRevision];
  if (revision >= least) return;
  file.close();
  throw new TramError(
    'TRAM_INVALID_CONFIG',
    `the configuration has revision ${revision}, but the cluster uses revision ${least}`,
    { hint: 'Copy the configuration file from another host.' },
  );
}

/** The birth of memory that is created now. */
function birthAt(ms: number): number {
  return Math.max(1, Math.floor((ms - SINCE_MS) / BIRTH_MS));
}
