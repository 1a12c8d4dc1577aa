/** A cluster across machines, all on the loopback of this machine, for the benchmark of leader changes (`../failover.ts`). */
import { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import { machineArenaPath } from 'tram-multicast/internal/hosting/machines/own-arena.js';
import type { Arena } from 'tram-multicast/internal/memory/arena.js';
import { openArenaFile } from 'tram-multicast/internal/memory/processes/arena-file.js';
import { type FailoverOptions, Leaders, type Subject } from '../failover.js';
import { LOOPBACK } from '../systems/ports.js';
import { startCluster } from './cluster.js';
import { Observer } from './observer.js';

/** One client of many messages: each client has connections of its own, which cost the hosts more than its messages. */
const OUTSTANDING = 16;

export async function startMachines(options: FailoverOptions): Promise<Subject> {
  const { groups, replicas, tree, clients, payloadBytes, order = 'multicast' } = options;
  const setup = {
    ...{ groups, replicas, clientsMax: clients, outstandingMax: OUTSTANDING },
    payloadBytesMax: Math.max(payloadBytes, 16),
  };
  const cluster = await startCluster(setup, new AbortController().signal, { tree, order });
  const { config, credentials, configFile } = cluster;
  const observer = Observer.open(cluster, LOOPBACK);
  const openArenaOf = (host: number): Arena => openArenaFile(machineArenaPath(config, host));
  const arenas = config.machines.map((_, host) => openArenaOf(host));
  const map = ClusterContext.mapOnMachines(config, credentials.digest);
  const members = Array.from({ length: replicas }, (_, member) => member);
  const groupsOf = Array.from({ length: groups }, (_, group) => group);
  return {
    target: { address: configFile, system: 'machines' },
    outstanding: OUTSTANDING,
    leaders: new Leaders(map, (host) => arenas[host]),
    leadersNow: () => observer.leaders(),
    membersOf: (host) =>
      groupsOf.map(
        (group) =>
          members.find((member) => map.hostOf(group * replicas + member) === host) as number,
      ),
    pidOf: (host) => cluster.pidOf(host),
    lead: (chosen) => observer.askToLead(chosen),
    restart: async (host) => {
      arenas[host].close();
      cluster.startAgain(host);
      await observer.leaders();
      arenas[host] = openArenaOf(host);
    },
    close: async () => {
      observer.close();
      await cluster.close();
    },
  };
}
