/** TRAM on processes, measured as its peers: a message is answered when all destinations have delivered and replied. */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
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
      'both deliver; a message is delivered by all its destinations or by none. It runs on one machine.',
  },
  /** Its rings hold fewer messages. */
  outstandingMax: 8 ** 4,
  conditions: `eight groups of three replicas on processes, ${TREE} tree; a shard is a group`,
  syncedConditions:
    `eight groups of three replicas on three processes, ${TREE} tree, durability always: each process syncs its journal, ` +
    'and a message is answered when two of three have synced it; a shard is a group',
} as const;

/** @param diskFolder  if each message is to be synced: where the journals are */
export function startTram(
  setup: Setup,
  signal: AbortSignal,
  diskFolder?: string,
): Promise<RunningSystem> {
  const journal = diskFolder && mkdtempSync(join(diskFolder, 'journal-'));
  const durable = journal && { durability: 'always' as const, journal };
  return tram({ tree: TREE, memory: 'processes', signal, ...durable }).start(setup);
}
