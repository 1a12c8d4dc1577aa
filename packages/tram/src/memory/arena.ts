/**
 * All words that the processes of a cluster share, in one array: a SharedArrayBuffer (threads) or a
 * mapped file (processes). Nothing else computes an offset in it.
 *
 *   ┌──────────────────────────────────────────────┐
 *   │ header: magic, version, size, state          │
 *   │ description: the cluster's configuration     │   for those who attach later
 *   ├──────────────────────────────────────────────┤
 *   │ board                                        │
 *   │   per host: parked, pid, life, state, stop   │   a line each
 *   │   per host: ready flags, two per process     │   set by whoever writes to that process
 *   │   per process: permission, incarnation, …    │   a line each
 *   │   per process: statistics                    │
 *   ├──────────────────────────────────────────────┤
 *   │ per process: its region (layout.ts)          │
 *   │ per process: scratch, its own                │
 *   └──────────────────────────────────────────────┘
 *
 * A *process* is a replica or a client; a *host* is what runs some of them: a worker thread, an
 * operating-system process or a machine. If there are as many hosts as replicas of a group, or a multiple,
 * no host runs two members of one group; with fewer, the last one runs all that are left. Or a placement
 * says which host runs whom. Every client is a host of its own.
 */
import type { ProcessId } from './contract.js';
import { align } from './words.js';

/** How a host sleeps, and is woken. */
export interface Parking {
  /** Sleep while `words[at]` is `expected`: until woken, or the time is over, or sooner for no reason. */
  wait(at: number, expected: number, timeoutUs: number): void;
  wake(at: number): void;
}

export interface Arena {
  readonly words: Int32Array;
  readonly parking: Parking;
  close(): void;
}

/** "TRAM" */
export const ARENA_MAGIC = 0x4d415254;
/** Changes whenever an offset or the meaning of a word does. */
export const ARENA_VERSION = 4;

export const ARENA = {
  magic: 0,
  version: 1,
  /** All words of the arena. */
  words: 2,
  state: 3,
  /** Counts the sessions of clients. */
  sessions: 4,
  descriptionBytes: 5,
  description: 16,
} as const;

export const ARENA_STATE = { starting: 0, running: 1, closing: 2 } as const;

export const HOST = {
  /** 1 while it sleeps or is about to. */
  parked: 0,
  pid: 1,
  /** How often it was started, above one of `HOST_STATE` in the lowest two bits. */
  state: 2,
  /** Of another host or client, with `memory: 'machines'`: how to write to its memory (`machines/greeting.ts`). */
  greeting: 4,
  /** Of another host, with `memory: 'machines'`: 1 if it has ever run its replicas. */
  begun: 10,
  words: 16,
} as const;

export const HOST_STATE = { none: 0, starting: 1, running: 2, ended: 3 } as const;

export function hostStateOf(word: number): number {
  return word & 3;
}

/** The state of a host that starts once more than this word tells. */
export function nextHostLife(word: number): number {
  return (((word >> 2) + 1) << 2) | HOST_STATE.starting;
}

export function withHostState(word: number, state: number): number {
  return (word & ~3) | state;
}

export const PROCESS = {
  permission: 0,
  incarnation: 1,
  /** A client slot: one of `OWNER`. Where there are locks, these tell. */
  owner: 2,
  /** Counts the requests that this replica lead. */
  standRequests: 3,
  /** A client slot: the session of a client that uses it, or that ended with messages unanswered; else 0. */
  session: 4,
  words: 16,
} as const;

export const OWNER = {
  nobody: 0,
  present: 1,
  /** With `memory: 'machines'`: its connection broke, and it may come back. */
  away: 2,
} as const;

/** What an arena must know of what lies in it: `Layout`, or that of another protocol. */
export interface Regions {
  readonly sizes: { readonly groups: number; readonly replicas: number; readonly clients: number };
  readonly replicaRegionWords: number;
  readonly clientRegionWords: number;
  /** In a replica's region: the first word to go when it is emptied. */
  readonly row: number;
  scratchWords(process: ProcessId): number;
}

/** Where everything is in the arena of a cluster. */
export class ArenaMap {
  readonly processes: number;
  readonly replicas: number;
  readonly words: number;
  private readonly processesByHost: ProcessId[][];
  private readonly hostLines: number;
  private readonly readyFlags: number;
  private readonly readyStride: number;
  private readonly processLines: number;
  private readonly statistics: number;
  private readonly replicaRegions: number;
  private readonly clientRegions: number;
  /** Where the scratch of each process starts; one more for the end. */
  private readonly scratches: readonly number[];

