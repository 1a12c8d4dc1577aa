/** A stage for scripts about durability: its replicas have fake journals, which the script moves. */
import type { Pace, Timing } from 'tram-multicast/internal/protocol/edges.js';
import type { Sizes } from 'tram-multicast/internal/protocol/layout.js';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { Subject } from '../../src/sim/mutations/mutant.js';
import { FakeJournal } from './fake-journal.js';

interface Options {
  readonly isAwaited?: boolean;
  readonly sizes?: Partial<Sizes>;
  readonly timing?: Partial<Timing>;
  readonly pace?: Partial<Pace>;
  /** Replicas on one host share a journal. By default, each has its own host. */
  readonly hostOf?: (participant: number) => number;
}

/** A stage whose replicas have journals. No entry is durable before the script says so. */
export function durableStage(Stage: Subject['Stage'], cluster: string, options: Options = {}) {
  const { isAwaited = true, sizes, timing, pace, hostOf = (participant) => participant } = options;
  const journals: FakeJournal[] = [];
  const stage = new Stage(cluster, {
    timing: { suspectAfterUs: 20_000, ...timing },
    ...(sizes && { sizes }),
    ...(pace && { pace }),
    journalOf: (participant) => {
      journals[hostOf(participant)] ??= new FakeJournal(isAwaited);
      return journals[hostOf(participant)];
    },
  });
  const journalOf = ({ participant }: ReplicaHost) => journals[hostOf(participant)];
  return {
    stage,
    journalOf,
    sync: (...members: ReplicaHost[]) => {
      for (const member of members) journalOf(member).sync();
    },
    answers: () => stage.world.ledger.history.counts.answers,
    deliveries: (member: ReplicaHost) => member.replica.member.deliveries,
    /** From now on all disks are fast and have room. Then everything must be answered and delivered. */
    settle: () => {
      for (const journal of journals) {
        journal.isFast = true;
        journal.roomWords = Number.POSITIVE_INFINITY;
      }
      stage.settle();
    },
  };
}
