/** Counts how often each fault happened and each transition was taken in a simulated run. */
import type { Durability, Transition } from 'tram-multicast/internal/protocol/edges.js';
import { FAULTS_OF_DISKS, FAULTS_WITHOUT_DISKS, type Fault, type Plan } from './plan.js';

/** Taken only by replicas with a journal. */
export const DURABLE_TRANSITIONS: ReadonlySet<string> = new Set<Transition>([
  'journal full',
  'journal left out',
  'new journal waits',
  'journal replaced',
  'durable index told',
  'recoverable index told',
  'mark proposed',
  'mark delivered',
]);

/** Not taken by replicas with a journal: their hosts read that instead. */
const TRANSITIONS_WITHOUT_DISKS: readonly string[] = ['resumed from a left snapshot'];

/** Can this fault or transition occur in runs with such durability? */
export function canOccur(name: string, durability: Durability = 'none'): boolean {
  const isOf = (names: readonly string[]): boolean => names.includes(name);
  if (durability !== 'none') return !isOf(FAULTS_WITHOUT_DISKS) && !isOf(TRANSITIONS_WITHOUT_DISKS);
  return !isOf(FAULTS_OF_DISKS) && !DURABLE_TRANSITIONS.has(name);
}

export class Tally {
  readonly faults = new Map<Fault, number>();
  readonly transitions = new Map<Transition, number>();

  /** Counts the faults that last for the whole run. */
  constructor(plan: Plan) {
    const { weather, isBursty, sizes, interruptions, ticks } = plan;
    if (weather.tornPercent > 0) this.fault('torn-writes');
    if (interruptions !== undefined) this.fault('interruptions');
    if (isBursty) this.fault('bursts');
    if (ticks !== undefined && ticks.clocks.length > 0) this.fault('wrong-clocks');
    if (sizes.logBytes === 0) this.fault('tiny-rings');
  }

  fault(kind: Fault): void {
    this.faults.set(kind, (this.faults.get(kind) ?? 0) + 1);
  }

  transition(kind: Transition): void {
    this.transitions.set(kind, (this.transitions.get(kind) ?? 0) + 1);
  }
}
