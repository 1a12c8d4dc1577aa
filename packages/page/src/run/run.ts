/**
 * A run that the page shows: the simulator's world, event by event, with what the user does to it. It is deterministic, so
 * the page goes back by running it again from its beginning.
 */
import { Commands } from 'tram-lab/dist/sim/commands.js';
import { Course } from 'tram-lab/dist/sim/course.js';
import type { Host } from 'tram-lab/dist/sim/hosts.js';
import { guarded, SimulationFailure } from 'tram-lab/dist/sim/ledger.js';
import type { RunLink } from 'tram-lab/dist/sim/link.js';
import { Narrator } from 'tram-lab/dist/sim/narrator.js';
import { drawPlan, type Plan } from 'tram-lab/dist/sim/plan.js';
import { Complaint, makePlan } from 'tram-lab/dist/sim/scenario-plan.js';
import { lastingOf } from 'tram-lab/dist/sim/simulate.js';
import { type Lasting, World } from 'tram-lab/dist/sim/world.js';
import type { TraceEvent } from 'tram-multicast/internal/check/events.js';
import { judge, type Verdict } from 'tram-multicast/internal/check/judge.js';
import { OverlayError } from 'tram-multicast/internal/protocol/overlay.js';
import { describeWorld } from './describe.js';
import { labelOf } from './describe-memory.js';
import type { View } from './view.js';

/** A line of the story of a run. */
export interface Line {
  readonly events: number;
  readonly timeUs: number;
  readonly text: string;
}

export interface Failure {
  readonly kind: string;
  readonly message: string;
}

const SETTINGS = { keepsTrace: true };

/** What makes a run: everything of a link but how far to go. */
export type RunStart = Pick<RunLink, 'seed' | 'cluster' | 'options'>;

export class Run {
  /** How many events have happened. */
  events = 0;
  readonly story: Line[] = [];
  failure: Failure | undefined;
  /** Has a drawn run come to its end, or has it failed? A cluster of the user's own never ends. */
  isOver = false;
  private readonly narrator = new Narrator();
  private readonly lasting: Lasting | undefined;
  private world: World;
  private commands: Commands;
  private course: Course | undefined;
  private states: string[] = [];

  /** @throws {Complaint} if there is no such cluster */
  constructor(private readonly start: RunStart) {
    const plan = planOf(start);
    this.narrator.listen((text) => this.tell(text));
    this.lasting = plan.durability && lastingOf(plan, SETTINGS);
    this.world = this.newWorld(plan);
    this.commands = new Commands(this.world, this.narrator);
    this.begin();
  }

  private get isDrawn(): boolean {
    return this.start.cluster === undefined;
  }

  private newWorld(plan: Plan): World {
    const { onTransition } = this.narrator;
    const world = new World(plan, { ...SETTINGS, onTransition }, this.lasting);
    this.narrator.attach(world);
    return world;
  }

  private begin(): void {
    this.guard(() => {
      if (this.isDrawn) this.course = new Course(this.world);
    });
    this.states = this.statesOf();
  }

  private tell(text: string): void {
    this.story.push({ events: this.events, timeUs: this.world.nowUs, text });
  }

  /** Run the next event. Returns false if there is none: the run is over, or all participants are down or paused. */
  advance(): boolean {
    if (this.isOver || this.world.isIdle) return false;
    this.events++;
    this.guard(() => {
      if (this.course === undefined) this.world.advance();
      else if (!this.course.advance()) this.endEra();
      this.tellFaults();
      this.commands.afterEvent();
      this.states = this.statesOf();
      this.narrator.take();
    });
    return !this.isOver;
  }

  /** The history was judged; or another era is open. */
  private endEra(): void {
    if (!this.world.isOver) {
      this.isOver = true;
      this.tell('the run has ended, and the judge has nothing to object');
      return;
    }
    this.world = this.newWorld(this.world.rest);
    this.commands = new Commands(this.world, this.narrator);
    this.tell('a recovery has opened another era');
    this.begin();
  }

  private guard(body: () => void): void {
    try {
      guarded(body);
    } catch (error) {
      if (!(error instanceof SimulationFailure)) throw error;
      this.narrator.catchUp();
      this.failure = { kind: error.kind, message: error.message };
      this.isOver = true;
      this.tell(`the run fails: ${error.kind}`);
    }
  }

  /** Carry out what the user does. Returns why it can't be done, or undefined. */
  act(command: string): string | undefined {
    if (this.isOver) return 'the run is over';
    const refusal = this.refusalOf(command);
    if (refusal !== undefined) return refusal;
    const told = this.story.length;
    let complaint: string | undefined;
    this.guard(() => {
      try {
        this.commands.run(command);
      } catch (error) {
        if (!(error instanceof Complaint)) throw error;
        complaint = error.message;
        return;
      }
      this.narrator.catchUp();
      if (this.story.length === told) this.tell(command);
    });
    this.narrator.take();
    this.states = this.statesOf();
    return complaint;
  }

