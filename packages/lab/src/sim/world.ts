/**
 * A simulated cluster: replicas and clients run as production code on simulated memory, in one thread and in virtual
 * time. `simulate.ts`, scenarios and scripted stages build one.
 *
 * A run has three phases. The workload runs under the plan's faults. Then the faults end, and everything must drain.
 * Then the judge checks the history. Any failure is a `SimulationFailure`.
 *
 * With durability, a world is one era of the cluster. It ends when a recovery has opened another era, and the world of that
 * era goes on with what is left of the plan. What lasts longer than an era is in `Power` and in `Lasting`.
 *
 * Invariant: the plan determines the run. All draws come from the plan's seed, in one order.
 */
import { Client } from 'tram-multicast/internal/protocol/data-path/client.js';
import type {
  Edges,
  GroupJournal,
  Observer,
  Transition,
} from 'tram-multicast/internal/protocol/edges.js';
import { Layout } from 'tram-multicast/internal/protocol/layout.js';
import type { Past, Start, Stretch } from 'tram-multicast/internal/protocol/member.js';
import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { Replica } from 'tram-multicast/internal/protocol/replica.js';
import { Course, RUN_LIMIT_US, requireEnd } from './course.js';
import { Deferrals } from './deferrals.js';
import { firstKeyOf } from './first-key.js';
import type { ClientHost, Host, ReplicaHost } from './hosts.js';
import { Incidents } from './incidents.js';
import { Interruptions } from './interruptions.js';
import { guarded, type Ledger, newLedger, type Sent } from './ledger.js';
import { Losses } from './losses.js';
import { Observation } from './observation.js';
import { TimeKeeper } from './ordered-time.js';
import type { Plan } from './plan.js';
import type { Power } from './power.js';
import { drawProbe } from './probes.js';
import { Random } from './random.js';
import { Service } from './service.js';
import { SharedFabric } from './shared-fabric.js';
import { Killed, SimulatedFabric, type SimulatedMemory } from './simulated-memory.js';
import { Steps } from './steps.js';
import { Tally } from './tally.js';
import { Workload } from './workload.js';

export interface Settings {
  readonly keepsTrace?: boolean;
  readonly keepsHistory?: boolean;
  /** Clients send as fast as they can. */
  readonly saturates?: boolean;
  /** Called for every transition, in the middle of the step that takes it. It must not change the world. */
  readonly onTransition?: (participant: number, what: Transition) => void;
  /** The journal of a replica. The world itself has none. */
  readonly journalOf?: (participant: number) => GroupJournal;
  /** What a replica that has a journal begins from; undefined if it lacks the state of its group. */
  readonly startOf?: (participant: number) => ScriptedStart | undefined;
}

/** The snapshot and all entries. */
export interface ScriptedStart extends Start {
  readonly stretches: readonly Stretch[];
}

/** What all eras of a run have in common. */
export interface Lasting {
  readonly ledger: Ledger;
  readonly tally: Tally;
  readonly random: Random;
  readonly power: Power;
}

export class World {
  readonly layout: Layout;
  readonly overlay: Overlay;
  readonly fabric: SimulatedFabric;
  readonly ledger: Ledger;
  readonly tally: Tally;
  readonly random: Random;
  readonly replicas: ReplicaHost[] = [];
  readonly clients: ClientHost[] = [];
  readonly interruptions: Interruptions;
  /** By group: the first index that no leader has dropped from the log. */
  readonly droppedBelow: number[];
  private readonly steps: Steps;
  private readonly incidents: Incidents;
  readonly observation: Observation;
  readonly losses: Losses;
  private readonly deferrals: Deferrals;
  /** The disks and what happens to them; undefined without durability. */
  readonly power: Power | undefined;
  private sessions = 0;

