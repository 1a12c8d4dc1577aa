/** The option `page` of `Cluster.start`: the page that watches the cluster, served by the process that runs it. */
import { TramError } from '../errors.js';
import type { ClusterContext } from '../hosting/cluster-context.js';
import { makeLeader } from '../hosting/oversight.js';
import type { Control } from './control.js';
import type { ResolvedPage } from './page-options.js';
import { PageServer } from './server.js';

/** How often the page gets a new picture. */
export const INTERVAL_MS = 500;
const LEAD_MS = 5000;

/** @param hosts  of the cluster */
export function openOwnPage(
  context: ClusterContext,
  hosts: Pick<Control, 'crash' | 'restart'>,
  options: ResolvedPage,
): Promise<PageServer> {
  const { port, address, control } = options;
  const name = context.config.name ?? 'cluster';
  return PageServer.open({
    // What `tram status` advises are commands, which reach no cluster of threads.
    source: { name, context, troublesOf: () => [] },
    address,
    port,
    intervalMs: INTERVAL_MS,
    control: control ? controlOf(context, hosts) : undefined,
  });
}

/** @param hosts  crashes and restarts them */
export function controlOf(
  context: ClusterContext,
  hosts: Pick<Control, 'crash' | 'restart'>,
): Control {
  return {
    crash: async (host) => {
      context.requireHost(host);
      await hosts.crash(host);
    },
    restart: async (host) => {
      context.requireHost(host);
      await hosts.restart(host);
    },
    lead: (group, member) => lead(context, group, member),
  };
}

async function lead(context: ClusterContext, group: number, member: number): Promise<void> {
  context.requireGroup(group);
  context.requireMember(group, member);
  const { leader, replicas } = await makeLeader(context, group, member, LEAD_MS);
  if (leader === member) return;
  const { name, state } = replicas[member];
  if (state === 'down') {
    throw new TramError('TRAM_UNAVAILABLE', `${name} is down and can't lead`, {
      hint: 'Restart its host.',
    });
  }
  throw new TramError('TRAM_TIMEOUT', `${name} does not lead its group after ${LEAD_MS} ms`, {
    hint: 'It needs a majority of its group.',
  });
}
