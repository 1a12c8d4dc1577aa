/**
 * A simulated RamCast cluster: the real replicas and clients on simulated memory, in one thread and in virtual time. There are no
 * failures; writes arrive late and torn, and complete late. The judge checks the history.
 */
import { History, judge, type Verdict } from 'tram-multicast/check';
import { contains, highMask, lowMask } from 'tram-multicast/internal/protocol/overlay.js';
import { Client } from '../../../src/baselines/ramcast/client.js';
import { type Delivery, type Edges, PACE } from '../../../src/baselines/ramcast/edges.js';
import { RamcastLayout, type RamcastSizes } from '../../../src/baselines/ramcast/layout.js';
import { newReplica, type Parts, type Replica } from '../../../src/baselines/ramcast/replica.js';
import { Random } from '../../../src/sim/random.js';
import { SimulatedFabric } from '../../../src/sim/simulated-memory.js';
import { Steps } from '../../../src/sim/steps.js';

export interface RamcastPlan {
  readonly sizes: RamcastSizes;
  readonly messages: number;
  readonly singleGroupPercent: number;
  readonly stepUs: number;
  /** Followers step this many times less often than leaders. */
  readonly followerFactor: number;
}

const LIMIT_US = 3_000_000;

export function drawPlan(random: Random, seed: number): RamcastPlan {
  const isTiny = random.percent(40);
  const ring = (): number => (isTiny ? 0 : random.pick([256, 1024, 16384]));
  return {
    sizes: {
      groups: random.pick([1, 2, 2, 3, 3, 4, 5, 8, seed % 50 === 0 ? 40 : 6]),
      replicas: random.pick([1, 2, 3, 3, 3, 4, 5, 7]),
      clients: random.between(1, 5),
      payloadBytesMax: random.pick([0, 8, 64, 200]),
      replyBytesMax: random.pick([0, 8, 16]),
      inboxBytes: ring(),
      streamBytes: ring(),
      callsMax: random.between(1, 16),
      acknowledges: random.percent(50),
      firstIndex: random.pick([0, 0, 2147483648 - 40, 4294967296 - 40]),
    },
    messages: random.between(100, 250),
    singleGroupPercent: random.pick([0, 30, 60, 100]),
    stepUs: random.between(2, 8),
    followerFactor: random.pick([1, 1, 5, 40]),
  };
}

interface Sent {
  readonly id: string;
  readonly low: number;
  readonly high: number;
  readonly payload: Uint8Array;
}

export class RamcastWorld {
  readonly history = new History();
  readonly plan: RamcastPlan;
  private readonly random: Random;
  private readonly layout: RamcastLayout;
  private readonly fabric: SimulatedFabric;
  private readonly steps: Steps;
  private readonly replicas: Replica[] = [];
  private readonly clients: Client[] = [];
  private readonly sent = new Map<string, Sent>();
  private readonly expected: number[];
  private remaining: number;

  constructor(
    readonly seed: number,
    parts?: (edges: Edges, group: number, member: number) => Parts,
  ) {
    this.random = new Random(seed);
    this.plan = drawPlan(this.random, seed);
    const { sizes, messages } = this.plan;
    this.remaining = messages;
    this.layout = new RamcastLayout(sizes);
    const participants = sizes.groups * sizes.replicas + sizes.clients;
    const isTorn = this.random.percent(70);
    const weather = {
      delayUs: this.random.between(1, 5),
      jitterUs: this.random.pick([0, 5, 10, 100]),
      tornPercent: isTorn ? this.random.pick([10, 50, 90]) : 0,
      lateCompletionPercent: isTorn ? this.random.pick([0, 5, 30]) : 0,
    };
    this.fabric = new SimulatedFabric(participants, weather, this.random);
    this.steps = new Steps(participants);
    this.expected = new Array<number>(sizes.groups).fill(0);
    this.recordGroups();
    for (let group = 0; group < sizes.groups; group++) {
      for (let member = 0; member < sizes.replicas; member++) {
        const participant = this.layout.replicaParticipant(group, member);
        const edges = this.edges(participant, this.layout.replicaRegionWords);
        const deliver = (message: Delivery) => this.delivered(group, member, message);
        this.replicas.push(
          newReplica(edges, group, member, { deliver }, parts?.(edges, group, member)),
        );
      }
    }
    for (let client = 0; client < sizes.clients; client++)
      this.clients.push(this.newClient(client));
    for (let participant = 0; participant < participants; participant++) this.schedule(participant);
  }

  private edges(participant: number, words: number): Edges {
    return { memory: this.fabric.start(participant, words), layout: this.layout, pace: PACE };
  }

