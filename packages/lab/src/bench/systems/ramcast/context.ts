/** What all hosts and clients of a RamCast cluster on shared memory share, as `hosting/cluster-context.ts` for TRAM. */

import type { ClusterConfig } from 'tram-multicast/internal/config/config.js';
import { placementOf } from 'tram-multicast/internal/config/placement.js';
import {
  describe,
  readHeader,
  writeHeader,
} from 'tram-multicast/internal/hosting/cluster-context.js';
import { STATISTICS_WORDS } from 'tram-multicast/internal/hosting/statistics.js';
import { ARENA, type Arena, ArenaMap } from 'tram-multicast/internal/memory/arena.js';
import type { ParticipantId } from 'tram-multicast/internal/memory/contract.js';
import { SharedMemory } from 'tram-multicast/internal/memory/shared.js';
import { type Edges, PACE } from '../../../baselines/ramcast/edges.js';
import { RamcastLayout, type RamcastSizes } from '../../../baselines/ramcast/layout.js';

export interface RamcastConfig {
  readonly sizes: RamcastSizes;
  readonly hosts: number;
  readonly timing: ClusterConfig['timing'];
  /** A directory for the trace, for tests. */
  readonly trace?: string;
}

export class RamcastContext {
  readonly layout: RamcastLayout;
  readonly map: ArenaMap;

  private constructor(
    readonly config: RamcastConfig,
    readonly arena: Arena,
    descriptionBytes: number,
  ) {
    this.layout = new RamcastLayout(config.sizes);
    this.map = mapOf(config, this.layout, descriptionBytes);
  }

  static wordsOf(config: RamcastConfig): number {
    return mapOf(config, new RamcastLayout(config.sizes), describe(config).length).words;
  }

  static create(config: RamcastConfig, arena: Arena): RamcastContext {
    const description = describe(config);
    const context = new RamcastContext(config, arena, description.length);
    writeHeader(arena.words, context.map.words, description);
    return context;
  }

  static attach(arena: Arena): RamcastContext {
    const config = readHeader(arena.words) as RamcastConfig;
    return new RamcastContext(config, arena, arena.words[ARENA.descriptionBytes]);
  }

  edges(participant: ParticipantId): Edges {
    const memory = new SharedMemory(participant, this.arena, this.map);
    return { memory, layout: this.layout, pace: PACE };
  }
}

function mapOf(config: RamcastConfig, layout: RamcastLayout, descriptionBytes: number): ArenaMap {
  const { hosts, sizes } = config;
  const placement = placementOf({ ...sizes, hosts }, 'together');
  return new ArenaMap(layout, hosts, descriptionBytes, STATISTICS_WORDS, placement);
}

/** The name of a message in a history. */
export function messageName(client: number, sequence: number): string {
  return `c${client}:${sequence >>> 0}`;
}
