/** Beyond the paper: the same cluster across machines, over libfabric, and on processes that share memory. */
import { TramError } from 'tram-multicast/internal/errors.js';
import { libfabricVersion } from '../../machines/libfabric-version.js';
import { duration, plural, rate, times } from '../../text/words.js';
import {
  GROUPS,
  latencyPanel,
  PAYLOAD_BYTES,
  sessionsByDestinations,
  throughputPanel,
} from '../by-destinations.js';
import type { Experiment, Finding, Plan, Session } from '../experiment.js';
import type { Summary } from '../summary.js';

const NAME = 'machines';
const REPLICAS = 3;
const MACHINES = 'machines';
const PROCESSES = 'processes';

function sessions(plan: Plan): Session[] {
  // One client: each has connections of its own to all hosts.
  const ladder = plan.profile.ladder.filter(({ clients }) => clients === 1);
  const profile = { ...plan.profile, ladder };
  return sessionsByDestinations(NAME, { ...plan, profile }, 'processes', 'random', [
    { name: 'TRAM base', series: PROCESSES, replicas: REPLICAS },
    { name: 'TRAM machines', series: MACHINES, replicas: REPLICAS },
  ]);
}

/** The median across machines, and its ratio to processes that share memory. */
function compared(
  summary: Summary,
  measure: string,
  destinations: number,
): { value: number; ratio: number } | undefined {
  const [machines, processes] = [MACHINES, PROCESSES].map((series) =>
    summary.median(measure, series, destinations),
  );
  if (machines === undefined || processes === undefined) return undefined;
  return { value: machines, ratio: machines / processes };
}

function findings(summary: Summary): Finding[] {
  return [1, GROUPS].flatMap((destinations) => {
    const latency = compared(summary, 'latency', destinations);
    const throughput = compared(summary, 'throughput', destinations);
    if (latency === undefined || throughput === undefined) return [];
    return [
      {
        here:
          `To ${plural(destinations, 'group')} across machines: ${duration(latency.value)}, ${times(latency.ratio)} as long as on ` +
          `processes that share memory, and ${rate(throughput.value)}, ${times(throughput.ratio)} of their throughput.`,
      },
    ];
  });
}

function lacks(): string | undefined {
  try {
    libfabricVersion();
    return undefined;
  } catch (error) {
    if (!(error instanceof TramError)) throw error;
    return `${error.message} ${error.hint ?? ''}`.trim();
  }
}

export const machines: Experiment = {
  name: NAME,
  title: 'Across machines',
  section: 'beyond the paper',
  about: `The same cluster twice: across ${REPLICAS} hosts, which write into each other’s memory over libfabric (TCP), and on processes that share memory. ${GROUPS} groups of ${REPLICAS} on the base tree, ${PAYLOAD_BYTES} B, destinations drawn uniformly, one client. All hosts are on this machine and use its loopback: the figures show the cost of the work, not of the network, and all work shares the same cores.`,
  systems: ['TRAM base', 'TRAM machines'],
  // A cluster across machines takes long to start.
  rounds: ({ rounds }) => rounds - 1,
  lacks,
  sessions,
  figures: (summary) => [
    {
      name: NAME,
      title: 'Across machines, and on processes that share memory',
      panels: [latencyPanel(summary, 'log'), throughputPanel(summary)],
    },
  ],
  findings,
};
