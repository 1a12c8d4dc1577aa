/**
 * What all who take part in a cluster on shared memory have in common: its configuration, and where
 * everything lies in its arena. Hosts, clients and tools each make one for themselves.
 */
import type { ClusterConfig } from '../config/options.js';
import { TramError } from '../errors.js';
import { ARENA, ARENA_MAGIC, ARENA_VERSION, type Arena, ArenaMap } from '../memory/arena.js';
import type { ProcessId } from '../memory/contract.js';
import type { Network } from '../memory/machines/network.js';
import { SharedMemory } from '../memory/shared.js';
import { type Edges, type Observer, PACE } from '../protocol/edges.js';
import { Layout } from '../protocol/layout.js';
import { Overlay } from '../protocol/overlay.js';
import { STATISTICS_WORDS } from './statistics.js';

export class Commons {
  readonly layout: Layout;
  readonly overlay: Overlay;
  readonly map: ArenaMap;

  private constructor(
    readonly config: ClusterConfig,
    readonly arena: Arena,
    descriptionBytes: number,
    /** To the hosts that do not share the arena, where there are such. */
    readonly network?: Network,
  ) {
    this.layout = new Layout(config.sizes);
    this.map = mapOf(config, this.layout, descriptionBytes);
    this.overlay = new Overlay(config.parents);
  }

  /** How many words the arena of such a cluster has. */
  static wordsOf(config: ClusterConfig): number {
    return mapOf(config, new Layout(config.sizes), describe(config).length).words;
  }

  /** Put the description of the cluster into an arena that is all zero. */
  static create(config: ClusterConfig, arena: Arena): Commons {
    const description = describe(config);
    const commons = new Commons(config, arena, description.length);
    writeHeader(arena.words, commons.map.words, description);
    return commons;
  }

  /**
   * Of one of several machines: each has an arena of its own, in which all have the same places. Only what can't differ
   * between machines counts for those.
   */
  static apart(
    config: ClusterConfig,
    digest: Uint8Array,
    connect: (map: ArenaMap) => { readonly arena: Arena; readonly network: Network },
  ): Commons {
    const { arena, network } = connect(mapOf(config, new Layout(config.sizes), digest.length));
    return new Commons(config, arena, digest.length, network);
  }

  /** Read it from an arena that somebody else made. */
  static attach(arena: Arena): Commons {
    const config = readHeader(arena.words) as ClusterConfig;
    return new Commons(config, arena, arena.words[ARENA.descriptionBytes]!);
  }

  memory(process: ProcessId): SharedMemory {
    const { arena, map, network } = this;
    return network?.memory(process) ?? new SharedMemory(process, arena, map);
  }

  /** The words of a process, to look at. */
  region(process: ProcessId): Int32Array {
    const start = this.map.region(process);
    return this.arena.words.subarray(start, start + this.map.regionWords(process));
  }

  edges(memory: SharedMemory, observer: Observer): Edges {
    const { layout, overlay } = this;
    const { timing } = this.config;
    return { memory, layout, overlay, timing, pace: PACE, observer };
  }

  /** `g2/0` */
  nameOf(process: ProcessId): string {
    const { replicas } = this.config.sizes;
    return `g${Math.floor(process / replicas)}/${process % replicas}`;
  }
}

function mapOf(config: ClusterConfig, layout: Layout, descriptionBytes: number): ArenaMap {
  const { hosts, placement } = config;
  return new ArenaMap(layout, hosts, descriptionBytes, STATISTICS_WORDS, placement);
}

/** A configuration as it stands in an arena. */
export function describe(config: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(config));
}

/** Into an arena that is all zero. @param arenaWords  all of it */
export function writeHeader(words: Int32Array, arenaWords: number, description: Uint8Array): void {
  words[ARENA.words] = arenaWords;
  words[ARENA.descriptionBytes] = description.length;
  bytesOf(words, description.length).set(description);
  words[ARENA.version] = ARENA_VERSION;
  // Last: whoever sees it may rely on the rest.
  Atomics.store(words, ARENA.magic, ARENA_MAGIC);
}

/** The configuration in an arena that somebody else made. */
export function readHeader(words: Int32Array): unknown {
  checkArena(words, words.length);
  // A copy: TextDecoder does not take shared memory.
  const description = bytesOf(words, words[ARENA.descriptionBytes]!).slice();
  return JSON.parse(new TextDecoder().decode(description));
}

function bytesOf(words: Int32Array, bytes: number): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset + ARENA.description * 4, bytes);
}

/** Is this the arena of a cluster, and one that this version of TRAM understands? */
export function checkArena(words: Int32Array, fileWords: number): void {
  if (words[ARENA.magic] !== ARENA_MAGIC) {
    throw new TramError('TRAM_CORRUPT', 'this is not the memory of a TRAM cluster: wrong magic', {
      hint: 'Check the name. If a cluster was there, remove it with `tram down` and start it anew.',
    });
  }
  const version = words[ARENA.version]!;
  if (version !== ARENA_VERSION) {
    throw new TramError(
      'TRAM_VERSION_MISMATCH',
      `the cluster was started by another version of TRAM (memory version ${version}, this is ${ARENA_VERSION})`,
    );
  }
  if (words[ARENA.words] !== fileWords) {
    throw new TramError(
      'TRAM_CORRUPT',
      `the memory of the cluster has ${fileWords} words, but says ${words[ARENA.words]}`,
    );
  }
}
