/**
 * A host of a simulated cluster with durability: its disk, its journal while it runs replicas, and its part in recoveries.
 * All of them are production code: the ring, the writer and the reader of the journal, and what answers a coordinator.
 * Called by `power.ts`.
 */
import { TramError } from 'tram-multicast/internal/errors.js';
import { eraFolder } from 'tram-multicast/internal/journal/format.js';
import { HostJournal } from 'tram-multicast/internal/journal/host-journal.js';
import { joinEra } from 'tram-multicast/internal/journal/identity.js';
import { JournalReader, settle } from 'tram-multicast/internal/journal/reader.js';
import type {
  Ask,
  EraPlan,
  GroupPlan,
  Opening,
} from 'tram-multicast/internal/journal/recovery-asks.js';
import { RecoveryHost } from 'tram-multicast/internal/journal/recovery-host.js';
import { JournalRing } from 'tram-multicast/internal/journal/ring.js';
import { type CountedSequence, entriesOf } from 'tram-multicast/internal/journal/sequence.js';
import type { ClusterShape } from 'tram-multicast/internal/journal/shape.js';
import { writeOpening } from 'tram-multicast/internal/journal/snapshot-file.js';
import {
  type ReplicaStart,
  replayTogether,
  startOfEra,
  startWithinEra,
} from 'tram-multicast/internal/journal/start.js';
import { JournalWriter } from 'tram-multicast/internal/journal/writer.js';
import type { GroupJournal } from 'tram-multicast/internal/protocol/edges.js';
import { Layout } from 'tram-multicast/internal/protocol/layout.js';
import type { Past } from 'tram-multicast/internal/protocol/member.js';
import { CLUSTER_ID } from './coordinator.js';
import type { Eras } from './eras.js';
import { SimulationFailure } from './ledger.js';
import type { Plan } from './plan.js';
import type { Random } from './random.js';
import { type ReplayedGroup, replayGroups } from './replay.js';
import { mix } from './service.js';
import { SimulatedDisk } from './simulated-disk.js';
import type { World } from './world.js';

/** What runs while the host takes part in an era. */
interface Running {
  readonly era: number;
  readonly journal: HostJournal;
  readonly writer: JournalWriter;
}

export class DurableHost {
  readonly disk: SimulatedDisk;
  /** The replicas that it runs, and their groups. */
  readonly participants: readonly number[];
  readonly groups: readonly number[];
  isUp = false;
  /** It never comes back. */
  isGone = false;
  /** Its replicas are down, and their memory is still there. */
  keepsMemory = false;
  /** How many times longer than usual its syncs take. */
  slowness = 1;
  private running: Running | undefined;
  private recovery: RecoveryHost | undefined;
  private lastSyncUs = 0;

  constructor(
    readonly index: number,
    private readonly plan: Plan,
    private readonly shape: ClusterShape,
    private readonly random: Random,
    private readonly eras: Eras,
  ) {
    const { hostOf } = plan.durability!;
    const { replicas } = plan.sizes;
    this.disk = new SimulatedDisk(random);
    this.participants = hostOf.flatMap((host, replica) => (host === index ? [replica] : []));
    this.groups = [...new Set(this.participants.map((replica) => Math.floor(replica / replicas)))];
  }

  get isRunning(): boolean {
    return this.running !== undefined;
  }

  /** The era that it has promised; 0 if none. */
  get promised(): number {
    return this.recovery?.identity?.promisedEra ?? 0;
  }

  // --- up and down ---------------------------------------------------------------------------

  /** Its process starts, and runs no replicas yet. */
  boot(): void {
    this.isUp = true;
    settle(this.disk);
    this.readAll();
    this.recovery = new RecoveryHost(this.disk, this.index, this.groups);
  }

  end(keepsMemory: boolean): void {
    this.isUp = false;
    this.keepsMemory = keepsMemory && (this.isRunning || this.keepsMemory);
    this.running = undefined;
    this.recovery = undefined;
  }

  /** The era of the replicas that it ran is over. */
  leaveEra(): void {
    this.running = undefined;
    this.keepsMemory = false;
  }

  // --- an era --------------------------------------------------------------------------------

  /** Has it prepared this era, and marked it as open? */
  hasOpened(era: number): boolean {
    const reader = new JournalReader(this.disk);
    return (
      reader.eras.includes(era) &&
      reader.isOpened(era) &&
      this.groups.every((group) => reader.sequence(era, group) !== undefined)
    );
  }

