/**
 * The journal of a host on its machine. While the replicas of the host do not run, it answers what a recovery asks of it, and
 * opens eras: it fetches what it lacks from other hosts, and starts the replicas with that. They run once the era is open.
 */
import { journalFolder, type MachinesConfig } from '../../config/config.js';
import { groupsOn, requireCluster, shapeOf } from '../../journal/cluster-file.js';
import { FileDisk } from '../../journal/disk.js';
import { type EraPlan, type GroupPlan, NO_ERA, type Opening } from '../../journal/recovery-asks.js';
import { RecoveryHost } from '../../journal/recovery-host.js';
import type { GroupSequence } from '../../journal/sequence.js';
import { type ClusterShape, membersOn, quorumOf } from '../../journal/shape.js';
import { lackedFrom } from '../../journal/start.js';
import { HOST, STAGE } from '../../memory/arena.js';
import type { Network } from '../../memory/machines/network.js';
import { nowUs } from '../clock.js';
import type { ClusterContext } from '../cluster-context.js';
import type { Host } from '../host.js';
import { startOfEraAgain, startOfPlan, told } from '../journal-start.js';
import { journaledClusterOf, requireWritable } from '../local-recovery.js';
import type { JournalStart } from '../own-journal.js';
import { fetchSequence } from './fetched-sequence.js';
import type { Log } from './machine.js';
import { Recovery } from './recovery.js';
import { type Era, publishStanding } from './standing.js';

/** While replicas begin, other hosts hear from this one after so many entries. */
const ENTRIES_PER_POLL = 256;
/** How often a host that runs tells what it knows, and looks whether its memory is still of use. */
const FOLLOW_US = 100_000;
/** How long members that are connected may fail to be a quorum: some of them may be recovering. */
const STUCK_US = 60_000_000;

/** Its replicas have begun with what opens an era. */
export interface OpenedHost {
  readonly host: Host;
  /** The highest session in what they have replayed. */
  readonly lastSession: number;
}

export class MachineJournal {
  private readonly shape: ClusterShape;
  private readonly disk: RecoveryHost;
  private recovery: Recovery | undefined;
  /** Its replicas have begun with what opens this era, and do not run yet. */
  private opened: { readonly host: Host; readonly era: number } | undefined;
  /** Eras are opened one after the other. */
  private opening: Promise<unknown> = Promise.resolve();
  private followedUs = Number.NEGATIVE_INFINITY;
  /** Since when it is stuck; undefined if it is not. */
  private stuckUs: number | undefined;

  /**
   * @param openHost  starts the replicas, in an era that is not open yet
   * @throws TRAM_SYSTEM, TRAM_JOURNAL_MISMATCH, TRAM_CORRUPT
   */
  constructor(
    private readonly context: ClusterContext,
    private readonly config: MachinesConfig,
    private readonly host: number,
    private readonly log: Log,
    private readonly openHost: (start: () => JournalStart) => Promise<OpenedHost>,
  ) {
    const folder = journalFolder(config, host)!;
    const cluster = journaledClusterOf(config);
    requireWritable(folder);
    const disk = new FileDisk(folder);
    requireCluster(disk, cluster, folder);
    this.shape = shapeOf(cluster);
    this.disk = new RecoveryHost(disk, host, groupsOn(cluster, host));
  }

  /** Begins to answer other hosts, and to look for an era. */
  findEra(): Recovery {
    const { context, host, shape, log } = this;
    const { sequences, promised } = this.disk.answer({ what: 'survey', host })!;
    this.recovery = new Recovery({
      words: context.arena.words,
      map: context.map,
      host,
      links: this.network.links,
      shape,
      promised,
      journaled: sequences.map(({ group }) => group),
      answer: (ask) => (ask.what === 'open' ? this.open(ask.plan) : this.disk.answer(ask)),
      acceptsLoss: () => this.disk.acceptsLoss,
      log,
      nowUs,
    });
    return this.recovery;
  }

  /** The host that was started to open this era; undefined if there is none. One that was started for another era ends. */
  async takeOpened(era: number | undefined): Promise<Host | undefined> {
    await this.opening;
    if (this.opened?.era !== era) await this.discardOpened();
    const host = this.opened?.host;
    this.opened = undefined;
    return host;
  }

  /** What the journal has of an era that others run. */
  startWithin({ era, clusterId }: Era): JournalStart {
    return this.keepingConnected(startOfEraAgain(this.config, this.host, era, clusterId));
  }