  /** Why this is not possible in the world of this run. */
  private refusalOf(command: string): string | undefined {
    const { memory, durability } = this.world.plan;
    const [verb, who] = command.split(' ');
    if (memory === 'shared' && OF_LINKS.includes(verb))
      return 'this run is on shared memory, which has no links';
    const isDown = this.hosts.some(
      (host) => host.state === 'down' && this.narrator.name(host) === who,
    );
    const endsOrBegins =
      ['crash', 'kill', 'restart'].includes(verb) || (verb === 'resume' && isDown);
    return durability !== undefined && endsOrBegins
      ? 'replicas of hosts with disks do not end one by one'
      : undefined;
  }

  /** Faults of the plan have no line of their own. */
  private tellFaults(): void {
    const states = this.statesOf();
    states.forEach((state, i) => {
      if (state === this.states[i]) return;
      this.tell(`${this.narrator.name(this.hosts[i])} ${DEEDS[state]}`);
    });
    this.states = states;
  }

  private get hosts(): Host[] {
    return [...this.world.replicas, ...this.world.clients];
  }

  private statesOf(): string[] {
    return this.hosts.map(({ state, leftMemory }) =>
      state === 'down' && leftMemory ? 'killed' : state,
    );
  }

  get timeUs(): number {
    return this.world.nowUs;
  }

  /** Does every group have a leader? */
  get isLed(): boolean {
    return this.world.plan.parents.every((_, group) => this.world.leaderOf(group) !== undefined);
  }

  view(): View {
    return describeWorld(this.world, this.narrator, this.events);
  }

  /** By replica, the ids of the messages that it has delivered in its present incarnation, in order. */
  deliveries(replica: string): string[] {
    const ids: string[] = [];
    for (const event of this.trace) {
      if (!('replica' in event) || event.replica !== replica) continue;
      if (event.event === 'deliver') ids.push(event.id);
      else if (event.event === 'restore') ids.splice(0, ids.length, ...this.deliveredBefore(event));
    }
    return ids;
  }

  private deliveredBefore({ from, count }: TraceEvent & { event: 'restore' }): string[] {
    if (count === 0) return [];
    const group = Number(from.split('/')[0]);
    return this.world.ledger.orders[group].slice(0, count).map(({ id }) => id);
  }

  /** What cells call a message. */
  labelOf(id: string): string {
    return labelOf(this.narrator.nameOf(id));
  }

  private get trace(): readonly TraceEvent[] {
    return this.world.ledger.trace!;
  }

  /** The verdict of the judge on what has happened so far. */
  judge(): Verdict {
    if (this.trace.at(-1)?.event === 'end') return judge(this.trace);
    return judge([...this.trace, { event: 'end', quiescent: this.isQuiescent }]);
  }

  /** Is every message answered that a running client has sent, and has every member delivered all that its group knows? */
  private get isQuiescent(): boolean {
    const { clients, replicas, plan, ledger } = this.world;
    if (this.isDrawn || !ledger.isComplete) return false;
    const furthest = plan.parents.map((_, group) =>
      Math.max(...this.world.members(group).map((host) => host.replica.member.nextToDeliver)),
    );
    return (
      clients.every(({ state, client }) => state === 'down' || client.outstanding === 0) &&
      replicas.every(
        ({ state, group, replica: { member } }) =>
          state === 'down' ||
          (state === 'up' && member.normal && member.nextToDeliver === furthest[group]),
      )
    );
  }

  /** Ids of messages in a text, replaced by what lines call them, and, where messages have texts, sessions by clients. */
  inTexts(text: string): string {
    const named = this.narrator.inTexts(text);
    if (this.isDrawn) return named;
    return named.replace(/\bc(\d+)\b(?!:)/g, (session, number) => {
      const host = this.world.clients.find(({ workload }) => workload.session === Number(number));
      return host === undefined ? session : this.narrator.name(host);
    });
  }
}

const OF_LINKS = ['cut', 'slow', 'mend', 'hold', 'release', 'lose', 'weather'];

const DEEDS: Readonly<Record<string, string>> = {
  up: 'runs',
  paused: 'pauses',
  killed: 'is killed; its memory stays',
  down: 'crashes; its memory is lost',
};

function planOf({ seed, cluster, options }: RunStart): Plan {
  if (cluster === undefined) return drawPlan(seed, options);
  try {
    const plan = { ...makePlan(cluster), seed };
    requireModest(plan);
    return plan;
  } catch (error) {
    if (error instanceof OverlayError) throw new Complaint(error.message);
    throw error;
  }
}

/** A link may ask for anything. @throws {Complaint} if the cluster would not fit into a browser */
function requireModest({ sizes }: Plan): void {
  const { groups, replicas, clients, payloadBytesMax, logBytes } = sizes;
  if (groups > 64 || ![1, 3, 5, 7].includes(replicas) || clients < 1 || clients > 16)
    throw new Complaint(
      'a cluster has up to 64 groups of 1, 3, 5 or 7 members, and up to 16 clients',
    );
  if (payloadBytesMax > 65_536 || logBytes > 1 << 20)
    throw new Complaint('payloads have up to 64 KiB, and rings up to 1 MiB');
}
