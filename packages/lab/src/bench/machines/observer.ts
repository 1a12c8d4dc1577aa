/**
 * Observes the replicas of a cluster across machines from a process that is none of its hosts, and asks them to lead. It
 * reads their statistics (`hosting/statistics.ts`) remotely, so it sees a change within a round trip. Used by
 * `leader-changes.ts` and `cluster.ts`.
 */
import { TramError } from 'tram-multicast/internal/errors.js';
import { nowUs } from 'tram-multicast/internal/hosting/clock.js';
import type { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import type { ClusterFile } from 'tram-multicast/internal/hosting/machines/cluster-file.js';
import { attachRemotely } from 'tram-multicast/internal/hosting/machines/remote-attachment.js';
import { ROLES, STATISTIC } from 'tram-multicast/internal/hosting/statistics.js';
import { PARTICIPANT } from 'tram-multicast/internal/memory/arena.js';
import type { ParticipantId } from 'tram-multicast/internal/memory/contract.js';
import { CALLER } from 'tram-multicast/internal/memory/machines/handshake.js';
import type { Network } from 'tram-multicast/internal/memory/machines/network.js';
import { clockMs } from '../load/changes.js';
import type { Span } from '../load/span-delays.js';

const CONNECT_MS = 1000;
const LEAD_MS = 10_000;
/** A candidate may lose against another one: the observer asks again. */
const ASK_AGAIN_MS = 500;
const LOOK_US = 200;
const LEADER = ROLES.indexOf('leader');

export class Observer {
  private readonly words: Int32Array;

  private constructor(
    private readonly context: ClusterContext,
    private readonly network: Network,
    readonly close: () => void,
  ) {
    this.words = context.arena.words;
  }

  /** @param address  of this machine */
  static open({ config, credentials }: ClusterFile, address: string): Observer {
    const attachment = attachRemotely(config, credentials, address, CALLER.observer);
    const { context, network } = attachment;
    return new Observer(context, network, () => attachment.close());
  }

  /** Waits until all hosts are connected, or for a limited time. */
  private async connect(): Promise<void> {
    const limitMs = clockMs() + CONNECT_MS;
    while (this.network.missingHosts().length > 0 && clockMs() < limitMs) await this.turn();
  }

  /** By group, the member that leads, if any. */
  async leaders(): Promise<(number | undefined)[]> {
    const { groups, replicas } = this.context.layout.sizes;
    const members = Array.from({ length: replicas }, (_, member) => member);
    await this.connect();
    for (let participant = 0; participant < groups * replicas; participant++)
      this.look(participant);
    await this.settle();
    return Array.from({ length: groups }, (_, group) =>
      members.find((member) => this.noted(this.participantOf(group, member), 'role') === LEADER),
    );
  }

  /** Makes the next reachable member lead a group. @returns the time from the request until it leads */
  async change(group: number): Promise<Span> {
    const { layout, map } = this.context;
    const { replicas } = layout.sizes;
    const leader = (await this.leaders())[group] ?? 0;
    const next = Array.from({ length: replicas - 1 }, (_, i) =>
      this.participantOf(group, (leader + 1 + i) % replicas),
    ).find((participant) => this.network.isConnected(map.hostOf(participant)));
    if (next === undefined) {
      throw new TramError('TRAM_UNREACHABLE', `no other member of group ${group} can be reached`);
    }
    return this.lead(next);
  }

  private async lead(participant: ParticipantId): Promise<Span> {
    const timesLed = this.noted(participant, 'timesLed');
    const fromMs = clockMs();
    let askedMs = Number.NEGATIVE_INFINITY;
    for (;;) {
      if (clockMs() - askedMs > ASK_AGAIN_MS) {
        askedMs = clockMs();
        this.ask(participant);
      }
      this.look(participant);
      await this.settle();
      const untilMs = clockMs();
      if (this.noted(participant, 'timesLed') !== timesLed) return { fromMs, untilMs };
      if (untilMs - fromMs > LEAD_MS) {
        const name = this.context.nameOf(participant);
        throw new TramError('TRAM_TIMEOUT', `${name} does not lead after ${LEAD_MS} ms`);
      }
    }
  }

  /** Asks one member of each group to lead it. @param members  by group */
  async askToLead(members: readonly number[]): Promise<void> {
    for (const [group, member] of members.entries()) this.ask(this.participantOf(group, member));
    await this.turn();
  }

  private ask(participant: ParticipantId): void {
    const { map } = this.context;
    const at = map.participant(participant) + PARTICIPANT.campaignRequests;
    const link = this.network.linkOf[participant]!;
    link.writeWords(at, Int32Array.of(this.words[at] + 1));
    link.wake(participant, true);
  }

  /** Starts to copy the statistics of a replica; they are complete after `settle`. */
  private look(participant: ParticipantId): void {
    const { map } = this.context;
    const link = this.network.linkOf[participant]!;
    const copy = (at: number, count: number): void => link.readWords(at, this.words, at, count);
    copy(map.participant(participant), PARTICIPANT.words);
    copy(map.statisticsOf(participant), STATISTIC.words);
  }

  private noted(participant: ParticipantId, what: 'role' | 'timesLed'): number {
    return this.words[this.context.map.statisticsOf(participant) + STATISTIC[what]];
  }

  private participantOf(group: number, member: number): ParticipantId {
    return this.context.layout.replicaParticipant(group, member);
  }

  private async settle(): Promise<void> {
    const limitMs = clockMs() + CONNECT_MS;
    do {
      await this.turn();
    } while (!this.network.isSettled && clockMs() < limitMs);
  }

  private async turn(): Promise<void> {
    const { network } = this;
    network.flush(nowUs(), 0);
    network.poll(nowUs());
    network.wait(LOOK_US);
    await new Promise((resolve) => setImmediate(resolve));
    network.poll(nowUs());
  }
}
