/**
 * All words that a cluster shares, in one array: a SharedArrayBuffer (threads) or a mapped file (processes). No other
 * file computes an offset in it.
 *
 *   ┌──────────────────────────────────────────────┐
 *   │ header: magic, version, size, state          │
 *   │ description: the cluster's configuration     │   for clients and tools that attach
 *   ├──────────────────────────────────────────────┤
 *   │ board                                        │
 *   │   per host: parked, pid, state, lifeline …   │   four lines each
 *   │   per host: ready flags, two per participant │   set by those that write to it
 *   │   per participant: permission, incarnation … │   a line each
 *   │   per participant: statistics                │
 *   ├──────────────────────────────────────────────┤
 *   │ per participant: its region (layout.ts)      │
 *   │ per participant: scratch, its own            │
 *   ├──────────────────────────────────────────────┤
 *   │ per host: its mailbox                        │   on machines with a journal
 *   │ per host: its parcel and its receipt         │   on machines
 *   └──────────────────────────────────────────────┘
 *
 * A *participant* is a replica or a client. A *host* runs participants: a worker thread, a process, or the one process
 * on a machine. The placement says which (`config/placement.ts`). Every client is a host of its own.
 */
import type { ParticipantId } from './contract.js';
import { align } from './words.js';

/** How a host parks and is woken. */
export interface Parking {
  /** Parks while `words[at]` is `expected`: until woken, until the time is over, or spuriously. */
  wait(at: number, expected: number, timeoutUs: number): void;
  /** For a thread with an event loop. Resolves once it is woken; undefined if `words[at]` is not `expected`. */
  waitAsync?(at: number, expected: number): Promise<unknown> | undefined;
  wake(at: number): void;
}

export interface Arena {
  readonly words: Int32Array;
  readonly parking: Parking;
  close(): void;
}

/** "TRAM" */
export const ARENA_MAGIC = 0x4d415254;
/** The memory version: incremented whenever an offset, the meaning of a word or the handshake of machines changes. */
export const ARENA_VERSION = 14;

export const ARENA = {
  magic: 0,
  version: 1,
  /** The size of the arena. */
  words: 2,
  state: 3,
  /** Counts client sessions. */
  sessions: 4,
  descriptionBytes: 5,
  /** 1 if the hosts outlive the process that started them. Written before the magic word. */
  isDetached: 6,
  /** 1 if the process that started the hosts restarts those that end unexpectedly. Written before the magic word. */
  restartsHosts: 7,
  /** Random words, drawn when the arena is created: they tell it from all others, also from earlier ones at its path. */
  life: 8,
  description: 16,
} as const;

/** The number of words of `ARENA.life`. */
export const LIFE_WORDS = 4;

export const ARENA_STATE = { starting: 0, running: 1, closing: 2 } as const;

export const HOST = {
  /** One of `PARKED`. */
  parked: 0,
  pid: 1,
  /** The number of its starts, shifted left by two, and one of `HOST_STATE` in the lowest two bits. */
  state: 2,
  /** With `memory: 'machines'`: what others ask of it (`hosting/machines/requests.ts`). */
  request: 3,
  /** With `memory: 'machines'` and a journal: one of `STAGE`. */
  stage: 4,
  /** With `stage`: two words, a bit for each group (`hosting/machines/standing.ts`). */
  groups: 5,
  /** The sessions of clients that count in its era start here. */
  firstSession: 7,
  /** With a journal: the era in which the host has run its replicas; 0 if it has not. */
  era: 8,
  /** With `memory: 'machines'`: the revision with which the host last ran its replicas; 0 if it never did. */
  begun: 9,
  /** With `memory: 'machines'`: when the memory of the host was created (`machines/known-hosts.ts`). */
  birth: 10,
  /** With `memory: 'machines'`: the oldest revision that the host lets in (`machines/known-hosts.ts`). */
  leastRevision: 11,
  /** With `memory: 'machines'`, of another host or client: how to write to its memory (`machines/greeting.ts`). */
  greeting: 12,
  /** One of `STAYS_DOWN`: whether it is left down if it ends. */
  staysDown: 19,
  /** With `memory: 'machines'`, of another host: the newest birth of memory that it has run with, as far as we know. */
  newestBirth: 20,
  /** With `memory: 'machines'`, of another host or client: 1 if it has said that it is about to close its connection. */
  farewell: 21,
  /** With `memory: 'machines'` and a journal: four words, the id of the cluster, as its journals have it. */
  clusterId: 22,
  /** With `memory: 'machines'`: 1 if it sleeps, or is about to, for other threads of its machine (`machines/parcels.ts`). */
  sleeps: 26,
  /** Of a host with a journal: what it has done (`journal/status.ts`). */
  journal: 32,
  /** With `memory: 'processes'`: its lifeline (`processes/lifelines.ts`), 16 words. */
  lifeline: 48,
  words: 64,
} as const;

