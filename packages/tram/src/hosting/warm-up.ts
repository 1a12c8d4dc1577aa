/**
 * The warm-up of a host: a small cluster in private memory, in the thread of the host, orders messages and changes its
 * leaders, on request and because a host has died. Only the compiled code remains. Without it, the first takeover would run
 * interpreted code, and the engine would compile on the cores that the survivors need.
 *
 * The engine compiles code after some number of rounds, not after some time. A host plays the first rounds before it starts, and
 * the remaining ones in short pauses while all its replicas follow. A leader never pauses: its messages would wait.
 */
import { resolveConfig } from '../config/config.js';
import { ARENA, HOST, HOST_STATE, PARTICIPANT, withHostState } from '../memory/arena.js';
import { NO_SALT } from '../memory/record.js';
import { beginIncarnation } from '../memory/shared.js';
import { threadsArena } from '../memory/threads.js';
import { Client } from '../protocol/data-path/client.js';
import { NO_OBSERVER, type Order } from '../protocol/edges.js';
import type { Identity } from '../protocol/member.js';
import { ClusterContext } from './cluster-context.js';
import { ReplicaAgent } from './replica-agent.js';
import { NO_SERVICE } from './service.js';

/** Groups with children, with a parent, and with both; as many hosts as a group has members. */
const TREE = '-1,0,0,1';
const GROUPS = 4;
const REPLICAS = 3;
const CLIENTS = 4;
const PAYLOAD = new Uint8Array(64);
/** The sets of groups that messages go to, each as bits. */
const DESTINATIONS = [0b1111, 0b0001, 0b0010, 0b1110, 0b1000, 0b0011];
/** Small, so that they fill up. */
const SIZES = { payloadBytesMax: 64, replyBytesMax: 16, callsMax: 16 };
const LOG_BYTES = 1 << 13;
const TURN_US = 100;
/** In a round, one leader of each group changes on request, and one host is dead for some turns. */
const ROUND_TURNS = 24;
const REQUEST_TURN = 2;
const DEATH_TURN = 12;
const RETURN_TURN = 18;
/** About 40 ms: the first leaders of a cluster do not wait longer. */
const FIRST_ROUNDS = 4;
/** Beyond this, takeovers get no faster. */
const ROUNDS = 300;

export class WarmUp {
  private readonly context: ClusterContext;
  /** By host. */
  private readonly agents: readonly (readonly ReplicaAgent[])[];
  private readonly clients: readonly Client[];
  private turns = 0;
  private dead = -1;

  /** @param order  of the cluster: each runs other code */
  constructor(order: Order) {
    const options = { order, groups: GROUPS, replicas: REPLICAS, tree: TREE, hosts: REPLICAS };
    const config = resolveConfig(
      { ...options, ...SIZES, clients: CLIENTS, logBytes: LOG_BYTES, leaders: 'together' },
      NO_SALT,
    );
    const arena = threadsArena(new SharedArrayBuffer(ClusterContext.wordsOf(config) * 4));
    this.context = ClusterContext.create(config, arena);
    const { map } = this.context;
    this.agents = Array.from({ length: map.hosts }, (_, host) =>
      map.participantsOf(host).map((participant) => this.newAgent(participant)),
    );
    this.clients = Array.from({ length: CLIENTS }, (_, slot) => this.newClient(slot));
  }

  private get rounds(): number {
    return Math.floor(this.turns / ROUND_TURNS);
  }

  get isComplete(): boolean {
    return this.rounds >= ROUNDS;
  }

  /** Before the host starts. */
  begin(): void {
    while (this.rounds < FIRST_ROUNDS) this.playRound();
  }

  playRound(): void {
    const round = this.rounds;
    for (let turn = 0; turn < ROUND_TURNS; turn++) {
      if (turn === REQUEST_TURN) this.requestLead(round % REPLICAS);
      if (turn === DEATH_TURN) this.die(round % REPLICAS);
      if (turn === RETURN_TURN) this.comeBack();
      this.playTurn();
    }
  }

  private playTurn(): void {
    const nowUs = ++this.turns * TURN_US;
    for (const client of this.clients) {
      const destinations = DESTINATIONS[this.turns % DESTINATIONS.length];
      while (client.offer(destinations, 0, PAYLOAD) === 'accepted');
      client.doWork(nowUs);
    }
    for (let host = 0; host < this.agents.length; host++) {
      if (host === this.dead) continue;
      for (const agent of this.agents[host]) agent.doWork(nowUs);
    }
  }

  private requestLead(member: number): void {
    const { arena, map, layout } = this.context;
    for (let group = 0; group < GROUPS; group++) {
      const line = map.participant(layout.replicaParticipant(group, member));
      Atomics.add(arena.words, line + PARTICIPANT.campaignRequests, 1);
    }
  }

  private die(host: number): void {
    this.dead = host;
    this.enter(HOST_STATE.ended);
  }

  /** It has only paused: that others believed it dead is no harm. */
  private comeBack(): void {
    this.enter(HOST_STATE.running);
    this.dead = -1;
  }

  private enter(state: number): void {
    const { arena, map } = this.context;
    const at = map.host(this.dead) + HOST.state;
    Atomics.store(arena.words, at, withHostState(arena.words[at], state));
  }

  private newAgent(participant: number): ReplicaAgent {
    const { context } = this;
    const incarnation = beginIncarnation(context.arena, context.map, participant, false);
    const group = Math.floor(participant / REPLICAS);
    const member = participant % REPLICAS;
    const identity: Identity = { group, member, incarnation, firstKey: 1, past: 'none' };
    return new ReplicaAgent(context, participant, identity, NO_SERVICE, NO_OBSERVER, 0);
  }

  private newClient(slot: number): Client {
    const { context } = this;
    const participant = context.layout.clientParticipant(slot);
    beginIncarnation(context.arena, context.map, participant, false);
    const session = Atomics.add(context.arena.words, ARENA.sessions, 1) + 1;
    const edges = context.edges(context.memory(participant), NO_OBSERVER);
    const listener = { replied: () => undefined, answered: () => undefined };
    return new Client(edges, slot, session, listener, 0);
  }
}
