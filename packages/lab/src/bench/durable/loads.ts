/**
 * The latency and the throughput of all durabilities, for several loads, beside a bare loop of `write` and `fdatasync` of as
 * many bytes as the journals write for each sync.
 */
import type { Durability } from 'tram-multicast/internal/protocol/edges.js';
import { type DestinationSet, destinationSets, mixedSets } from '../load/destinations.js';
import { rateOf } from '../load/measure.js';
import { inRounds } from '../load/rounds.js';
import type { Rung } from '../load/saturation.js';
import { type Spread, spreadOf } from '../load/spread.js';
import { measureSyncedWrites, type SyncedWrites } from '../raw/synced-writes.js';
import type { Load } from '../systems/system.js';
import { plural } from '../text/words.js';
import { Clusters, type DurableMeasurement } from './clusters.js';
import { IN_FLIGHT, type LoadName, MODES, OVERLAY, type Run, SETUP } from './setting.js';

/** Of each durability. A ratio is the median of the ratios of the rounds. */
export interface Costs {
  readonly figures: Readonly<Record<Durability, Spread>>;
  /** `everySecond` divided by `none`. */
  readonly everySecond: Spread;
  /** `always` divided by `none`. */
  readonly always: Spread;
}

export interface Bare {
  readonly bytesPerSync: number;
  readonly writers: number;
  readonly latencyNsP50: Spread;
  readonly bytesPerSecond: Spread;
}

export interface LoadCost {
  /** `1 group`, `8 groups`, `mix` */
  readonly load: string;
  /** One message at a time. */
  readonly latencyNsP50: Costs;
  /** A bare loop of one writer that writes what a journal writes for one message at a time. */
  readonly bareAlone: Bare;
  /** The latency of `always` divided by that of the bare loop. */
  readonly barePerMessage: Spread;
  /** With `IN_FLIGHT` messages in flight. */
  readonly messagesPerSecond: Costs;
  /** Of `always`: what all journals write. */
  readonly journalBytesPerSecond: Spread;
  /** A bare loop with as many writers as the cluster has hosts. They write as much for a sync as the journals do. */
  readonly bareLoaded: Bare;
  /** What all journals write divided by what the bare loop writes. */
  readonly shareOfDisk: Spread;
}

export interface LoadCosts {
  readonly hosts: number;
  readonly loads: readonly LoadCost[];
}

const ALONE: Rung = { clients: 1, outstanding: 1 };
const MANY: Rung = { clients: 1, outstanding: IN_FLIGHT };
const WARM_UP_SECONDS_MAX = 0.3;

const TITLES: Readonly<Record<LoadName, string>> = {
  one: plural(1, 'group'),
  all: plural(SETUP.groups, 'group'),
  mix: 'mix',
};
const SETS: Readonly<Record<LoadName, readonly DestinationSet[]>> = {
  one: destinationSets(OVERLAY, 'rotating', 1),
  all: destinationSets(OVERLAY, 'rotating', SETUP.groups),
  mix: mixedSets(OVERLAY),
};

/** What is measured in each round: clusters, and the bare loop. */
type Subject = Durability | 'bare';
type Outcome = DurableMeasurement | SyncedWrites;

export async function compareLoads(run: Run): Promise<LoadCosts> {
  const clusters = await Clusters.start(run);
  try {
    run.step('warm-up');
    const warmUp = loadOf(run, SETS.mix, MANY);
    for (const mode of MODES) await clusters.measure(mode, warmUp);
    const costs: LoadCost[] = [];
    for (const load of run.loads) costs.push(await compareLoad(clusters, run, load, SETS[load]));
    return { hosts: clusters.hosts, loads: costs };
  } finally {
    await clusters.close();
  }
}

async function compareLoad(
  clusters: Clusters,
  run: Run,
  name: LoadName,
  sets: readonly DestinationSet[],
): Promise<LoadCost> {
  const load = TITLES[name];
  run.step(`${load}, one message at a time`);
  const alone = await rounds(clusters, run, loadOf(run, sets, ALONE), 1);
  run.step(`${load}, ${IN_FLIGHT} messages in flight`);
  const many = await rounds(clusters, run, loadOf(run, sets, MANY), clusters.hosts);
  const latency = ({ latencyNsP50 }: Outcome): number => latencyNsP50;
  return {
    load,
    latencyNsP50: costsOf(alone, latency),
    bareAlone: bareOf(alone),
    barePerMessage: spread(alone, ({ always, bare }) => latency(always) / latency(bare)),
    messagesPerSecond: costsOf(many, rateOf),
    journalBytesPerSecond: spread(many, ({ always }) => always.journaled.bytesPerSecond),
    bareLoaded: bareOf(many),
    shareOfDisk: spread(
      many,
      ({ always, bare }) => always.journaled.bytesPerSecond / bare.bytesPerSecond,
    ),
  };
}

type Round = Readonly<Record<Durability, DurableMeasurement>> & { readonly bare: SyncedWrites };

/** @param writers  of the bare loop */
async function rounds(
  clusters: Clusters,
  { rounds, folder, seconds, step }: Run,
  load: Load,
  writers: number,
): Promise<Round[]> {
  // A first measurement tells how much the journals write for a sync.
  const { journaled } = await clusters.measure('always', load);
  const bytesPerSync = Math.round(journaled.bytesPerSync);
  const measureSubject = (subject: Subject): Promise<Outcome> => {
    step(`  ${subject}`);
    return subject === 'bare'
      ? measureSyncedWrites({ folder, writers, bytesPerSync, seconds })
      : clusters.measure(subject, load);
  };
  const subjects: readonly Subject[] = [...MODES, 'bare'];
  const results = await inRounds(rounds, subjects, measureSubject);
  return results.map(
    (outcomes) => Object.fromEntries(outcomes.map((outcome, i) => [subjects[i], outcome])) as Round,
  );
}

function loadOf({ seconds }: Run, sets: readonly DestinationSet[], rung: Rung): Load {
  const warmUpSeconds = Math.min(seconds, WARM_UP_SECONDS_MAX);
  return { ...rung, sets, payloadBytes: SETUP.payloadBytesMax, warmUpSeconds, seconds };
}

function costsOf(
  rounds: readonly Round[],
  read: (measurement: DurableMeasurement) => number,
): Costs {
  const ofMode = (mode: Durability): Spread => spread(rounds, (round) => read(round[mode]));
  return {
    figures: { none: ofMode('none'), everySecond: ofMode('everySecond'), always: ofMode('always') },
    everySecond: spread(rounds, ({ none, everySecond }) => read(everySecond) / read(none)),
    always: spread(rounds, ({ none, always }) => read(always) / read(none)),
  };
}

function bareOf(rounds: readonly Round[]): Bare {
  const { bytesPerSync, writers } = rounds[0].bare;
  return {
    bytesPerSync,
    writers,
    latencyNsP50: spread(rounds, ({ bare }) => bare.latencyNsP50),
    bytesPerSecond: spread(rounds, ({ bare }) => bare.bytesPerSecond),
  };
}

function spread(rounds: readonly Round[], read: (round: Round) => number): Spread {
  return spreadOf(rounds.map(read))!;
}
