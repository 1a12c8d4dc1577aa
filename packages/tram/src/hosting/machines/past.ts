/** The past of a host on a machine, in words for its log; and what its replicas begin with, whatever their past. */
import { OPEN } from '../../memory/contract.js';
import { keyAfter } from '../../protocol/leadership/key.js';
import type { Identity } from '../../protocol/member.js';
import type { MachinePast } from '../host.js';
import { SINCE_MS } from './own-arena.js';
import type { Entrance } from './recovery.js';

/** Less than a start takes, so the incarnations of a host that restarts in a loop do not run ahead of the time. */
const INCARNATION_MS = 250;
const KEYS_PER_MS = 0.064;

export function describePast(past: Identity['past'], entrance: Entrance | undefined): string {
  if (entrance === undefined) return PASTS[past];
  const { era, what } = entrance;
  if (what === 'start') return `starts with era ${era}`;
  return `${PASTS[past]}, in era ${era}`;
}

const PASTS: Record<Identity['past'], string> = {
  none: 'starts for the first time',
  kept: 'resumes with the memory that it left behind',
  lost: 'has lost its memory, and recovers from its groups',
};

/**
 * Incarnations and first keys are times, so they grow even if a host has lost its memory.
 *
 * A replica makes a few keys with each change of leaders, and far fewer than `KEYS_PER_MS` in the long run. So the next
 * incarnation begins after the keys of this one. Keys begin again after 388 days, and keys
 * of a region that was lost count as old for half of that.
 */
export function pastAt(ms: number): Pick<MachinePast, 'leastIncarnation' | 'firstKey'> {
  const sinceMs = Math.max(0, ms - SINCE_MS);
  return {
    leastIncarnation: Math.max(1, Math.floor(sinceMs / INCARNATION_MS)),
    firstKey: keyAfter(OPEN, 1 + Math.floor(sinceMs * KEYS_PER_MS)),
  };
}