  private async discardOpened(): Promise<void> {
    const host = this.opened?.host;
    this.opened = undefined;
    host?.stop();
    await host?.run();
  }

  /**
   * Of a host that runs: tells others what it knows.
   * @returns why its memory is of no use any more, if so
   */
  follow(running: Host, now: number): string | undefined {
    if (now - this.followedUs < FOLLOW_US) return undefined;
    this.followedUs = now;
    const { words } = this.context.arena;
    const line = this.context.map.host(this.host);
    const { lostGroups, quorateGroups } = running;
    publishStanding(words, line, STAGE.running, quorateGroups);
    const { newestEra } = this.network;
    if (newestEra > words[line + HOST.era]) {
      return `the cluster was recovered without this host, into era ${newestEra}`;
    }
    if (lostGroups.length > 0)
      return `the members of ${namesOf(lostGroups)} that run lack the state`;
    const stuck = this.stuckGroups(quorateGroups);
    this.stuckUs = stuck.length === 0 ? undefined : (this.stuckUs ?? now);
    if (this.stuckUs === undefined || now - this.stuckUs < STUCK_US) return undefined;
    return `enough members of ${namesOf(stuck)} are connected, and can't go on`;
  }

  /** Groups of this host that have no quorum, although enough of their members are connected. */
  private stuckGroups(quorate: readonly number[]): number[] {
    const { shape, host, network } = this;
    const isHere = (other: number): boolean => other === host || network.isConnected(other);
    return shape.overlay.parents.flatMap((_, group) => {
      const isOwn = shape.hostsOf(group).includes(host);
      if (!isOwn || quorate.includes(group)) return [];
      return membersOn(shape, group, isHere) >= quorumOf(shape) ? [group] : [];
    });
  }

  private get network(): Network {
    return this.context.network!;
  }

  private open(plan: EraPlan): Promise<Opening | undefined> {
    const opening = this.opening.then(() => this.openNow(plan));
    this.opening = opening.catch(() => undefined);
    return opening;
  }

  private async openNow(plan: EraPlan): Promise<Opening | undefined> {
    const sources = await this.fetchFor(plan);
    if (sources === undefined) return undefined;
    await this.discardOpened();
    const sequenceOf = ({ group }: GroupPlan): GroupSequence => sources.get(group)!;
    const start = (): JournalStart => startOfPlan(this.config, this.host, plan, sequenceOf);
    const { host, lastSession } = await this.openHost(() => this.keepingConnected(start()));
    // The host keeps the function with which it has begun.
    sources.clear();
    this.opened = { host, era: plan.era };
    return { groups: plan.groups.map(({ group }) => group), lastSession };
  }

  /** By group, what the host of the plan has, as far as this host lacks it; undefined if one of them can't be had. */
  private async fetchFor({ groups }: EraPlan): Promise<Map<number, GroupSequence> | undefined> {
    const sources = new Map<number, GroupSequence>();
    for (const plan of groups) {
      if (plan.fromEra === NO_ERA) continue;
      const from = lackedFrom(plan, this.disk.sequences(plan.fromEra, plan.group));
      if (from === plan.keepBelow) continue;
      const source = this.shape.nameOf(plan.source);
      this.log('info', `fetches what its journal lacks of g${plan.group} from ${source}`);
      const fetched = await fetchSequence(plan, from, (ask) => this.recovery!.ask(ask));
      if (fetched === undefined) return undefined;
      sources.set(plan.group, fetched);
    }
    return sources;
  }

  /** While replicas deliver what a journal has, which may take long, the other hosts are to hear from this one. */
  private keepingConnected(start: JournalStart): JournalStart {
    const poll = (): void => {
      this.network.poll(nowUs());
      this.network.flush(nowUs(), 0);
    };
    let polledAt = 0;
    const onReplayed = (replayed: number): void => {
      // While there are none yet, each call comes after a snapshot, which may have taken long.
      if (replayed > 0 && replayed - polledAt < ENTRIES_PER_POLL) return;
      polledAt = replayed;
      poll();
    };
    return told({ ...start, onReplayed }, (report) => {
      if (report.what === 'progress') this.log('info', report.text);
    });
  }
}

function namesOf(groups: readonly number[]): string {
  return groups.map((group) => `g${group}`).join(', ');
}
