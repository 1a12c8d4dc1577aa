/**
 * What hosts, clients and tools of a cluster share: its configuration, and where everything lies in its arena.
 * Each of them creates a context of its own.
 */
import { randomInt } from 'node:crypto';
import type { ClusterConfig } from '../config/config.js';
import { TramError } from '../errors.js';
import {
  ARENA,
  ARENA_MAGIC,
  ARENA_STATE,
  ARENA_VERSION,
  type Arena,
  ArenaMap,
  HOST,
  LIFE_WORDS,
} from '../memory/arena.js';
import type { ParticipantId } from '../memory/contract.js';
import { MachinesMemory } from '../memory/machines/machines-memory.js';
import type { Network } from '../memory/machines/network.js';
import { PARCEL_WORDS } from '../memory/machines/parcels.js';
import { SharedMemory } from '../memory/shared.js';
import { type Edges, type GroupJournal, type Observer, PACE } from '../protocol/edges.js';
import { Layout } from '../protocol/layout.js';
import { Overlay } from '../protocol/overlay.js';
import { nowUs, wallClockUs } from './clock.js';
import { MAILBOX_WORDS } from './machines/mailboxes.js';
import { hasSessionEnded } from './slot.js';
import { STATISTICS_WORDS } from './statistics.js';

export class ClusterContext {
  readonly layout: Layout;
  readonly overlay: Overlay;
  readonly map: ArenaMap;

  private constructor(
    readonly config: ClusterConfig,
    readonly arena: Arena,
    descriptionBytes: number,
    /** The network to hosts on other machines; undefined if all hosts share the arena. */
    readonly network?: Network,
  ) {
    this.layout = new Layout(config.sizes);
    this.map = mapOf(config, this.layout, descriptionBytes);
    this.overlay = new Overlay(config.parents);
  }

  /** The size of the cluster's arena in words. */
  static wordsOf(config: ClusterConfig): number {
    return mapOf(config, new Layout(config.sizes), describe(config).length).words;
  }

  /** Writes the cluster's description into an arena that is all zero. */
  static create(config: ClusterConfig, arena: Arena): ClusterContext {
    const description = describe(config);
    const context = new ClusterContext(config, arena, description.length);
    writeHeader(arena.words, context.map.words, description);
    return context;
  }

  /**
   * The context of one machine. Each machine has an arena of its own, and all arenas have the same layout. The layout
   * depends only on options on which all machines agree.
   * @param connect  returns no network if only the arena of one host is to be read
   */
  static onMachines(
    config: ClusterConfig,
    digest: Uint8Array,
    connect: (map: ArenaMap) => { readonly arena: Arena; readonly network?: Network },
  ): ClusterContext {
    const { arena, network } = connect(ClusterContext.mapOnMachines(config, digest));
    return new ClusterContext(config, arena, digest.length, network);
  }

  /** The offsets in the arena of each machine. */
  static mapOnMachines(config: ClusterConfig, digest: Uint8Array): ArenaMap {
    return mapOf(config, new Layout(config.sizes), digest.length);
  }

  /** Reads the description from an arena that another participant created. */
  static attach(arena: Arena): ClusterContext {
    const config = readHeader(arena.words) as ClusterConfig;
    return new ClusterContext(config, arena, arena.words[ARENA.descriptionBytes]);
  }

  memory(participant: ParticipantId): SharedMemory {
    const { arena, map, network, config } = this;
    if (network !== undefined) return network.memory(participant);
    if (config.memory !== 'machines') return new SharedMemory(participant, arena, map);
    // Of the warm-up: all participants are in one arena.
    const noLinks = new Array<undefined>(map.participants).fill(undefined);
    return new MachinesMemory(participant, arena, map, noLinks);
  }

  /** With a journal: the era in which the hosts run, if this arena tells. */
  get era(): number | undefined {
    const { arena, map } = this;
    const lines = Array.from({ length: map.hosts }, (_, host) => map.host(host));
    return (
      Math.max(...lines.map((line) => Atomics.load(arena.words, line + HOST.era))) || undefined
    );
  }

  /** The region of a participant, for reading. */
  region(participant: ParticipantId): Int32Array {
    const start = this.map.region(participant);
    return this.arena.words.subarray(start, start + this.map.regionWords(participant));
  }

