/**
 * Warms up a host: a small cluster in private memory, in one thread, orders messages and changes its leaders. Only
 * the compiled code remains. Without the warm-up the first leader change would run interpreted code.
 */
import { resolveConfig } from '../config/config.js';
import { ARENA, PARTICIPANT } from '../memory/arena.js';
import { NO_SALT } from '../memory/record.js';
import { beginIncarnation } from '../memory/shared.js';
import { threadsArena } from '../memory/threads.js';
import { Client } from '../protocol/data-path/client.js';
import { NO_OBSERVER, type Order } from '../protocol/edges.js';
import type { Identity } from '../protocol/member.js';
import { ClusterContext } from './cluster-context.js';
import { ReplicaAgent } from './replica-agent.js';
import { NO_SERVICE } from './service.js';

const GROUPS = 2;
const MESSAGES_UNDER_WAY = 16;
/** A leader changes every this many turns. */
const TURNS_PER_CHANGE = 8;
const TURN_US = 500;

/** @param order  of the cluster: each runs other code. @param clock  milliseconds */
export function warmUp(order: Order, durationMs: number, clock: () => number): void {
  const options = { order, groups: GROUPS, clients: 1, payloadBytesMax: 64, replyBytesMax: 16 };
  const config = resolveConfig({ ...options, logBytes: 1 << 15 }, NO_SALT);
  const arena = threadsArena(new SharedArrayBuffer(ClusterContext.wordsOf(config) * 4));
  const context = ClusterContext.create(config, arena);
  const replicas = context.map.replicas;
  const agents = Array.from({ length: replicas }, (_, participant) =>
    newAgent(context, participant),
  );
  const client = newClient(context);
  const payload = new Uint8Array(64);
  const untilMs = clock() + durationMs;
  for (let turn = 1; clock() < untilMs; turn++) {
    const nowUs = turn * TURN_US;
    if (turn % TURNS_PER_CHANGE === 0) {
      const participant = Math.floor(turn / TURNS_PER_CHANGE) % replicas;
      Atomics.add(
        arena.words,
        context.map.participant(participant) + PARTICIPANT.campaignRequests,
        1,
      );
    }
    while (client.outstanding < MESSAGES_UNDER_WAY) {
      if (client.offer(turn % 2 === 0 ? 3 : 2, 0, payload) !== 'accepted') break;
    }
    client.doWork(nowUs);
    for (const agent of agents) agent.doWork(nowUs);
  }
}

function newAgent(context: ClusterContext, participant: number): ReplicaAgent {
  const { replicas } = context.config.sizes;
  const incarnation = beginIncarnation(context.arena, context.map, participant, false);
  const group = Math.floor(participant / replicas);
  const member = participant % replicas;
  const identity: Identity = { group, member, incarnation, firstKey: 1, past: 'none' };
  return new ReplicaAgent(context, participant, identity, NO_SERVICE, NO_OBSERVER, 0);
}

function newClient(context: ClusterContext): Client {
  const participant = context.layout.clientParticipant(0);
  beginIncarnation(context.arena, context.map, participant, false);
  const session = Atomics.add(context.arena.words, ARENA.sessions, 1) + 1;
  const edges = context.edges(context.memory(participant), NO_OBSERVER);
  const listener = { replied: () => undefined, answered: () => undefined };
  return new Client(edges, 0, session, listener, 0);
}