/**
 * Does a host use a core? One is `parked` also while it is about to park. The waker makes it `awake`, although it may still
 * wait for a core. A host that has not run yet, or runs no more, is `absent`. So is a client that does not poll, unless it
 * waits to be woken.
 */
export const PARKED = { absent: 0, parked: 1, awake: 2 } as const;

/** What a host with a journal does: it waits for others, coordinates a recovery, or runs its replicas. */
export const STAGE = { none: 0, waiting: 1, recovering: 2, running: 3 } as const;

/**
 * A host that was ended on purpose stays down until somebody starts it. The starter of the cluster clears the word before it
 * does so. Another process writes `untilStarted` instead, so that the starter does not start the host too, and the host
 * replaces only this by `no`. So a host that is ended while it starts stays down.
 */
export const STAYS_DOWN = { no: 0, yes: 1, untilStarted: 2 } as const;

export const HOST_STATE = { none: 0, starting: 1, running: 2, ended: 3 } as const;

export function hostStateOf(word: number): number {
  return word & 3;
}

/** How often a host has started with this memory. */
export function hostStartsOf(word: number): number {
  return word >> 2;
}

/** The state word of a host's next start. */
export function nextHostStart(word: number): number {
  return ((hostStartsOf(word) + 1) << 2) | HOST_STATE.starting;
}

export function withHostState(word: number, state: number): number {
  return (word & ~3) | state;
}

export const PARTICIPANT = {
  permission: 0,
  incarnation: 1,
  /** Of a client slot: one of `OWNER`. With `memory: 'processes'` the locks tell instead. */
  owner: 2,
  /** Of a replica: counts the requests of operators that it lead. */
  campaignRequests: 3,
  /** Of a client slot: the session of the client that uses it, or ended with messages unanswered; otherwise 0. */
  session: 4,
  /** Of a replica: the last key that was permitted before its present incarnation; OPEN if none was. */
  lastKey: 5,
  /** Of a group's first member: how long it waits before it asks to lead again. 0 if it has never run. */
  returnWaitMs: 6,
  /** Of a group's first member: changes while a leader that an operator has chosen asks it to wait. */
  returnLater: 7,
  /** Of a replica: counts how often it was asked to lead because the host of the leader is to end. */
  handovers: 8,
  /** Of a client slot, with `memory: 'machines'`: this session and all before it have ended, as far as this host knows. */
  endedSession: 9,
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
  scratchWords(participant: ParticipantId): number;
}

/** The offsets of everything in the arena of a cluster. */
export class ArenaMap {
  readonly participants: number;
  readonly replicas: number;
  readonly words: number;
  private readonly participantsByHost: ParticipantId[][];
  private readonly hostLines: number;
  private readonly readyFlags: number;
  private readonly readyStride: number;
  private readonly participantLines: number;
  private readonly statistics: number;
  private readonly replicaRegions: number;
  private readonly clientRegions: number;
  /** Where the scratch words of each participant start. */
  private readonly scratches: readonly number[];
  private readonly mailboxes: number;
  private readonly parcels: number;

