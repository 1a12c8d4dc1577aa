/** A replica alone, for tests of what it does before its first step. It must post nothing. */
import { type Memory, OPEN } from '../../../src/memory/contract.js';
import { type Application, type GroupJournal, NO_OBSERVER } from '../../../src/protocol/edges.js';
import { Layout, NO_SALT, type Sizes } from '../../../src/protocol/layout.js';
import type { Start, Stretch } from '../../../src/protocol/member.js';
import { Overlay } from '../../../src/protocol/overlay.js';
import { Replica } from '../../../src/protocol/replica.js';

export const SIZES: Sizes = {
  groups: 2,
  replicas: 3,
  clients: 3,
  payloadBytesMax: 64,
  replyBytesMax: 16,
  logBytes: 4096,
  inboxBytes: 4096,
  feedBytes: 4096,
  callsMax: 4,
  snapshotChunkBytes: 64,
  firstIndex: 2,
  salt: NO_SALT,
};

const TIMING = {
  heartbeatUs: 100,
  restUs: 100,
  quickUs: 0,
  suspectAfterUs: 1000,
  askAgainUs: 100,
  backOffUs: 100,
  resendAfterUs: 1000,
};

function refuse(): never {
  throw new Error('it posted something');
}

function memoryOf(layout: Layout): Memory {
  return {
    self: 0,
    own: new Int32Array(layout.replicaRegionWords),
    readFence: () => undefined,
    scratch: (words) => new Int32Array(words),
    permit: () => undefined,
    permitted: () => OPEN,
    writeAtOnce: refuse,
    write: refuse,
    writeWord: refuse,
    read: refuse,
    markUrgent: refuse,
    poll: () => false,
    completion: { peer: 0, tag: 0, guard: OPEN, outcome: 'ok' },
    wake: refuse,
    hasEnded: () => false,
  };
}

/** It takes nothing: all entries come from it. */
class ReadJournal implements GroupJournal {
  readonly isAwaited = true;
  readonly next = Number.POSITIVE_INFINITY;
  readonly durable = 0;
  readonly wantsSnapshot = false;
  readonly awaitsMark = false;
  readonly wantsMark = false;
  readonly isBusy = false;
  readonly heldMark = 0;
  hasRoom = refuse;
  hasRoomForPiece = refuse;
  add = refuse;
  leaveOut = refuse;
  beginSnapshot = refuse;
  addPiece = refuse;
  endSnapshot = refuse;
  dropSnapshot = refuse;
  stable = refuse;
  mark = refuse;
  complete = refuse;
}

/** The first member of group 1, which is a child of group 0, begun from `start` and the entries that follow. */
export function begun(application: Application, start: Start, stretch?: Stretch): Replica {
  const layout = new Layout(SIZES);
  const replica = new Replica(
    { group: 1, member: 0, incarnation: 1, firstKey: 1, past: 'none' },
    {
      memory: memoryOf(layout),
      journal: new ReadJournal(),
      layout,
      overlay: new Overlay([-1, 0]),
      timing: TIMING,
      pace: { batchEntries: 256, parentEntries: 128, clientEntries: 64, backlogBytesMax: 2 ** 20 },
      order: 'multicast',
      observer: NO_OBSERVER,
      wallClockUs: () => 0,
      monotonicUs: () => 0,
      hasSessionEnded: () => false,
    },
    application,
    0,
  );
  const replay = replica.begin(start);
  if (stretch !== undefined) replay.deliver(stretch);
  replay.end();
  return replica;
}
