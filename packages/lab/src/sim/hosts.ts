/** The hosts of a simulated cluster: one for each participant, with what it runs and whether it runs. `world.ts` drives them. */
import type { Client } from 'tram-multicast/internal/protocol/data-path/client.js';
import type { Replica } from 'tram-multicast/internal/protocol/replica.js';
import type { TimeKeeper } from './ordered-time.js';
import type { Service } from './service.js';
import type { SimulatedMemory } from './simulated-memory.js';
import type { Workload } from './workload.js';

type State = 'up' | 'paused' | 'down';

/** A participant: what replicas and clients have in common. */
export interface Host {
  readonly participant: number;
  state: State;
  memory: SimulatedMemory;
  /** Is it down while its memory is still there? */
  leftMemory: boolean;
  /** A fault that has interrupted the current step; applied when the step returns. */
  afterStep: (() => void) | undefined;
}

export interface ReplicaHost extends Host {
  readonly group: number;
  readonly member: number;
  replica: Replica;
  service: Service;
  incarnation: number;
  /** The highest index that an earlier incarnation had delivered up to. */
  hadDelivered: number;
  /** The snapshot that it left when it last stopped in an orderly way, and up to which index it had delivered then. */
  left: Int32Array | undefined;
  leftIndex: number;
  /** How many times longer its steps take than those of others. */
  slowness: number;
  timeKeeper: TimeKeeper;
}

export interface ClientHost extends Host {
  readonly slot: number;
  client: Client;
  workload: Workload;
}
