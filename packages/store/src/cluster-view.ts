/** Which host leads each shard, and how many of its replicas take part: from the status of the cluster. */

import { Cluster, type ClusterStatus } from 'tram-multicast';
import type { ShardView } from './gateway/cluster-facts.js';

/** On machines, one look costs a connection to each host: what it has shown is shown for so long. */
const KEPT_MS = 5000;

export function viewsOf({ groups, hosts }: ClusterStatus): ShardView[] {
  return groups.map(({ leader, replicas }) => {
    const host = leader === undefined ? undefined : replicas[leader].host;
    return {
      leader: host === undefined ? undefined : (hosts[host].name ?? String(host)),
      replicasUp: replicas.filter(
        ({ state, role }) => state === 'up' && (role === 'leader' || role === 'follower'),
      ).length,
    };
  });
}

/** Looks at a cluster on machines. */
export class RemoteLook {
  #last: Promise<readonly ShardView[]> = Promise.resolve([]);
  #lookedMs = -Infinity;

  /** @param config  the path of the configuration file of the cluster */
  constructor(private readonly config: string) {}

  look(): Promise<readonly ShardView[]> {
    const nowMs = performance.now();
    if (nowMs - this.#lookedMs >= KEPT_MS) {
      this.#lookedMs = nowMs;
      // If no host can be reached, nothing is known.
      this.#last = this.#lookNow().catch(() => []);
    }
    return this.#last;
  }

  async #lookNow(): Promise<readonly ShardView[]> {
    const attached = await Cluster.attach(this.config);
    try {
      return viewsOf(attached.status());
    } finally {
      await attached.close();
    }
  }
}
