/**
 * The hosts of a simulated cluster with durability, through all its eras: their disks and journals, power cuts, and
 * recoveries. A recovery begins when a group has lost more than f members with their memory, and now and then without
 * need. Called by `world.ts`, which is one era, and by `simulate.ts`, which goes on to the next one.
 *
 * Invariant: at most f members of a group are without a journal: on a disk that was lost or has rotted, or on a host that
 * never comes back.
 */

import type { Recovered } from 'tram-multicast/internal/journal/recovery.js';
import type { Ask } from 'tram-multicast/internal/journal/recovery-asks.js';
import type { ClusterShape } from 'tram-multicast/internal/journal/shape.js';
import type { GroupJournal } from 'tram-multicast/internal/protocol/edges.js';
import type { Past } from 'tram-multicast/internal/protocol/member.js';
import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { BUSY, Coordinator, type Hosts } from './coordinator.js';
import { DurableHost } from './durable-host.js';
import { Eras } from './eras.js';
import type { ReplicaHost } from './hosts.js';
import { type Ledger, SimulationFailure } from './ledger.js';
import { MarkAmbush } from './mark-ambush.js';
import type { Fault, Plan, PlannedIncident } from './plan.js';
import type { Random } from './random.js';
import { DiskFailure, PowerCut } from './simulated-disk.js';
import { Steps } from './steps.js';
import type { Tally } from './tally.js';
import type { World } from './world.js';

/** A look whether a recovery is needed, every so many heartbeats. */
const CHECK_HEARTBEATS = 3;
/** A disk that is slow takes so many times as long. */
const SLOWNESS = 50;
/** In so many answers of a host that recovers, its power is cut, after at most so many changes of its disk. */
const CUTS_ANSWER_PERCENT = 5;
const CHANGES_PER_ANSWER = 12;
/** The share of hosts that do not come back after a power cut, if the others suffice. */
const GONE_PERCENT = 5;

/** A host that comes back after so long does not take part in a recovery that begins at once. */
const LATE_US = 20_000;

interface Later {
  readonly atUs: number;
  readonly act: () => void;
}

export class Power implements Hosts {
  readonly shape: ClusterShape;
  readonly eras: Eras;
  private readonly hosts: readonly DurableHost[];
  /** When each journal takes its next step. */
  private readonly journals: Steps;
  private agenda: Later[] = [];
  private readonly coordinators = new Set<Coordinator>();
  /** The era that is open and has not begun. */
  private recovered: Recovered | undefined;
  private world: World | undefined;
  private isHealed = false;
  private nextCheckUs = 0;
  private lastRefusal = '';
  private ambush: MarkAmbush | undefined;

  constructor(
    private readonly plan: Plan,
    ledger: Ledger,
    private readonly random: Random,
    private readonly tally: Tally,
  ) {
    const { sizes, parents } = plan;
    const { hostOf } = plan.durability!;
    const hosts = Math.max(...hostOf) + 1;
    this.eras = new Eras(plan, ledger);
    this.shape = {
      overlay: new Overlay(parents),
      replicas: sizes.replicas,
      hosts,
      hostsOf: (group) => hostOf.slice(group * sizes.replicas, (group + 1) * sizes.replicas),
      nameOf: (host) => `host ${host}`,
      firstIndex: sizes.firstIndex,
    };
    this.hosts = Array.from(
      { length: hosts },
      (_, host) => new DurableHost(host, plan, this.shape, random, this.eras),
    );
    this.journals = new Steps(hosts);
  }

  get nowUs(): number {
    return this.world?.nowUs ?? 0;
  }

  // --- eras ----------------------------------------------------------------------------------

  /** The cluster starts for the first time, before anything else happens. */
  private start(): void {
    for (const host of this.hosts) host.boot();
    this.recover();
    while (this.recovered === undefined) {
      const [next] = this.agenda;
      if (next === undefined) throw new SimulationFailure('liveness', this.lastRefusal);
      this.runLater(next);
    }
  }

  /** Is another era open than that of the world, and is no participant in the middle of a step? */
  get hasOpened(): boolean {
    return this.recovered !== undefined && this.world?.interruptions.isInterrupting !== true;
  }

  /** The era that was opened last begins with this world. @returns the last session that is not to be used any more */
  begin(world: World): number {
    if (this.recovered === undefined) this.start();
    const { era, firstSession } = this.recovered!;
    this.recovered = undefined;
    this.eras.open(era);
    this.world = world;
    this.ambush = undefined;
    for (const host of this.hosts) {
      this.journals.cancel(host.index);
      host.leaveEra();
    }
    for (const host of this.hosts) {
      if (host.isUp && host.promised <= era && host.hasOpened(era)) this.run(host, 'none');
    }
    for (const host of this.hosts) this.rejoin(host);
    return firstSession - 1;
  }