  /** @param lasting  if this is not the first era of the run, what the earlier ones have left */
  constructor(
    readonly plan: Plan,
    private readonly settings: Settings = {},
    lasting?: Lasting,
  ) {
    const { sizes, weather } = plan;
    this.random = lasting?.random ?? new Random(plan.seed * 2 + 1);
    this.layout = new Layout(sizes);
    this.overlay = new Overlay(plan.parents);
    const participants = sizes.groups * sizes.replicas + sizes.clients;
    this.fabric =
      plan.memory === 'shared'
        ? new SharedFabric(this.layout, this.random)
        : new SimulatedFabric(participants, weather, this.random);
    this.interruptions = new Interruptions(this, plan.interruptions);
    this.fabric.nowUs = lasting?.power.nowUs ?? 0;
    this.steps = new Steps(participants);
    this.tally = lasting?.tally ?? new Tally(plan);
    this.ledger = lasting?.ledger ?? newLedger(plan, settings, () => this.nowUs);
    this.power = lasting?.power;
    this.losses = new Losses(this);
    this.deferrals = new Deferrals(sizes.groups);
    this.droppedBelow = plan.parents.map(() => sizes.firstIndex);
    this.incidents = new Incidents(this);
    this.observation = new Observation(this, this.incidents, settings);
    for (let group = 0; group < sizes.groups; group++) {
      for (let member = 0; member < sizes.replicas; member++) this.addReplica(group, member);
    }
    if (this.power === undefined) this.addClients();
  }

  /** With durability: the replicas and clients of an era begin. */
  private beginEra(power: Power): void {
    this.sessions = power.begin(this);
    for (const { state, group, member } of this.replicas) {
      if (state === 'down') this.ledger.record({ event: 'crash', replica: `${group}/${member}` });
    }
    this.addClients();
  }

  get nowUs(): number {
    return this.fabric.nowUs;
  }

  /** Known once the history was judged. */
  get violatesRealTime(): boolean {
    return this.observation.violatesRealTime;
  }

  /** Run the workload with its faults, drain, and judge; or, until another era is open. */
  run(): void {
    this.interruptions.prepare();
    guarded(() => {
      const course = new Course(this);
      while (course.advance());
    });
  }

  /** Called once, before the first event. */
  begin(): void {
    if (this.power !== undefined) this.beginEra(this.power);
    this.interruptions.begin();
  }

  /** Has the workload been sent, and has every incident begun? */
  isPlanDone(): boolean {
    return (
      this.isOver ||
      (this.clients.every((host) => this.hasSentAll(host)) && this.incidents.isOver())
    );
  }

  /** All faults end. */
  heal(): void {
    this.incidents.heal();
    this.power?.heal();
  }

  /** Has a recovery opened the next era? */
  get isOver(): boolean {
    return this.power?.hasOpened ?? false;
  }

  /** What is left of the plan for the next era. */
  get rest(): Plan {
    const messages = this.clients.reduce(
      (sum, { state, workload }) => sum + (state === 'down' ? 0 : workload.remaining),
      0,
    );
    return { ...this.plan, messages, incidents: this.incidents.rest };
  }

  private hasSentAll(host: ClientHost): boolean {
    return host.state === 'down' || host.workload.remaining === 0;
  }

  // --- participants -----------------------------------------------------------------------------

  private addReplica(group: number, member: number): void {
    const participant = this.layout.replicaParticipant(group, member);
    const host = {
      participant,
      group,
      member,
      state: 'down',
      leftMemory: false,
      incarnation: 0,
      hadDelivered: 0,
      left: undefined,
      leftIndex: 0,
      slowness: 1,
      afterStep: undefined,
    };
    this.replicas.push(host as unknown as ReplicaHost);
    if (this.power === undefined) this.startReplica(this.replicas[participant]);
  }

  /** Start a replica, or restart it with empty memory. */
  startReplica(host: ReplicaHost): void {
    host.memory = this.emptyMemory(host, this.layout.replicaRegionWords);
    this.beginIncarnation(host, host.incarnation > 0 ? 'lost' : 'none');
  }