  /** Run its replicas, from its journal as far as it has anything of the era. */
  run(world: World, era: number, past: Past): void {
    const { disk } = this;
    if (past !== 'none') joinEra(disk, this.index, era, CLUSTER_ID);
    const reader = new JournalReader(disk);
    const sequences = new Map(this.groups.map((group) => [group, reader.sequence(era, group)]));
    this.running = this.startJournal(era, sequences, reader);
    this.keepsMemory = false;
    const replicas = this.participants.map((participant) => world.replicas[participant]);
    for (const replica of replicas) world.startWithJournal(replica, past);
    const starts = [...sequences.values()].flatMap((one) => (one ? [startWithinEra(one)] : []));
    for (const _ of replayTogether(
      starts,
      replicas.map(({ replica }) => replica),
    ));
  }

  private startJournal(
    era: number,
    sequences: ReadonlyMap<number, CountedSequence | undefined>,
    reader: JournalReader,
  ): Running {
    const { plan, disk, index } = this;
    const { mode, snapshotBytes, segmentBytes, ringFactor } = plan.durability!;
    const starts = [...sequences].map(([group, has]) => ({ group, has }));
    const isEager = mode === 'always';
    const { groups } = plan.sizes;
    const layout = new Layout(plan.sizes);
    const { entryWordsMax } = layout;
    const ringWords = leastRingWords(layout) * ringFactor;
    const words = new Int32Array(JournalRing.wordsFor(groups, ringWords));
    const options = {
      clusterId: CLUSTER_ID,
      host: index,
      era,
      syncsEachBatch: isEager,
      segmentBytes,
      batchBytesMax: 4 * ringWords,
      onDurable: () => undefined,
    };
    const consumer = new JournalRing(words, groups, isEager);
    const writer = new JournalWriter(disk, consumer, options, starts, reader.segments(era));
    const producer = new JournalRing(words, groups, isEager);
    const journal = new HostJournal(
      producer,
      { isAwaited: isEager, snapshotBytes, recordWordsMax: entryWordsMax },
      starts,
    );
    return { era, journal, writer };
  }

  journalOf(group: number): GroupJournal | undefined {
    return this.running?.journal.group(group);
  }

  /** One step of the journal. @returns how long it takes @throws what the disk throws */
  stepJournal(nowUs: number): number {
    const { writer } = this.running!;
    const { syncUs, syncEveryUs } = this.plan.durability!;
    if (nowUs - this.lastSyncUs >= syncEveryUs) {
      this.lastSyncUs = nowUs;
      writer.wantSync();
    }
    const { syncs, writes } = this.disk;
    const isIdle = !writer.step();
    if (isIdle && this.random.percent(PREPARES_PERCENT)) writer.prepare();
    // A sync has an effect at once. So a part of the time that it takes comes before it, after the write.
    const parts = this.disk.syncs > syncs ? 2 : this.disk.writes > writes ? 1 : 0;
    const mostUs = (parts / 3) * syncUs[this.index] * this.slowness;
    return 1 + this.random.below(mostUs + this.plan.stepUs);
  }

  /** Make all that its replicas have handed over durable. @throws what the disk throws */
  flush(): void {
    const { writer } = this.running!;
    while (writer.step());
    writer.wantSync();
    while (writer.step());
  }

  // --- recovery ------------------------------------------------------------------------------

  /** @param hosts  all hosts, by number; what an era starts with may be on another one */
  answer(ask: Ask, hosts: (index: number) => DurableHost): unknown {
    return ask.what === 'open' ? this.open(ask.plan, hosts) : this.recovery!.answer(ask);
  }

  /** Does a group begin with a snapshot of this host that was taken at a mark, and does not count? */
  givesMark({ groups }: EraPlan): boolean {
    return groups.some(({ group, fromEra, source, keepFrom }) => {
      if (source !== this.index) return false;
      const found = this.recovery!.sequences(fromEra, group);
      return found.some(({ snapshotIndex, mark }) => snapshotIndex === keepFrom && mark > 0);
    });
  }

  /** Undefined if it has promised another era, or if a host whose journal it needs is down. */
  private open(
    { era, groups }: EraPlan,
    hosts: (index: number) => DurableHost,
  ): Opening | undefined {
    const { disk } = this;
    if (this.promised !== era) return undefined;
    disk.makeFolder(eraFolder(era));
    disk.syncFolder('');
    let prepared: ReplayedGroup[];
    try {
      const starts = groups.map((plan) => this.startOf(plan, hosts));
      const [{ fromEra }] = groups;
      const replayOf = (group: number) => this.eras.replay(era, fromEra, group, this.index);
      prepared = replayGroups(this.plan, starts, replayOf);
    } catch (error) {
      if (error instanceof SourceMissing) return undefined;
      throw error;
    }
    for (const { group, snapshot } of prepared) {
      const subject = { clusterId: CLUSTER_ID, era, group, index: this.shape.firstIndex };
      writeOpening(disk, subject, snapshot);
    }
    const lastSession = Math.max(...prepared.map((group) => group.lastSession));
    return { groups: groups.map(({ group }) => group), lastSession };
  }

