/** A stage for scripts about journals with which members begin: the replicas have fake journals, and may lose them. */
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Subject } from '../../src/sim/mutations/mutant.js';
import type { Overrides } from '../../src/sim/stage.js';
import type { ScriptedStart } from '../../src/sim/world.js';
import { FakeJournal } from './fake-journal.js';

export const FIRST_INDEX = 2;
const OPENING: ScriptedStart = { stretches: [], opensEra: true };

interface Options extends Overrides {
  /** Replicas on one host share a journal. By default, each has its own host. */
  readonly hostOf?: (participant: number) => number;
}

/** A stage of one group, whose era has just been opened. @param lacking  the members that do not have the opening state */
export function openedStage(
  Stage: Subject['Stage'],
  cluster: string,
  lacking: readonly number[] = [],
  { hostOf = (participant) => participant, ...overrides }: Options = {},
) {
  /** By host. */
  const journals: FakeJournal[] = [];
  /** What a participant begins from next; undefined if it lacks the state. */
  const starts: (ScriptedStart | undefined)[] = [];
  const stage = new Stage(cluster, {
    ...overrides,
    sizes: { firstIndex: FIRST_INDEX, ...overrides.sizes },
    journalOf: (participant) => {
      const hasLost = participant in starts && starts[participant] === undefined;
      const lacks = lacking.includes(participant) || hasLost;
      const host = hostOf(participant);
      journals[host] ??= new FakeJournal(false);
      journals[host].isFast = true;
      if (!lacks) journals[host].next = Math.max(journals[host].next, FIRST_INDEX);
      return journals[host];
    },
    startOf: (participant) =>
      participant in starts || lacking.includes(participant) ? starts[participant] : OPENING,
  });
  const journalOf = ({ participant }: ReplicaHost) => journals[hostOf(participant)];
  return {
    stage,
    journalOf,
    /** From now on it begins with what its journal has. */
    readsJournal: (host: ReplicaHost) => {
      starts[host.participant] = journalOf(host).start(FIRST_INDEX);
    },
    /** The same, without the entries from one index on, below another: a recovery may leave out what is not durable. */
    readsJournalWithout: (host: ReplicaHost, first: number, end: number) => {
      const { snapshot, stretches } = journalOf(host).start(FIRST_INDEX);
      // Each has one entry.
      const kept = stretches.filter((entry) => entry.first < first || entry.first >= end);
      const numbered = kept.map((entry, i) => ({ ...entry, first: FIRST_INDEX + i }));
      starts[host.participant] = { snapshot, stretches: numbered, opensEra: false };
    },
    /** Members of one host that have ended lose its journal. */
    losesJournal: (...members: ReplicaHost[]) => {
      for (const { participant } of members) {
        starts[participant] = undefined;
        journals[hostOf(participant)] = new FakeJournal(false);
      }
    },
  };
}

export const hasState = (host: ReplicaHost): boolean => host.replica.member.hasState;
export const deliveriesOf = (host: ReplicaHost): number => host.replica.member.deliveries;