  /** Restart a replica with the memory that it left, and with the snapshot that it left last, however old: it resumes. */
  resumeReplica(host: ReplicaHost): void {
    host.memory = this.fabric.resume(host.participant);
    this.observation.availability.resumed(host.group);
    this.beginIncarnation(host, 'kept', host.left);
  }

  /**
   * Start a replica of a host with a journal, which lets it begin from that. Only with `kept` memory does it have what an earlier
   * incarnation left.
   */
  startWithJournal(host: ReplicaHost, past: Past): void {
    const { fabric } = this;
    const { participant, leftMemory } = host;
    // Without interruptions: the host must not end before all its replicas have started.
    if (past === 'kept') host.memory = fabric.resume(participant);
    else if (leftMemory) host.memory = fabric.restart(participant);
    else host.memory = fabric.start(participant, this.layout.replicaRegionWords);
    this.beginIncarnation(host, past);
  }

  private discardLeft(host: ReplicaHost): void {
    host.left = undefined;
    host.leftIndex = 0;
  }

  private emptyMemory(host: Host, words: number): SimulatedMemory {
    const { participant, leftMemory } = host;
    return this.interruptions.run(host, () =>
      leftMemory ? this.fabric.restart(participant) : this.fabric.start(participant, words),
    );
  }

  private beginIncarnation(host: ReplicaHost, past: Past, left?: Int32Array): void {
    const { group, member, participant } = host;
    host.incarnation++;
    host.state = 'up';
    host.leftMemory = false;
    if (past !== 'none') {
      const replica = `${group}/${member}`;
      this.ledger.record({ event: 'restart', replica });
      // Judges that treat a restart as a pause need this: the new incarnation has delivered nothing.
      this.ledger.record({ event: 'restore', replica, from: replica, count: 0 });
    }
    host.service = new Service(
      this.plan,
      this.ledger,
      this.deferrals,
      group,
      member,
      (delivery) => this.observation.delivered(host, delivery),
      (orderedUs) => this.observation.ticked(host, orderedUs),
    );
    host.timeKeeper = new TimeKeeper(this.nowUs);
    const { incarnation } = host;
    const firstKey = firstKeyOf(incarnation);
    const identity = { group, member, incarnation, firstKey, past, left };
    const edges = this.edges(host.memory, this.observation.observerOf(participant, host));
    host.replica = new Replica(
      identity,
      {
        ...edges,
        journal: this.power?.journalOf(participant) ?? this.settings.journalOf?.(participant),
      },
      this.interruptions.shield(host.service),
      this.nowUs,
    );
    const start = this.settings.startOf?.(participant);
    if (start !== undefined) {
      const replay = host.replica.begin(start);
      for (const stretch of start.stretches) replay.deliver(stretch);
      replay.end();
    }
    // As the host does: what was left with memory that is gone is useless.
    if (host.replica.member.past !== 'kept') this.discardLeft(host);
    this.steps.schedule(participant, this.nowUs + this.drawStep());
  }

  private addClients(): void {
    for (let slot = 0; slot < this.plan.sizes.clients; slot++) this.addClient(slot);
  }

  private addClient(slot: number): void {
    const participant = this.layout.clientParticipant(slot);
    const host = { participant, slot, state: 'down', leftMemory: false, afterStep: undefined };
    this.clients.push(host as unknown as ClientHost);
    const { clients } = this.plan.sizes;
    const share =
      Math.floor(this.plan.messages / clients) + (slot < this.plan.messages % clients ? 1 : 0);
    this.startClient(this.clients[slot], share);
  }

  startClient(host: ClientHost, messages: number): void {
    const session = ++this.sessions;
    host.state = 'up';
    host.memory = this.emptyMemory(host, this.layout.clientRegionWords);
    host.leftMemory = false;
    host.workload = new Workload(
      this.plan,
      this.ledger,
      this.deferrals,
      this.random,
      this.layout,
      session,
      messages,
      {
        sent: (sent) => this.observation.sent(sent),
        replied: (sent, group) => {
          this.power?.eras.replied(sent, group);
          this.probe(host, sent, group);
        },
        answered: (sent) => this.observation.answered(sent),
      },
    );
    const observer = this.observation.observerOf(host.participant);
    const edges = this.edges(host.memory, observer);
    host.client = new Client(edges, host.slot, session, host.workload, this.nowUs);
    this.steps.schedule(host.participant, this.nowUs + this.drawStep());
  }

