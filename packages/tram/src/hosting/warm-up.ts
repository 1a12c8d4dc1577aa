/**
 * The warm-up of a host: a small cluster in private memory, in the thread of the host, orders messages and changes its
 * leaders, on request and because a host has died. Only the compiled code remains. Without it, the first takeover would run
 * interpreted code, and the engine would compile on the cores that the survivors need.
 *
 * The engine compiles code for the kinds of objects that it has seen, and for the branches that were taken. It drops the code when it
 * meets others. So the small cluster is made of the same objects as the host, and takes the branches of a real takeover: members that
 * answer late, hosts that sleep, clients that send again.
 *
 * It compiles after some number of rounds, not after some time, and the compiler takes most of the time of a warm-up. A host plays
 * the first rounds before it starts, and the remaining turns in short pauses while a core is spare. While the cores are busy it plays
 * single turns, far apart.
 */
import { resolveConfig } from '../config/config.js';
import { ARENA, HOST, HOST_STATE, PARKED, PARTICIPANT, withHostState } from '../memory/arena.js';
import { NO_SALT } from '../memory/record.js';
import { beginIncarnation } from '../memory/shared.js';
import { threadsArena } from '../memory/threads.js';
import { Client } from '../protocol/data-path/client.js';
import { NO_OBSERVER, type Observer } from '../protocol/edges.js';
import type { Identity } from '../protocol/member.js';
import { nowUs } from './clock.js';
import { ClusterContext } from './cluster-context.js';
import { ReplicaAgent } from './replica-agent.js';
import { NO_SERVICE } from './service.js';

/** Groups with children, with a parent, and with both; as many hosts as a group has members. */
const TREE = '-1,0,0,1';
const GROUPS = 4;
const REPLICAS = 3;
const CLIENTS = 4;
const PAYLOAD = new Uint8Array(64);
/** Some replicas have another one: the engine must not expect that all call the same function. */
const OTHER_OBSERVER: Observer = { ...NO_OBSERVER, led: () => undefined };
/** The sets of groups that messages go to, each as bits. */
const DESTINATIONS = [0b1111, 0b0001, 0b0010, 0b1110, 0b1000, 0b0011];
/** Small, so that they fill up. */
const SIZES = { payloadBytesMax: 64, replyBytesMax: 16, callsMax: 16 };
const RINGS = { logBytes: 1 << 13, feedBytes: 1 << 13, inboxBytes: 1 << 12 };
/** Not an integer: the times of a real host are not, and other code deals with them. */
const TURN_US = 100.3;
/** The clock of the first client is so much faster that it often sends again. */
const HASTE = 1000;
/** In a round, one leader of each group changes on request while another host is slow, and one host is dead for some turns. */
const ROUND_TURNS = 24;
const REQUEST_TURN = 2;
const SLOW_TURNS = 3;
const DEATH_TURN = 12;
const RETURN_TURN = 18;
/** Few: the first leaders of a cluster wait for them. */
const FIRST_ROUNDS = 2;
/** Beyond this, takeovers get no faster, though the engine goes on compiling. */
const ROUNDS = 100;

/** How long a host plays at a time while a core is spare. */
const PLAY_US = { follower: 4000, leader: 2000 };
/** Otherwise it plays single turns, this far apart: the engine compiles what they need on the cores that messages need. */
const APART_US = { follower: 20_000, leader: 100_000 };

export class WarmUp {
  private readonly context: ClusterContext;
  /** By host. */
  private readonly agents: readonly (readonly ReplicaAgent[])[];
  private readonly clients: readonly Client[];
  private turns = 0;
  private dead = -1;
  /** When the next turn is due if no core is spare. */
  private turnDueUs = 0;
  /** When the agent that ran last is due: only so that it is asked, as by a host. */
  dueUs = 0;

