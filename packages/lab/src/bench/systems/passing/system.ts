/**
 * The message-passing systems (Paper §8.6) as a `System`: one process for each group and one for all clients, with TCP on the
 * loopback interface between them. Groups are not replicated, as in the paper.
 */
import type { TraceEvent } from 'tram-multicast/internal/check/events.js';
import { contains, Overlay, parseTree } from 'tram-multicast/internal/protocol/overlay.js';
import { ForkedProcess } from '../../load/forked.js';
import type { Load, Measurement, RunningSystem, Setup, System } from '../system.js';
import type { ClientRecord, GroupJob, GroupRecord, PassingJob } from './job.js';

const GROUP = new URL('./group.js', import.meta.url);
const CLIENT = new URL('./client.js', import.meta.url);

/** Time limit for start, connecting, and the transfer of a history. */
const STEP_LIMIT_MS = 20_000;

export const SKEEN: System = {
  name: 'Skeen',
  start: (setup) => startSkeen(setup, false),
};

/** @param tree  as for `parseTree` */
export function byzcastOn(tree: string): System {
  return { name: 'ByzCast', start: (setup) => startByzcast(setup, tree, false) };
}

/** @param records  whether to record the history, for `history()` */
export function startSkeen(setup: Setup, records: boolean): Promise<PassingCluster> {
  return PassingCluster.start('Skeen', setup, { records });
}

export function startByzcast(
  setup: Setup,
  tree: string,
  records: boolean,
): Promise<PassingCluster> {
  const { parents } = new Overlay(parseTree(tree, setup.groups));
  return PassingCluster.start('ByzCast', setup, { parents, records });
}

export class PassingCluster implements RunningSystem {
  /** Unanswered messages of the last measurement. */
  private unanswered = 0;

  private constructor(
    private readonly name: string,
    private readonly setup: Setup,
    private readonly job: PassingJob,
    private readonly groups: readonly ForkedProcess[],
    private readonly clients: ForkedProcess,
  ) {}

  static async start(
    name: string,
    setup: Setup,
    options: Omit<PassingJob, 'sizes'>,
  ): Promise<PassingCluster> {
    if (setup.replicas !== 1) {
      throw new RangeError(`${name} is not replicated: replicas must be 1, not ${setup.replicas}`);
    }
    const sizes = {
      groups: setup.groups,
      clients: setup.clientsMax,
      slots: setup.outstandingMax,
    };
    const groups = Array.from(
      { length: setup.groups },
      (_, group) => new ForkedProcess(`group ${group} of ${name}`, GROUP),
    );
    const clients = new ForkedProcess(`the clients of ${name}`, CLIENT);
    const cluster = new PassingCluster(name, setup, { ...options, sizes }, groups, clients);
    try {
      await cluster.connect();
    } catch (error) {
      await cluster.close();
      throw error;
    }
    return cluster;
  }

  /** The processes of the groups, then that of the clients. */
  get pids(): number[] {
    return this.processes.map(({ pid }) => pid);
  }

  async measure(load: Load): Promise<Measurement> {
    this.check(load);
    const limitMs = (load.warmUpSeconds + load.seconds) * 1000 + STEP_LIMIT_MS;
    const measuring = this.clients.ask<Measurement>('measure', load, limitMs);
    const measurement = await this.unlessOneDies(measuring);
    this.unanswered = measurement.unanswered;
    return measurement;
  }

  /** The history so far, for `check/`. Must not be called during a measurement. */
  async history(): Promise<TraceEvent[]> {
    const { parents, sizes, records } = this.job;
    if (!records) throw new Error(`this ${this.name} was started without recording`);
    const sent = await this.clients.ask<ClientRecord>('record', undefined, STEP_LIMIT_MS);
    const done = await Promise.all(
      this.groups.map((group) => group.ask<GroupRecord>('record', undefined, STEP_LIMIT_MS)),
    );
    const members = Array.from({ length: sizes.groups }, (_, g) => [g, [replicaOf(g)]]);
    return [
      { event: 'groups', groups: Object.fromEntries(members), ...(parents && { parents }) },
      ...multicastsOf(sent, sizes.groups),
      ...done.flatMap((record, group) => [...eventsOf(record, group)]),
      { event: 'end', quiescent: this.unanswered === 0 },
    ];
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((process) => process.end()));
  }

  private get processes(): readonly ForkedProcess[] {
    return [...this.groups, this.clients];
  }

  /** First all groups listen, then all connect. Afterwards every pair that needs it is connected. */
  private async connect(): Promise<void> {
    const { job, groups, clients } = this;
    const listening = groups.map((process, group) =>
      process.ask<number>('listen', { ...job, group } satisfies GroupJob, STEP_LIMIT_MS),
    );
    const ports = await this.unlessOneDies(Promise.all(listening));
    const directory = { ports, pids: groups.map(({ pid }) => pid) };
    const connecting = groups.map((process) => process.ask('connect', directory, STEP_LIMIT_MS));
    await this.unlessOneDies(Promise.all(connecting));
    await this.unlessOneDies(clients.ask('connect', { job, groups: directory }, STEP_LIMIT_MS));
  }

  private unlessOneDies<Result>(result: Promise<Result>): Promise<Result> {
    return Promise.race([result, ...this.processes.map(({ death }) => death)]);
  }

  private check(load: Load): void {
    const { clientsMax, outstandingMax, payloadBytesMax } = this.setup;
    const limits: [string, number, number][] = [
      ['clients', load.clients, clientsMax],
      ['outstanding', load.outstanding, outstandingMax],
      ['payloadBytes', load.payloadBytes, payloadBytesMax],
    ];
    for (const [what, value, most] of limits) {
      if (value > most)
        throw new RangeError(`${what} is ${value}, but was set up for ${most} at most`);
    }
  }
}

function* multicastsOf(sent: ClientRecord, groups: number): Iterable<TraceEvent> {
  const all = Array.from({ length: groups }, (_, group) => group);
  for (let i = 0; i < sent.length; i += 4) {
    const [client, number, low, high] = sent.slice(i, i + 4) as [number, number, number, number];
    const destinations = all.filter((group) => contains(low, high, group));
    yield { event: 'multicast', id: idOf(client, number), client: `c${client}`, destinations };
  }
}

function* eventsOf({ delivered, relayed }: GroupRecord, group: number): Iterable<TraceEvent> {
  for (let i = 0; i < delivered.length; i += 2) {
    const id = idOf(delivered[i], delivered[i + 1]);
    yield { event: 'deliver', id, group, replica: replicaOf(group) };
  }
  for (let i = 0; i < relayed.length; i += 2) {
    yield { event: 'touch', id: idOf(relayed[i], relayed[i + 1]), group };
  }
}

function idOf(client: number, number: number): string {
  return `c${client}-${number}`;
}

function replicaOf(group: number): string {
  return `g${group}/0`;
}
