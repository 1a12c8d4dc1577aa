/**
 * Attaches this process to a cluster that others run: threads of this process, other processes, or machines. What it
 * returns can be read as the cluster's own memory: `status.ts` and `tail.ts` do so.
 */
import { ConfigError } from '../config/mistakes.js';
import { type ArenaFile, arenaPath, openArenaFile } from '../memory/processes/arena-file.js';
import { threadsArena } from '../memory/threads.js';
import { ClusterContext } from './cluster-context.js';
import type { Mirror } from './machines/mirror.js';
import { threadsNamed } from './open-arena.js';
import { DEFAULT_NAME } from './state-directory.js';

/** Where a cluster runs. */
export type Location =
  | { readonly memory: 'threads'; readonly buffer: ArrayBufferLike }
  | ProcessesLocation
  | MachinesLocation;

export interface ProcessesLocation {
  readonly memory: 'processes';
  /** Or the path of the arena. */
  readonly name: string;
}

export interface MachinesLocation {
  readonly memory: 'machines';
  /** The path of the configuration file. */
  readonly config: string;
}

interface Common {
  readonly context: ClusterContext;
  /**
   * From now on the deliveries of this group can be read, once the promise resolves.
   * @returns ends that
   */
  follow(group: number): Promise<() => void>;
  close(): Promise<void>;
}

export type Attachment = ThreadsAttachment | ProcessesAttachment | MachinesAttachment;

interface ThreadsAttachment extends Common {
  readonly memory: 'threads';
}

export interface ProcessesAttachment extends Common {
  readonly memory: 'processes';
  readonly arena: ArenaFile;
}

export interface MachinesAttachment extends Common, MachinesLocation {
  readonly mirror: Mirror;
}

/** The address of a cluster by its configuration file. */
export const CONFIG_FILE = /\.ya?ml$/;

/** @param address  as for `Client.connect`; a configuration file may also describe a cluster of processes */
export async function locate(address: ArrayBufferLike | string): Promise<Location> {
  if (typeof address !== 'string') return { memory: 'threads', buffer: address };
  if (CONFIG_FILE.test(address)) return locateByFile(address);
  const buffer = threadsNamed(address);
  return buffer === undefined
    ? { memory: 'processes', name: address }
    : { memory: 'threads', buffer };
}

/** A file without `memory` means processes, as for `tram up`. */
export async function locateByFile(config: string): Promise<ProcessesLocation | MachinesLocation> {
  const { readConfigFile } = await import('../config/file.js');
  const { memory = 'processes', name = DEFAULT_NAME } = await readConfigFile(config);
  if (memory === 'machines') return { memory, config };
  if (memory === 'processes') return { memory, name };
  throw new ConfigError(
    ['memory'],
    `${config} asks for memory: ${memory}, and other processes can't reach such a cluster`,
    { hint: 'They reach clusters with memory: processes and memory: machines.' },
  );
}

/** @throws TRAM_NOT_FOUND, TRAM_CORRUPT, TRAM_VERSION_MISMATCH, TRAM_UNREACHABLE */
export async function attachTo(location: Location): Promise<Attachment> {
  switch (location.memory) {
    case 'threads':
      return attachToThreads(location.buffer);
    case 'processes':
      return attachToProcesses(location.name);
    case 'machines':
      return attachToMachines(location.config);
  }
}

function attachToThreads(buffer: ArrayBufferLike): Attachment {
  const arena = threadsArena(buffer as SharedArrayBuffer);
  const context = ClusterContext.attach(arena);
  return { memory: 'threads', context, follow: atOnce, close: async () => arena.close() };
}

export function attachToProcesses(name: string): ProcessesAttachment {
  const arena = openArenaFile(arenaPath(name));
  try {
    const context = ClusterContext.attach(arena);
    const close = async (): Promise<void> => arena.close();
    return { memory: 'processes', context, arena, follow: atOnce, close };
  } catch (error) {
    arena.close();
    throw error;
  }
}

export async function attachToMachines(config: string): Promise<MachinesAttachment> {
  const { Mirror } = await import('./machines/mirror.js');
  const mirror = await Mirror.open(config);
  return {
    memory: 'machines',
    context: mirror.context,
    config,
    mirror,
    follow: (group) => mirror.follow(group),
    close: () => mirror.close(),
  };
}

/** Logs in shared memory need no preparation. */
async function atOnce(): Promise<() => void> {
  return () => undefined;
}