  constructor(
    readonly layout: Regions,
    /** Hosts of replicas: a multiple of the replicas of a group, or fewer than these, or as placed. */
    readonly hosts: number,
    readonly descriptionBytes: number,
    /** Words of statistics for each process. */
    private readonly statisticsWords: number,
    /** By replica: the number of its host. */
    private readonly placement?: readonly number[],
  ) {
    const { groups, replicas, clients } = layout.sizes;
    this.replicas = groups * replicas;
    this.processes = this.replicas + clients;
    this.processesByHost = Array.from({ length: hosts + clients }, () => []);
    for (let process = 0; process < this.processes; process++) {
      this.processesByHost[this.hostOf(process)]!.push(process);
    }
    this.readyStride = align(Math.max(...this.processesByHost.map(({ length }) => length)));
    let at = align(ARENA.description + Math.ceil(descriptionBytes / 4));
    const take = (count: number): number => {
      const start = at;
      at += count;
      return start;
    };
    this.hostLines = take((hosts + clients) * HOST.words);
    this.readyFlags = take((hosts + clients) * 2 * this.readyStride);
    this.processLines = take(this.processes * PROCESS.words);
    this.statistics = take(this.processes * align(statisticsWords));
    this.replicaRegions = take(this.replicas * layout.replicaRegionWords);
    this.clientRegions = take(clients * align(layout.clientRegionWords));
    this.scratches = Array.from({ length: this.processes }, (_, process) =>
      take(layout.scratchWords(process)),
    );
    this.words = at;
  }

  scratch(process: ProcessId): number {
    return this.scratches[process]!;
  }

  scratchEnd(process: ProcessId): number {
    return this.scratches[process + 1] ?? this.words;
  }

  hostOf(process: ProcessId): number {
    if (process >= this.replicas) return this.hosts + process - this.replicas;
    if (this.placement !== undefined) return this.placement[process]!;
    const { replicas } = this.layout.sizes;
    const member = process % replicas;
    // First members, who lead to begin with, lie together: a message passes few hosts on its way.
    if (this.hosts < replicas) return Math.min(member, this.hosts - 1);
    const group = Math.floor(process / replicas);
    return member + replicas * (group % (this.hosts / replicas));
  }

  /** What a host uses of an arena that is its alone: everything but the regions and scratches of others. */
  partsOf(host: number): { readonly from: number; readonly words: number }[] {
    const board = { from: 0, words: this.replicaRegions };
    const own = this.processesOf(host).flatMap((process) => [
      { from: this.region(process), words: this.regionWords(process) },
      { from: this.scratch(process), words: this.scratchEnd(process) - this.scratch(process) },
    ]);
    return [board, ...own].filter(({ words }) => words > 0);
  }

  /** The replicas that a host runs, in the order of their ready flags. */
  processesOf(host: number): readonly ProcessId[] {
    return this.processesByHost[host]!;
  }

  host(host: number): number {
    return this.hostLines + host * HOST.words;
  }

  /** The first of a host's ready flags: one for each of its processes, in their order. */
  readyOf(host: number): number {
    return this.readyFlags + host * 2 * this.readyStride;
  }

  /** The same for what can wait until the host wakes by itself. */
  readyLaterOf(host: number): number {
    return this.readyOf(host) + this.readyStride;
  }

  ready(process: ProcessId): number {
    return this.readyOf(this.hostOf(process)) + this.placeAtHost(process);
  }

  readyLater(process: ProcessId): number {
    return this.readyLaterOf(this.hostOf(process)) + this.placeAtHost(process);
  }

  private placeAtHost(process: ProcessId): number {
    return this.processesByHost[this.hostOf(process)]!.indexOf(process);
  }

  process(process: ProcessId): number {
    return this.processLines + process * PROCESS.words;
  }

  statisticsOf(process: ProcessId): number {
    return this.statistics + process * align(this.statisticsWords);
  }

  region(process: ProcessId): number {
    if (process < this.replicas) {
      return this.replicaRegions + process * this.layout.replicaRegionWords;
    }
    const client = process - this.replicas;
    return this.clientRegions + client * align(this.layout.clientRegionWords);
  }

  regionWords(process: ProcessId): number {
    const { replicaRegionWords, clientRegionWords } = this.layout;
    return process < this.replicas ? replicaRegionWords : clientRegionWords;
  }
}
