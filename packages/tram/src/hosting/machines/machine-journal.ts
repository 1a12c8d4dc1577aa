/**
 * The journal of a host on its machine. While the replicas of the host do not run, it answers what a recovery asks of it, and
 * opens eras: it fetches what it lacks from other hosts, and starts the replicas with that. They run once the era is open.
 */
import { journalFolder, type MachinesConfig } from '../../config/config.js';
import { groupsOn, requireCluster, shapeOf } from '../../journal/cluster-file.js';
import { FileDisk } from '../../journal/disk.js';
import { type EraPlan, NO_ERA, type Opening } from '../../journal/recovery-asks.js';
import { RecoveryHost } from '../../journal/recovery-host.js';
import type { GroupSequence, JournalEntry } from '../../journal/sequence.js';
import type { ClusterShape } from '../../journal/shape.js';
import { lackedFrom } from '../../journal/start.js';
import type { Network } from '../../memory/machines/network.js';
import { nowUs } from '../clock.js';
import type { ClusterContext } from '../cluster-context.js';
import type { Host } from '../host.js';
import { startOfEraAgain, startOfPlan } from '../journal-start.js';
import { journaledClusterOf, requireWritable } from '../local-recovery.js';
import type { JournalStart } from '../own-journal.js';
import { fetchSequence } from './fetched-sequence.js';
import type { Log } from './machine.js';
import { Recovery } from './recovery.js';
import type { Era } from './standing.js';

/** While replicas begin, other hosts hear from this one after so many entries. */
const ENTRIES_PER_POLL = 256;

export class MachineJournal {
  private readonly shape: ClusterShape;
  private readonly disk: RecoveryHost;
  private recovery: Recovery | undefined;
  /** Its replicas have begun with what opens an era, and do not run yet. */
  private opened: Host | undefined;

  /**
   * @param startHost  starts the replicas, in an era that is not open yet
   * @throws TRAM_SYSTEM, TRAM_JOURNAL_MISMATCH, TRAM_CORRUPT
   */
  constructor(
    private readonly context: ClusterContext,
    private readonly config: MachinesConfig,
    private readonly host: number,
    private readonly log: Log,
    private readonly startHost: (start: () => JournalStart) => Promise<Host>,
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
    const { sequences } = this.disk.answer({ what: 'survey', host })!;
    this.recovery = new Recovery({
      words: context.arena.words,
      map: context.map,
      host,
      links: this.network.links,
      shape,
      journaled: sequences.map(({ group }) => group),
      answer: (ask) => (ask.what === 'open' ? this.open(ask.plan) : this.disk.answer(ask)),
      acceptsLoss: () => this.disk.acceptsLoss,
      log,
      nowUs,
    });
    return this.recovery;
  }

  /** The host that was started to open this era; undefined if there is none. */
  takeOpened(): Host | undefined {
    const { opened } = this;
    this.opened = undefined;
    return opened;
  }

  /** What the journal has of an era that others run. */
  startWithin({ era, clusterId }: Era): JournalStart {
    return this.keepingConnected(startOfEraAgain(this.config, this.host, era, clusterId));
  }

  /** Ends the host that was started to open an era, if it does not run yet. */
  async discardOpened(): Promise<void> {
    const opened = this.takeOpened();
    opened?.stop();
    await opened?.run();
  }

  private get network(): Network {
    return this.context.network!;
  }

  private async open(plan: EraPlan): Promise<Opening | undefined> {
    const sources = await this.fetchFor(plan);
    if (sources === undefined) return undefined;
    await this.discardOpened();
    const sequenceOf = (_: number, __: number, group: number): GroupSequence => sources.get(group)!;
    const start = (): JournalStart => startOfPlan(this.config, this.host, plan, sequenceOf);
    this.opened = await this.startHost(() => this.keepingConnected(start()));
    return { groups: plan.groups.map(({ group }) => group), lastSession: 0 };
  }

  /** By group, what the host of the plan has, as far as this host lacks it; undefined if one of them can't be had. */
  private async fetchFor({
    groups,
  }: EraPlan): Promise<ReadonlyMap<number, GroupSequence> | undefined> {
    const sources = new Map<number, GroupSequence>();
    for (const plan of groups) {
      if (plan.fromEra === NO_ERA) continue;
      const from = lackedFrom(plan, this.disk.sequence(plan.fromEra, plan.group));
      if (from === plan.keepBelow) continue;
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
    return {
      ...start,
      startOf: (group) => {
        const given = start.startOf(group);
        return given && { ...given, entries: interrupted(given.entries, poll) };
      },
    };
  }
}

/** Calls `poll` between entries, every now and then. */
function* interrupted(entries: Iterable<JournalEntry>, poll: () => void): Iterable<JournalEntry> {
  let count = 0;
  for (const entry of entries) {
    if (++count % ENTRIES_PER_POLL === 0) poll();
    yield entry;
  }
}