  /** `host` has received the reply of `group` to its message. Another client, if there is one, may read a group now. */
  private probe(host: ClientHost, sent: Sent, group: number): void {
    const { random, plan } = this;
    if (plan.probePercent === 0 || !random.percent(plan.probePercent)) return;
    const target = drawProbe(random, this.ledger, sent, group);
    if (target === undefined) return;
    const others = this.clients.filter((other) => other !== host && other.state === 'up');
    const reader = others.length > 0 ? random.pick(others) : host;
    reader.workload.readSoon(target);
    this.steps.schedule(reader.participant, this.nowUs);
  }

  private edges(memory: SimulatedMemory, observer: Observer): Edges {
    const { layout, overlay } = this;
    const { timing, pace, order } = this.plan;
    const wallClockUs = () => this.observation.orderedTime.wallClockUs(memory.self, this.nowUs);
    const monotonicUs = () => this.nowUs;
    const hasSessionEnded = (client: number, session: number): boolean =>
      this.hasSessionEnded(client, session);
    const clocks = { wallClockUs, monotonicUs };
    return { memory, layout, overlay, timing, pace, order, observer, ...clocks, hasSessionEnded };
  }

  /** A client that is down stays down, or its slot has a new session. */
  private hasSessionEnded(slot: number, session: number): boolean {
    const { state, workload } = this.clients[slot];
    return state === 'down' || workload.session > session;
  }

  /** Crash a participant. Its memory is lost. */
  crash(host: Host): void {
    this.fabric.crash(host.participant);
    host.leftMemory = false;
    this.end(host);
  }

  /** Kill a participant. Its memory stays. Unless it is on another machine, others continue to read and write it. */
  kill(host: Host): void {
    if (this.plan.memory === 'machines') this.fabric.killOnOwnMachine(host.participant);
    else this.fabric.kill(host.participant);
    host.leftMemory = true;
    this.end(host);
  }

  /** End a replica in an orderly way, between two of its steps: it leaves its memory and a snapshot. */
  stop(host: ReplicaHost): void {
    const left = host.replica.leave();
    if (left !== undefined) {
      host.left = left;
      host.leftIndex = host.replica.member.nextToDeliver;
    }
    this.kill(host);
  }

  private end(host: Host): void {
    host.state = 'down';
    host.afterStep = undefined;
    this.steps.cancel(host.participant);
    if ('member' in host) {
      const { group, member, replica } = host as ReplicaHost;
      const { nextToDeliver } = replica.member;
      (host as ReplicaHost).hadDelivered = Math.max(
        (host as ReplicaHost).hadDelivered,
        nextToDeliver,
      );
      this.ledger.record({ event: 'crash', replica: `${group}/${member}` });
    } else {
      const { session } = (host as ClientHost).workload;
      this.deferrals.sessionEnded(session);
      this.ledger.record({ event: 'client-crash', client: `c${session}` });
    }
  }

  pause(host: Host): void {
    host.state = 'paused';
    this.steps.cancel(host.participant);
  }

  resume(host: Host): void {
    if (host.state !== 'paused') return;
    host.state = 'up';
    host.memory.resume();
    this.steps.schedule(host.participant, this.nowUs + this.drawStep());
  }

  /** Does it count against f? It does while it is down, and until it has recovered what it had delivered. */
  isUnavailable({ state, replica, hadDelivered }: ReplicaHost): boolean {
    if (state === 'down') return true;
    const { normal, nextToDeliver } = replica.member;
    return !normal || nextToDeliver < hadDelivered;
  }

