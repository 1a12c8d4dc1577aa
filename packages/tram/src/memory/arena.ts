/**
 * All words that a cluster shares, in one array: a SharedArrayBuffer (threads) or a mapped file (processes). No other
 * file computes an offset in it.
 *
 *   ┌──────────────────────────────────────────────┐
 *   │ header: magic, version, size, state          │
 *   │ description: the cluster's configuration     │   for clients and tools that attach
 *   ├──────────────────────────────────────────────┤
 *   │ board                                        │
 *   │   per host: parked, pid, state               │   a line each
 *   │   per host: ready flags, two per process     │   set by those that write to it
 *   │   per process: permission, incarnation, …    │   a line each
 *   │   per process: statistics                    │
 *   ├──────────────────────────────────────────────┤
 *   │ per process: its region (layout.ts)          │
 *   │ per process: scratch, its own                │
 *   └──────────────────────────────────────────────┘
 *
 * A *participant* is a replica or a client. A *host* runs participants: a worker thread, a process, or the one process
 * on a machine. If the number of hosts is a multiple of the replicas of a group, no host runs two members of one group;
 * with fewer hosts, the last one runs all remaining members. A placement can override this. Every client is a host of
 * its own.
 */
import type { ProcessId } from './contract.js';
import { align } from './words.js';

/** How a host parks and is woken. */
export interface Parking {
  /** Parks while `words[at]` is `expected`: until woken, until the time is over, or spuriously. */
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
/** Incremented whenever an offset or the meaning of a word changes. */
export const ARENA_VERSION = 4;

export const ARENA = {
  magic: 0,
  version: 1,
  /** The size of the arena. */
  words: 2,
  state: 3,
  /** Counts client sessions. */
  sessions: 4,
  descriptionBytes: 5,
  description: 16,
} as const;

export const ARENA_STATE = { starting: 0, running: 1, closing: 2 } as const;

export const HOST = {
  /** 1 while the host is parked or about to park. */
  parked: 0,
  pid: 1,
  /** The number of its starts, shifted left by two, and one of `HOST_STATE` in the lowest two bits. */
  state: 2,
  /** With `memory: 'machines'`, of another host or client: how to write to its memory (`machines/greeting.ts`). */
  greeting: 4,
  /** With `memory: 'machines'`, of another host: 1 if it has ever run its replicas. */
  begun: 10,
  words: 16,
} as const;

export const HOST_STATE = { none: 0, starting: 1, running: 2, ended: 3 } as const;

export function hostStateOf(word: number): number {
  return word & 3;
}

/** The state word of a host's next start. */
export function nextHostLife(word: number): number {
  return (((word >> 2) + 1) << 2) | HOST_STATE.starting;
}

export function withHostState(word: number, state: number): number {
  return (word & ~3) | state;
}

export const PROCESS = {
  permission: 0,
  incarnation: 1,
  /** Of a client slot: one of `OWNER`. With `memory: 'processes'` the locks tell instead. */
  owner: 2,
  /** Counts the requests that this replica campaign. */
  standRequests: 3,
  /** Of a client slot: the session of the client that uses it, or ended with messages unanswered; otherwise 0. */
  session: 4,
  words: 16,
} as const;

export const OWNER = {
  nobody: 0,
  present: 1,
  /** With `memory: 'machines'`: the connection broke, and the client may reconnect. */
  away: 2,
} as const;

/** What an arena must know of the regions in it: `Layout`, or that of another protocol. */
export interface Regions {
  readonly sizes: { readonly groups: number; readonly replicas: number; readonly clients: number };
  readonly replicaRegionWords: number;
  readonly clientRegionWords: number;
  /** The offset of the row, whose first word is cleared first. */
  readonly row: number;
  scratchWords(process: ProcessId): number;
}

/** The offsets of everything in the arena of a cluster. */
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
  /** Where the scratch words of each participant start. */
  private readonly scratches: readonly number[];

  constructor(
    readonly layout: Regions,
    /** The number of hosts that run replicas. */
    readonly hosts: number,
    readonly descriptionBytes: number,
    /** Words of statistics for each participant. */
    private readonly statisticsWords: number,
    /** By replica: the number of its host. */
    private readonly placement?: readonly number[],
  ) {
    const { groups, replicas, clients } = layout.sizes;
    this.replicas = groups * replicas;
    this.processes = this.replicas + clients;
    this.processesByHost = Array.from({ length: hosts + clients }, () => []);
    for (let process = 0; process < this.processes; process++) {
      this.processesByHost[this.hostOf(process)].push(process);
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
    return this.scratches[process];
  }

  scratchEnd(process: ProcessId): number {
    return this.scratches[process + 1] ?? this.words;
  }

  hostOf(process: ProcessId): number {
    if (process >= this.replicas) return this.hosts + process - this.replicas;
    if (this.placement !== undefined) return this.placement[process];
    const { replicas } = this.layout.sizes;
    const member = process % replicas;
    // The first members, which lead at the start, are on one host, so a message passes few hosts.
    if (this.hosts < replicas) return Math.min(member, this.hosts - 1);
    const group = Math.floor(process / replicas);
    return member + replicas * (group % (this.hosts / replicas));
  }

  /** The parts of its own arena that a host on a machine uses: all but the regions and scratch words of others. */
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
    return this.processesByHost[host];
  }

  host(host: number): number {
    return this.hostLines + host * HOST.words;
  }

  /** The first of a host's ready flags: one for each of its participants, in their order. */
  readyOf(host: number): number {
    return this.readyFlags + host * 2 * this.readyStride;
  }

  /** The same for flags that can wait until the host wakes up by itself. */
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
    return this.processesByHost[this.hostOf(process)].indexOf(process);
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