  /** The part of its host's journal that belongs to the group of this replica. */
  journalOf(participant: number): GroupJournal | undefined {
    const group = Math.floor(participant / this.plan.sizes.replicas);
    return this.hostOf(participant).journalOf(group);
  }

  /** The replicas on the host of this one, itself included; or the client itself. */
  sharingHost(participant: number): readonly number[] {
    const host = this.plan.durability!.hostOf[participant];
    return host === undefined ? [participant] : this.hosts[host].participants;
  }

  private run(host: DurableHost, past: Past): void {
    this.withDisk(host, () => {
      host.run(this.world!, this.eras.current, past);
      this.journals.schedule(host.index, this.nowUs + this.random.below(this.plan.stepUs));
    });
  }

  /** A host that is up takes part in the era of the world, unless it waits for a recovery. */
  private rejoin(host: DurableHost): void {
    if (this.recovered !== undefined || !host.isUp || host.isRunning) return;
    // It may withdraw its promise only if a quorum goes on without it.
    if (host.promised > this.eras.current && !this.isSpare(host)) return;
    if (!host.groups.every((group) => this.hasQuorum(group))) return;
    this.run(host, host.keepsMemory ? 'kept' : 'lost');
  }

  /** Has the group enough members that take part, or come back with their memory? */
  private hasQuorum(group: number): boolean {
    const members = this.world!.members(group).filter(
      (member) => !this.world!.isUnavailable(member) || this.hostOf(member.participant).keepsMemory,
    );
    return members.length > this.f;
  }

  /**
   * Do all its groups have a quorum without it? Otherwise its memory is of no use: what its replicas have delivered and
   * dropped from their logs may not have reached the disk, and nobody else need have it.
   */
  private isSpare(host: DurableHost): boolean {
    return host.groups.every((group) => {
      const others = this.world!.members(group).filter(
        (member) => this.hostOf(member.participant) !== host && !this.world!.isUnavailable(member),
      );
      return others.length > this.f;
    });
  }

  private hostOf(participant: number): DurableHost {
    return this.hosts[this.plan.durability!.hostOf[participant]];
  }

  private get f(): number {
    return (this.plan.sizes.replicas - 1) >> 1;
  }

  // --- time ----------------------------------------------------------------------------------

  nextUs(): number {
    let next = Math.min(this.journals.nextUs(), this.nextCheckUs);
    for (const { atUs } of this.agenda) next = Math.min(next, atUs);
    return next;
  }

  runNext(): void {
    const { nowUs } = this;
    const due = this.agenda.find(({ atUs }) => atUs <= nowUs);
    if (due !== undefined) this.runLater(due);
    else if (this.nextCheckUs <= nowUs) this.check();
    else this.stepJournal(this.hosts[this.journals.takeNext()]);
  }

  private runLater(due: Later): void {
    this.agenda = this.agenda.filter((other) => other !== due);
    due.act();
  }

  private afterUs(delayUs: number, act: () => void): void {
    this.agenda.push({ atUs: this.nowUs + delayUs, act });
  }

  private stepJournal(host: DurableHost): void {
    const takesUs = this.withDisk(host, () => host.stepJournal(this.nowUs));
    if (takesUs === undefined) return;
    this.journals.schedule(host.index, this.nowUs + takesUs);
    const { ambush } = this;
    if (ambush?.victim === host && ambush.isDue(this.nowUs)) this.cutAtMark(ambush);
  }

  /** A sync has failed. The host ends, and nobody knows what is on the disk. */
  private endByDisk(host: DurableHost): void {
    this.count('failed-sync');
    this.end(host, this.random.percent(50) && this.isSpare(host));
    // Otherwise its process starts again, and finds in the page cache what the disk may not have.
    if (this.random.percent(50)) host.disk.cutPower();
    this.bootAfter(host, this.random.below(1000));
  }

  private check(): void {
    this.nextCheckUs = this.nowUs + CHECK_HEARTBEATS * this.plan.timing.heartbeatUs;
    for (const host of this.hosts) this.rejoin(host);
    if (this.needsRecovery && this.coordinators.size === 0) this.recover();
  }

