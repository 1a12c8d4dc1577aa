/**
 * The systems that are compared, by their names in the figures. One that is not in this list is left out of
 * the figures, and the report says so: nothing stands in for it.
 */

import type { BenchMemory } from '../load/run.js';
import { machinesSystem } from '../machines/system.js';
import { byzcastOn, SKEEN } from '../systems/passing/system.js';
import { ramcast } from '../systems/ramcast/system.js';
import type { System } from '../systems/system.js';
import { tram } from '../systems/tram.js';

export type SystemName =
  | 'TRAM base'
  | 'TRAM breadth'
  | 'TRAM depth'
  | 'TRAM simple'
  | 'TRAM machines'
  | 'RamCast'
  | 'RamCast lean'
  | 'ByzCast'
  | 'Skeen';

/** Some have no choice: message-passing systems are processes, and so are hosts, whatever is asked for. */
export type Systems = Partial<Readonly<Record<SystemName, (memory: BenchMemory) => System>>>;

export const SYSTEMS: Systems = {
  'TRAM base': (memory) => tram({ tree: 'base', memory }),
  'TRAM breadth': (memory) => tram({ tree: 'breadth', memory }),
  'TRAM depth': (memory) => tram({ tree: 'depth', memory }),
  'TRAM simple': (memory) => tram({ tree: 'simple', memory }),
  'TRAM machines': () => machinesSystem(),
  RamCast: (memory) => ramcast({ memory, acknowledges: true }),
  'RamCast lean': (memory) => ramcast({ memory, acknowledges: false }),
  ByzCast: () => byzcastOn('base'),
  Skeen: () => SKEEN,
};