  members(group: number): ReplicaHost[] {
    const { replicas } = this.plan.sizes;
    return this.replicas.slice(group * replicas, (group + 1) * replicas);
  }

  leaderOf(group: number): ReplicaHost | undefined {
    return this.members(group).find(
      (host) => host.state === 'up' && host.replica.role === 'leader',
    );
  }

  // --- time ----------------------------------------------------------------------------------

  /** Draw the time until a participant's next step. */
  drawStep(): number {
    return 1 + this.random.below(this.plan.stepUs * 2);
  }

  runUntil(isDone: () => boolean, limitUs = RUN_LIMIT_US): void {
    const untilUs = this.nowUs + limitUs;
    while (!isDone()) {
      if (this.nowUs > untilUs) requireEnd(this, limitUs);
      this.advance();
    }
  }

  /** Does nothing happen any more? */
  get isIdle(): boolean {
    const nextUs = Math.min(
      this.steps.nextUs(),
      this.fabric.nextUs(),
      this.incidents.nextUs(),
      this.power?.nextUs() ?? Number.POSITIVE_INFINITY,
    );
    return nextUs === Number.POSITIVE_INFINITY;
  }

  /** Run the next event: of a journal or a recovery, an incident of the plan, in memory, or a step of a participant. */
  advance(): void {
    this.losses.look();
    const stepUs = this.steps.nextUs();
    const memoryUs = this.fabric.nextUs();
    const incidentUs = this.incidents.nextUs();
    const powerUs = this.power?.nextUs() ?? Number.POSITIVE_INFINITY;
    if (powerUs < Math.min(stepUs, memoryUs, incidentUs)) {
      this.fabric.nowUs = Math.max(this.nowUs, powerUs);
      this.power!.runNext();
    } else if (incidentUs <= stepUs && incidentUs <= memoryUs) {
      this.fabric.nowUs = Math.max(this.nowUs, incidentUs);
      this.incidents.runNext();
    } else if (memoryUs <= stepUs) {
      this.fabric.runNext();
    } else {
      this.fabric.nowUs = stepUs;
      this.step(this.steps.takeNext());
    }
  }

  private step(participant: number): void {
    const replica = this.replicas[participant];
    const host = this.hostOf(participant);
    if (this.isHeldUp(host)) {
      this.steps.schedule(participant, this.nowUs + this.drawStep());
      return;
    }
    this.act(host, () => {
      const work = replica?.replica.doWork(this.nowUs) ?? this.stepClient(host as ClientHost);
      const factor = (work > 0 ? 1 : IDLE_FACTOR) * (replica?.slowness ?? 1);
      this.steps.schedule(participant, this.nowUs + this.drawStep() * factor);
    });
  }

  /** Is it in the middle of a step, or, with durability, another replica of the same host: they run in one thread? */
  private isHeldUp(host: Host): boolean {
    if (!this.interruptions.isInterrupting) return false;
    const sharing = this.power?.sharingHost(host.participant) ?? [host.participant];
    return sharing.some((participant) => this.interruptions.isWaiting(this.hostOf(participant)));
  }

  private hostOf(participant: number): Host {
    return this.replicas[participant] ?? this.clients[participant - this.replicas.length];
  }

  /** A replica campaigns, even if the group has a leader, unless it is in the middle of a step. */
  campaign(host: ReplicaHost): void {
    if (this.isHeldUp(host)) return;
    this.act(host, () => host.replica.campaign(this.nowUs));
  }

  /** Let a participant act. A fault may interrupt it, and is applied afterwards. */
  private act(host: Host, action: () => void): void {
    try {
      this.interruptions.run(host, action);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
    }
    const { afterStep } = host;
    host.afterStep = undefined;
    afterStep?.();
  }

  private stepClient(host: ClientHost): number {
    const { client, workload } = host;
    if (this.settings.saturates) workload.saturate(client);
    else workload.send(client, this.nowUs);
    return client.doWork(this.nowUs);
  }
}

const IDLE_FACTOR = 3;