  /** @throws SourceMissing */
  private startOf(plan: GroupPlan, hosts: (index: number) => DurableHost): ReplicaStart {
    const { group, fromEra, source, keepFrom } = plan;
    return startOfEra(plan, this.recovery!.sequences(fromEra, group), () => {
      const found = hosts(source)
        .recovery?.sequences(fromEra, group)
        .find(({ snapshotIndex }) => snapshotIndex === keepFrom);
      if (found === undefined) throw new SourceMissing();
      return found;
    });
  }

  // --- faults --------------------------------------------------------------------------------

  /** Does its disk have a journal of the group, apart from what is not synced? */
  hasJournal(group: number): boolean {
    const reader = new JournalReader(this.disk.synced);
    return reader.eras.some(
      (era) => era >= this.eras.current && reader.sequence(era, group) !== undefined,
    );
  }

  /**
   * Bytes of its disk change. Either the journal notices it, and then the disk is replaced by an empty one; or it reads as
   * before. False if there is nothing that could rot.
   */
  rot(): boolean {
    const before = this.readAll();
    const path = this.disk.rot();
    if (path === undefined) return false;
    try {
      const after = digestOfJournal(this.disk, this.index, this.groups);
      if (after !== before) {
        throw new SimulationFailure('integrity', `a changed byte in ${path} was not noticed`);
      }
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      this.disk.lose();
    }
    return true;
  }

  /** Read the whole journal, which must not be corrupt: nothing has rotted. */
  private readAll(): number {
    try {
      return digestOfJournal(this.disk, this.index, this.groups);
    } catch (error) {
      if (!isCorrupt(error)) throw error;
      throw new SimulationFailure(
        'recovery',
        `the journal of host ${this.index} is intact, and it says: ${(error as Error).message}`,
      );
    }
  }

  describe(): string {
    const state = this.isRunning
      ? `runs era ${this.running!.era}`
      : this.isUp
        ? 'is up'
        : 'is down';
    return `host ${this.index} ${state}, promised era ${this.promised}`;
  }
}

/** Room for what a replica hands over at a time: a stretch of entries, or a chunk of a snapshot, and a few records. */
function leastRingWords({ entryWordsMax, logWords, chunkWords, sizes }: Layout): number {
  const stretch = Math.min(logWords, Math.max(STRETCH_WORDS, entryWordsMax));
  const least = Math.max(stretch, chunkWords) + RECORD_WORDS * (8 + 4 * sizes.groups);
  // As in production, groups that need little room do not keep it from one that needs much.
  return 2 ** Math.ceil(Math.log2(4 * least));
}

/** As in delivery.ts. */
const STRETCH_WORDS = 2048;
/** At least the words of a record without its contents. */
const RECORD_WORDS = 8;

/** The share of idle steps in which a journal prepares spare files. */
const PREPARES_PERCENT = 10;

/** The host whose journal is needed is down. */
class SourceMissing extends Error {}

function isCorrupt(error: unknown): boolean {
  return error instanceof TramError && error.code === 'TRAM_CORRUPT';
}

/** A digest of everything that a reader finds. */
function digestOfJournal(disk: SimulatedDisk, host: number, groups: readonly number[]): number {
  const reader = new JournalReader(disk);
  let hash = mix(reader.identity?.promisedEra ?? 0, reader.identity?.host ?? 0);
  // What a recovery would read: an era that is being removed is not among it.
  const { sequences } = new RecoveryHost(disk, host, groups).answer({ what: 'survey', host })!;
  for (const { era, group, isOpened, snapshotIndex, mark, lastMark } of sequences) {
    hash = mix(mix(hash, era), isOpened ? 1 : 0);
    hash = mix(mix(hash, mark), lastMark);
    const found = reader.sequences(era, group);
    const sequence = found.find((one) => one.snapshotIndex === snapshotIndex)!;
    hash = mix(mix(mix(hash, group), snapshotIndex), sequence.snapshotFromParent);
    for (const word of sequence.readSnapshot() ?? []) hash = mix(hash, word);
    for (const { words, at, count } of entriesOf(sequence)) {
      for (let i = 0; i < count; i++) hash = mix(hash, words[at + i]);
    }
  }
  return hash;
}