  /** @param host  whose objects it imitates: each order runs other code, and so does each memory */
  constructor(host: ClusterContext) {
    const { order, memory } = host.config;
    const options = { order, groups: GROUPS, replicas: REPLICAS, tree: TREE, hosts: REPLICAS };
    const chosen = { ...options, ...SIZES, ...RINGS, clients: CLIENTS };
    const config = { ...resolveConfig({ ...chosen, leaders: 'together' }, NO_SALT), memory };
    const own = threadsArena(new SharedArrayBuffer(ClusterContext.wordsOf(config) * 4));
    // That it wakes sleepers who are not its own is no harm: all expect to be woken for nothing.
    const hasRoom = own.words.length <= host.arena.words.length;
    const arena = hasRoom ? { ...own, parking: host.arena.parking } : own;
    const created = ClusterContext.create(config, arena);
    // Only hosts on machines do not read their configuration from an arena.
    this.context = memory === 'machines' ? created : ClusterContext.attach(arena);
    const { map } = this.context;
    this.agents = Array.from({ length: map.hosts }, (_, host) =>
      map.participantsOf(host).map((participant) => this.newAgent(participant)),
    );
    this.clients = Array.from({ length: CLIENTS }, (_, slot) => this.newClient(slot));
  }

  get isComplete(): boolean {
    return this.turns >= ROUNDS * ROUND_TURNS;
  }

  /** Before the host starts. */
  begin(): void {
    while (this.turns < FIRST_ROUNDS * ROUND_TURNS) this.playTurn();
  }

  /**
   * In a pause of the host.
   * @param leads  does one of its replicas lead?
   * @param hasTime  is a core spare, and does no message wait for the host?
   */
  play(leads: boolean, hasTime: boolean): void {
    const role = leads ? 'leader' : 'follower';
    const fromUs = nowUs();
    if (!hasTime && fromUs < this.turnDueUs) return;
    this.turnDueUs = fromUs + APART_US[role];
    const untilUs = hasTime ? fromUs + PLAY_US[role] : fromUs;
    do this.playTurn();
    while (!this.isComplete && nowUs() < untilUs);
  }

  playTurn(): void {
    const turn = this.turns % ROUND_TURNS;
    const member = Math.floor(this.turns / ROUND_TURNS) % REPLICAS;
    if (turn === REQUEST_TURN) this.requestLead(member);
    if (turn === DEATH_TURN) this.die(member);
    if (turn === RETURN_TURN) this.comeBack();
    const isSlow = turn >= REQUEST_TURN && turn < REQUEST_TURN + SLOW_TURNS;
    this.runAll(isSlow ? (member + 1) % REPLICAS : this.dead);
  }

  /** @param resting  does not run */
  private runAll(resting: number): void {
    const nowUs = ++this.turns * TURN_US;
    this.fallAsleep();
    for (const [i, client] of this.clients.entries()) {
      const destinations = DESTINATIONS[this.turns % DESTINATIONS.length];
      while (client.offer(destinations, 0, PAYLOAD) === 'accepted');
      client.doWork(i === 0 ? nowUs * HASTE : nowUs);
    }
    for (let host = 0; host < this.agents.length; host++) {
      if (host !== resting) this.run(this.agents[host], nowUs);
    }
  }

  /** As a host does that is not slow: a candidate runs again before anyone has answered it. */
  private run(agents: readonly ReplicaAgent[], nowUs: number): void {
    for (let run = 0; run < 2; run++) {
      for (const agent of agents) {
        agent.doWork(nowUs);
        this.dueUs = agent.dueUs;
      }
    }
  }

  /** So that each write to a host wakes it. */
  private fallAsleep(): void {
    const { arena, map } = this.context;
    for (let host = 0; host < map.hosts; host++)
      Atomics.store(arena.words, map.host(host) + HOST.parked, PARKED.parked);
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
    const observer = group === 0 ? OTHER_OBSERVER : NO_OBSERVER;
    return new ReplicaAgent(context, participant, identity, NO_SERVICE, observer, 0);
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