  private recordGroups(): void {
    const { groups, replicas } = this.plan.sizes;
    const members: Record<string, string[]> = {};
    for (let group = 0; group < groups; group++) {
      members[group] = Array.from({ length: replicas }, (_, member) => `${group}/${member}`);
    }
    this.history.add({ event: 'groups', groups: members });
  }

  private newClient(client: number): Client {
    const edges = this.edges(this.layout.clientParticipant(client), this.layout.clientRegionWords);
    return new Client(edges, client, {
      replied: (call, group, reply) => {
        const isSent = this.plan.sizes.replyBytesMax >= 8;
        const told = reply && reply.length > 0 ? new Int32Array(reply.slice().buffer) : undefined;
        const isTrue = isSent
          ? told?.[0] === group && told[1] === call.sequence
          : reply === undefined;
        if (!isTrue) throw new Error(`group ${group} gave a wrong reply to ${call.sequence}`);
      },
      answered: () => undefined,
    });
  }

  private schedule(participant: number): void {
    const { stepUs, followerFactor, sizes } = this.plan;
    const isFollower = participant < this.replicas.length && participant % sizes.replicas > 0;
    const mostUs = 2 * stepUs * (isFollower ? followerFactor : 1);
    this.steps.schedule(participant, this.fabric.nowUs + 1 + this.random.below(mostUs));
  }

  /** Runs until all messages are answered and delivered at all replicas. */
  run(): Verdict {
    while (!this.isDone()) {
      if (this.fabric.nowUs > LIMIT_US) throw new Error(`the run does not end: ${this.describe()}`);
      const stepUs = this.steps.nextUs();
      if (this.fabric.nextUs() <= stepUs) this.fabric.runNext();
      else {
        this.fabric.nowUs = stepUs;
        this.step(this.steps.takeNext());
      }
    }
    this.history.add({ event: 'end', quiescent: true });
    return judge(this.history);
  }

  private step(participant: number): void {
    const replica = this.replicas[participant];
    if (replica !== undefined) replica.doWork();
    else {
      const client = this.clients[participant - this.replicas.length];
      const burst = this.random.between(0, 8);
      for (let i = 0; i < burst && this.remaining > 0 && this.multicast(client); i++)
        this.remaining--;
      client.doWork();
    }
    this.schedule(participant);
  }

  private multicast(client: Client): boolean {
    const { random } = this;
    const { groups, payloadBytesMax } = this.plan.sizes;
    const count = random.percent(this.plan.singleGroupPercent) ? 1 : random.between(1, groups);
    let low = 0;
    let high = 0;
    for (let i = 0; i < count; i++) {
      const group = random.below(groups);
      low |= lowMask(group);
      high |= highMask(group);
    }
    const payload = Uint8Array.from({ length: random.below(payloadBytesMax + 1) }, () =>
      random.below(256),
    );
    if (client.offer(low, high, payload) === 'backPressured') return false;
    const id = nameOf(client.client, client.lastCall.sequence);
    this.sent.set(id, { id, low, high, payload });
    const destinations = this.expected.map((_, g) => g).filter((g) => contains(low, high, g));
    for (const group of destinations) this.expected[group]++;
    this.history.add({ event: 'multicast', id, client: `c${client.client}`, destinations });
    return true;
  }

  private delivered(group: number, member: number, message: Delivery): Uint8Array {
    const id = nameOf(message.client, message.sequence);
    const sent = this.sent.get(id);
    const isSame =
      sent?.low === message.destinationsLow &&
      sent.high === message.destinationsHigh &&
      Buffer.compare(sent.payload, message.payload) === 0;
    if (!isSame)
      throw new Error(`${group}/${member} delivered ${id} with other contents than were sent`);
    this.history.add({ event: 'deliver', id, group, replica: `${group}/${member}` });
    return new Uint8Array(Int32Array.of(group, message.sequence).buffer);
  }

  private isDone(): boolean {
    if (this.remaining > 0 || this.clients.some((client) => client.outstanding > 0)) return false;
    return this.replicas.every((replica, participant) => {
      const group = Math.floor(participant / this.plan.sizes.replicas);
      return ((replica.delivered - this.plan.sizes.firstIndex - this.expected[group]) | 0) === 0;
    });
  }

  private describe(): string {
    const counts = this.replicas.map((replica) => replica.delivered - this.plan.sizes.firstIndex);
    return `${this.remaining} to send, expected ${this.expected.join(' ')}, delivered ${counts.join(' ')}, plan ${JSON.stringify(this.plan)}`;
  }
}

function nameOf(client: number, sequence: number): string {
  return `c${client}:${sequence >>> 0}`;
}