  /** @param journal  of the group of a replica */
  edges(memory: SharedMemory, observer: Observer, journal?: GroupJournal): Edges {
    const { layout, overlay } = this;
    const { timing, order } = this.config;
    return {
      memory,
      journal,
      layout,
      overlay,
      timing,
      pace: PACE,
      order,
      observer,
      wallClockUs,
      monotonicUs: nowUs,
      hasSessionEnded: (client, session) => hasSessionEnded(this, client, session),
    };
  }

  /** @throws TRAM_CLOSED */
  requireRunning(name: string): void {
    if (Atomics.load(this.arena.words, ARENA.state) === ARENA_STATE.running) return;
    throw new TramError('TRAM_CLOSED', `the cluster ${name} is starting or closing`, {
      retry: 'safe',
    });
  }

  /** @throws TRAM_INVALID_ARGUMENT */
  requireGroup(group: number): void {
    const { groups } = this.config.sizes;
    if (Number.isInteger(group) && group >= 0 && group < groups) return;
    throw new TramError(
      'TRAM_INVALID_ARGUMENT',
      `there is no group ${group}: groups are numbered 0 to ${groups - 1}`,
    );
  }

  /** @throws TRAM_UNKNOWN_REPLICA */
  requireMember(group: number, member: number): void {
    const { replicas } = this.config.sizes;
    if (Number.isInteger(member) && member >= 0 && member < replicas) return;
    throw new TramError('TRAM_UNKNOWN_REPLICA', `there is no replica g${group}/${member}`);
  }

  /** @throws TRAM_UNKNOWN_REPLICA */
  requireHost(host: number): void {
    const { hosts } = this.map;
    if (Number.isInteger(host) && host >= 0 && host < hosts) return;
    throw new TramError(
      'TRAM_UNKNOWN_REPLICA',
      `there is no host ${host}: hosts are numbered 0 to ${hosts - 1}`,
    );
  }

  /** `g2/0` */
  nameOf(participant: ParticipantId): string {
    const { replicas } = this.config.sizes;
    return `g${Math.floor(participant / replicas)}/${participant % replicas}`;
  }
}

function mapOf(config: ClusterConfig, layout: Layout, descriptionBytes: number): ArenaMap {
  const { hosts, placement } = config;
  const isOnMachines = config.memory === 'machines';
  return new ArenaMap(
    layout,
    hosts,
    descriptionBytes,
    STATISTICS_WORDS,
    placement,
    isOnMachines && config.durability !== 'none' ? MAILBOX_WORDS : 0,
    isOnMachines ? PARCEL_WORDS : 0,
  );
}

/** The configuration as an arena stores it. */
export function describe(config: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(config));
}

/** Writes the description into an arena that is all zero. @param arenaWords  the size of the arena */
export function writeHeader(words: Int32Array, arenaWords: number, description: Uint8Array): void {
  words[ARENA.words] = arenaWords;
  words[ARENA.descriptionBytes] = description.length;
  bytesOf(words, description.length).set(description);
  words[ARENA.version] = ARENA_VERSION;
  for (let i = 0; i < LIFE_WORDS; i++) words[ARENA.life + i] = randomInt(2 ** 32) | 0;
  // Written last: a reader that sees the magic number may rely on the rest.
  Atomics.store(words, ARENA.magic, ARENA_MAGIC);
}

/** The configuration in an arena that another participant created. */
export function readHeader(words: Int32Array): unknown {
  checkArena(words, words.length);
  // A copy: TextDecoder does not take shared memory.
  const description = bytesOf(words, words[ARENA.descriptionBytes]).slice();
  return JSON.parse(new TextDecoder().decode(description));
}

function bytesOf(words: Int32Array, bytes: number): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset + ARENA.description * 4, bytes);
}

/** Checks that this is an arena, and of a version that this code understands. */
export function checkArena(words: Int32Array, fileWords: number): void {
  if (words[ARENA.magic] !== ARENA_MAGIC) {
    throw new TramError('TRAM_CORRUPT', 'this is not the memory of a TRAM cluster: wrong magic', {
      hint: 'Check the name. If a cluster was there, remove it with `tram down` and start it anew.',
    });
  }
  const version = words[ARENA.version];
  if (version !== ARENA_VERSION) {
    throw new TramError(
      'TRAM_VERSION_MISMATCH',
      `the cluster has memory version ${version}, and this version of TRAM has memory version ${ARENA_VERSION}`,
    );
  }
  if (words[ARENA.words] !== fileWords) {
    throw new TramError(
      'TRAM_CORRUPT',
      `the memory of the cluster has ${fileWords} words, but says ${words[ARENA.words]}`,
    );
  }
}