  private get needsRecovery(): boolean {
    if (this.recovered !== undefined) return false;
    const { current } = this.eras;
    return (
      this.plan.parents.some((_, group) => !this.hasQuorum(group)) ||
      this.hosts.some(
        (host) => host.isUp && !host.isRunning && host.promised > current && !this.isSpare(host),
      )
    );
  }

  /** Does the cluster still have to recover, or a host to take part? */
  get isBusy(): boolean {
    return (
      this.needsRecovery ||
      this.coordinators.size > 0 ||
      this.hosts.some(({ isRunning, isGone }) => !isRunning && !isGone)
    );
  }

  /** End all faults. Hosts that are gone for good stay down. */
  heal(): void {
    this.isHealed = true;
    this.ambush = undefined;
    for (const host of this.hosts) {
      host.slowness = 1;
      host.disk.failAfter(Number.POSITIVE_INFINITY);
      if (!host.isUp && !host.isGone) this.boot(host);
    }
  }

  // --- recovery ------------------------------------------------------------------------------

  private recover(): void {
    const coordinator = new Coordinator(this);
    this.coordinators.add(coordinator);
    coordinator.begin();
    const { cutsRecoveryPercent, askUs } = this.plan.durability!;
    if (!this.mayCut || !this.random.percent(cutsRecoveryPercent)) return;
    this.afterUs(this.random.below(askUs * RECOVERY_ASKS), () => this.cutRecovery(coordinator));
  }

  /** While hosts recover, the power of some is cut. The coordinator may end too. */
  private cutRecovery(coordinator: Coordinator): void {
    if (!this.coordinators.has(coordinator) || this.isHealed) return;
    const { random } = this;
    this.count('cut-recovery');
    if (random.percent(50)) {
      coordinator.end();
      this.coordinators.delete(coordinator);
    }
    const percent = random.pick([0, 20, 50, 100]);
    const victims = this.hosts.filter(() => random.percent(percent));
    for (const host of victims) this.cut(host, random.below(2000));
  }

  /** Do this after a drawn time, as a part of a recovery. */
  later(act: () => void): void {
    const { askUs } = this.plan.durability!;
    const isLate = this.random.percent(5);
    this.afterUs(1 + this.random.below(askUs * (isLate ? 20 : 1)), act);
  }

  answer(ask: Ask): unknown {
    const host = this.hosts[ask.host];
    if (!host.isUp) return undefined;
    const stops = host.isRunning && ask.what === 'promise' && ask.era > host.promised;
    if (stops && !this.areBetweenSteps(host)) return BUSY;
    if (this.mayCut && this.random.percent(CUTS_ANSWER_PERCENT)) {
      host.disk.throwAfter(this.random.below(CHANGES_PER_ANSWER));
    }
    return this.withDisk(host, () => {
      if (stops) {
        host.flush();
        this.stop(host);
      }
      if (ask.what === 'open' && host.givesMark(ask.plan)) this.count('cut-at-mark');
      return host.answer(ask, (other) => this.hosts[other]);
    });
  }

  /** While a host uses its disk, a sync may fail, or the power may be cut. Then it ends, and there is no result. */
  private withDisk<Result>(host: DurableHost, use: () => Result): Result | undefined {
    try {
      const result = use();
      host.disk.throwAfter(Number.POSITIVE_INFINITY);
      return result;
    } catch (error) {
      if (error instanceof PowerCut) {
        this.count('cut-recovery');
        this.cut(host, this.random.below(2000));
      } else if (error instanceof DiskFailure) {
        this.endByDisk(host);
      } else {
        throw error;
      }
      return undefined;
    }
  }

  /** May the power be cut while hosts recover? */
  private get mayCut(): boolean {
    const { cutsRecoveryPercent } = this.plan.durability!;
    if (this.world === undefined || this.isHealed) return false;
    return cutsRecoveryPercent > 0 && this.allows('cut-recovery');
  }

  private areBetweenSteps(host: DurableHost): boolean {
    const { replicas, interruptions } = this.world!;
    return host.participants.every((replica) => interruptions.isBetweenSteps(replicas[replica]));
  }

  ended(coordinator: Coordinator, outcome: Recovered | Error): void {
    this.coordinators.delete(coordinator);
    if (outcome instanceof Error) {
      this.lastRefusal = outcome.message;
    } else if (outcome.era > Math.max(this.eras.current, this.recovered?.era ?? 0)) {
      // Otherwise a recovery that has begun after it is done already.
      this.recovered = outcome;
    }
  }

  // --- faults --------------------------------------------------------------------------------