  constructor(
    readonly layout: Regions,
    /** The number of hosts that run replicas. */
    readonly hosts: number,
    readonly descriptionBytes: number,
    /** Words of statistics for each participant. */
    private readonly statisticsWords: number,
    /** By replica: the number of its host. */
    private readonly placement: readonly number[],
    /** Words for the messages of each host to the owner of the arena (`hosting/machines/mailboxes.ts`). */
    readonly mailboxWords: number = 0,
    /** The size of a parcel, and of a receipt, from another host or a client (`machines/parcels.ts`). */
    readonly parcelWords: number = 0,
  ) {
    const { groups, replicas, clients } = layout.sizes;
    this.replicas = groups * replicas;
    this.participants = this.replicas + clients;
    this.participantsByHost = Array.from({ length: hosts + clients }, () => []);
    for (let participant = 0; participant < this.participants; participant++) {
      this.participantsByHost[this.hostOf(participant)].push(participant);
    }
    this.readyStride = align(Math.max(...this.participantsByHost.map(({ length }) => length)));
    let at = align(ARENA.description + Math.ceil(descriptionBytes / 4));
    const take = (count: number): number => {
      const start = at;
      at += count;
      return start;
    };
    this.hostLines = take((hosts + clients) * HOST.words);
    this.readyFlags = take((hosts + clients) * 2 * this.readyStride);
    this.participantLines = take(this.participants * PARTICIPANT.words);
    this.statistics = take(this.participants * align(statisticsWords));
    this.replicaRegions = take(this.replicas * layout.replicaRegionWords);
    this.clientRegions = take(clients * align(layout.clientRegionWords));
    this.scratches = Array.from({ length: this.participants }, (_, participant) =>
      take(layout.scratchWords(participant)),
    );
    this.mailboxes = take(hosts * mailboxWords);
    this.parcels = take((hosts + clients) * 2 * parcelWords);
    this.words = at;
  }

  scratch(participant: ParticipantId): number {
    return this.scratches[participant];
  }

  scratchEnd(participant: ParticipantId): number {
    return this.scratches[participant + 1] ?? this.mailboxes;
  }

  /** Where a host writes its messages to the owner of the arena. */
  mailbox(from: number): number {
    return this.mailboxes + from * this.mailboxWords;
  }

  /** Where a host or a client leaves what it packs for the owner of the arena. */
  parcel(from: number): number {
    return this.parcels + from * 2 * this.parcelWords;
  }

  /** Where it answers the parcels of the owner. */
  receipt(from: number): number {
    return this.parcel(from) + this.parcelWords;
  }

  hostOf(participant: ParticipantId): number {
    if (participant >= this.replicas) return this.hosts + participant - this.replicas;
    return this.placement[participant];
  }

  /** The parts of its own arena that a host on a machine uses: all but the regions and scratch words of others. */
  partsOf(host: number): { readonly from: number; readonly words: number }[] {
    const board = { from: 0, words: this.replicaRegions };
    const own = this.participantsOf(host).flatMap((participant) => [
      { from: this.region(participant), words: this.regionWords(participant) },
      {
        from: this.scratch(participant),
        words: this.scratchEnd(participant) - this.scratch(participant),
      },
    ]);
    const mail = { from: this.mailboxes, words: this.words - this.mailboxes };
    return [board, ...own, mail].filter(({ words }) => words > 0);
  }

  /** The replicas that a host runs, in the order of their ready flags. */
  participantsOf(host: number): readonly ParticipantId[] {
    return this.participantsByHost[host];
  }

  host(host: number): number {
    return this.hostLines + host * HOST.words;
  }

  /** The words of all hosts, those of clients last, that say whether they are parked. */
  get allParked(): number[] {
    const hosts = this.hosts + this.participants - this.replicas;
    return Array.from({ length: hosts }, (_, host) => this.host(host) + HOST.parked);
  }

  /** The first of a host's ready flags: one for each of its participants, in their order. */
  readyOf(host: number): number {
    return this.readyFlags + host * 2 * this.readyStride;
  }

  /** The same for flags that can wait until the host wakes up by itself. */
  readyLaterOf(host: number): number {
    return this.readyOf(host) + this.readyStride;
  }

  ready(participant: ParticipantId): number {
    return this.readyOf(this.hostOf(participant)) + this.placeAtHost(participant);
  }

  readyLater(participant: ParticipantId): number {
    return this.readyLaterOf(this.hostOf(participant)) + this.placeAtHost(participant);
  }

  private placeAtHost(participant: ParticipantId): number {
    return this.participantsByHost[this.hostOf(participant)].indexOf(participant);
  }

  participant(participant: ParticipantId): number {
    return this.participantLines + participant * PARTICIPANT.words;
  }

  statisticsOf(participant: ParticipantId): number {
    return this.statistics + participant * align(this.statisticsWords);
  }

  region(participant: ParticipantId): number {
    if (participant < this.replicas) {
      return this.replicaRegions + participant * this.layout.replicaRegionWords;
    }
    const client = participant - this.replicas;
    return this.clientRegions + client * align(this.layout.clientRegionWords);
  }

  regionWords(participant: ParticipantId): number {
    const { replicaRegionWords, clientRegionWords } = this.layout;
    return participant < this.replicas ? replicaRegionWords : clientRegionWords;
  }
}
