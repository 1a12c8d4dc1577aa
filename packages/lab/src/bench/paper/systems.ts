/**
 * The systems that are compared, by their names in the figures. The report names systems that are missing here and shows no
 * figures for them.
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

/** Message-passing systems and TRAM across machines ignore the requested memory: they always run as processes. */
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