  /** @param replica  of the host that is hit first */
  strike({ kind, durationUs, leavesMemory }: PlannedIncident, replica: ReplicaHost): void {
    const { random } = this;
    const host = this.hostOf(replica.participant);
    switch (kind) {
      case 'power-cut':
        this.count(kind);
        this.cut(host, durationUs);
        break;
      case 'some-power-cuts':
        this.count(kind);
        this.cut(host, random.below(durationUs));
        for (const other of this.hosts) {
          if (other !== host && random.percent(50)) this.cut(other, random.below(durationUs));
        }
        break;
      case 'blackout':
        this.count(kind);
        for (const each of this.hosts) this.cut(each, random.below(durationUs));
        break;
      case 'host-kill':
        if (!host.isUp) return;
        this.count(kind);
        this.end(host, leavesMemory && this.isSpare(host));
        this.bootAfter(host, durationUs);
        break;
      case 'lost-disk':
      case 'rotten-disk':
        if (!this.maySpare(host)) return;
        this.cut(host, durationUs);
        if (kind === 'lost-disk') host.disk.lose();
        else if (!host.rot()) return;
        this.count(kind);
        break;
      case 'new-disk':
        if (!host.isUp || !this.maySpare(host) || !this.isSpare(host)) return;
        this.count(kind);
        this.end(host, true);
        host.disk.lose();
        this.bootAfter(host, durationUs);
        break;
      case 'slow-disk':
        this.count(kind);
        host.slowness = SLOWNESS;
        this.afterUs(durationUs, () => {
          host.slowness = 1;
        });
        break;
      case 'failed-sync':
        host.disk.failAfter(random.below(6));
        break;
      case 'rival-recovery':
        this.count(kind);
        this.recover();
        break;
      case 'cut-at-mark':
        if (!this.maySpare(host)) return;
        this.cut(host, durationUs);
        this.ambush = new MarkAmbush(this.hosts, host, this.plan.parents, this.f);
        break;
      default:
        throw new Error(`${kind} is no fault of a host`);
    }
  }

  private cutAtMark(ambush: MarkAmbush): void {
    this.ambush = undefined;
    ambush.end();
    for (const host of this.hosts) {
      this.cut(host, ambush.late.includes(host) ? LATE_US : this.random.below(200));
    }
  }

  /** A host loses its memory and what was not synced. */
  private cut(host: DurableHost, durationUs: number): void {
    const isGone = this.random.percent(GONE_PERCENT) && this.maySpare(host);
    this.end(host, false);
    host.disk.cutPower();
    if (isGone) host.isGone = true;
    else this.bootAfter(host, durationUs);
  }

  /** Do the other hosts have enough journals of every group? */
  private maySpare(host: DurableHost): boolean {
    if (this.coordinators.size > 0 || this.recovered !== undefined) return false;
    return host.groups.every((group) => {
      const others = this.shape
        .hostsOf(group)
        .map((index) => this.hosts[index])
        .filter((other) => other !== host && !other.isGone && other.hasJournal(group));
      return others.length > this.f;
    });
  }

  private end(host: DurableHost, keepsMemory: boolean): void {
    const world = this.world!;
    for (const participant of host.participants) {
      const replica = world.replicas[participant];
      this.requireRecoverable(replica);
      if (replica.state === 'down') replica.leftMemory &&= keepsMemory;
      else if (keepsMemory) world.kill(replica);
      else world.crash(replica);
    }
    host.end(keepsMemory);
    this.journals.cancel(host.index);
  }

  /** What a leader knows to be recoverable must not be lost. */
  private requireRecoverable({ state, replica, group }: ReplicaHost): void {
    if (state === 'down' || replica.role !== 'leader') return;
    this.eras.requireBelow(group, replica.leader.recoverable.index);
  }

  /** A host that runs ends its replicas, because it has promised another era. */
  private stop(host: DurableHost): void {
    this.end(host, false);
    host.boot();
  }

  private bootAfter(host: DurableHost, delayUs: number): void {
    this.afterUs(delayUs, () => this.boot(host));
  }

  private boot(host: DurableHost): void {
    if (host.isUp || host.isGone) return;
    this.withDisk(host, () => host.boot());
    this.rejoin(host);
  }

  private allows(fault: Fault): boolean {
    return this.plan.faults.has(fault);
  }

  private count(fault: Fault): void {
    this.tally.fault(fault);
  }

  describe(): string[] {
    const hosts = this.hosts.map((host) => host.describe());
    return [`era ${this.eras.current}; ${this.lastRefusal}`, ...hosts];
  }
}

/** About so many asks follow each other in a recovery. */
const RECOVERY_ASKS = 12;
