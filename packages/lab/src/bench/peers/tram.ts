/** TRAM on processes, measured as its peers: a message is answered when all destinations have delivered and replied. */
import type { RunningSystem, Setup } from '../systems/system.js';
import { tram } from '../systems/tram.js';

const TREE = 'breadth';

export const TRAM = {
  id: 'tram',
  name: 'TRAM, processes',
  version: '',
  guarantee: {
    brief: 'one order across all groups',
    full:
      'Each group is replicated by consensus (2 of 3); no two replicas of any groups disagree on the order of what ' +
      'both deliver; a message is delivered by all its destinations or by none. It runs on one machine and in memory.',
  },
  /** Its rings hold fewer messages. */
  outstandingMax: 8 ** 4,
  conditions: `eight groups of three replicas on processes, ${TREE} tree; a shard is a group`,
} as const;

export function startTram(setup: Setup, signal: AbortSignal): Promise<RunningSystem> {
  return tram({ tree: TREE, memory: 'processes', signal }).start(setup);
}
