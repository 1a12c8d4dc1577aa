/**
 * What a host that is a process sees of the others: a cut lifeline or a released lock shows that one has ended. It marks the
 * host as ended and wakes the others, so that all take over at once. If the starter of a cluster that is not detached has
 * ended, it ends the cluster. A client that was killed no longer counts as awake.
 */
import { ARENA, HOST, HOST_STATE, hostStateOf, PARKED, type Parking } from '../memory/arena.js';
import type { ArenaFile } from '../memory/processes/arena-file.js';
import type { Lifelines } from '../memory/processes/lifelines.js';
import type { ClusterContext } from './cluster-context.js';
import type { Watch } from './duty.js';
import { askToEnd, markEnded, starterLock, wakeHosts } from './oversight.js';

export class OtherHosts implements Watch {
  private readonly hosts: readonly number[];
  private readonly lifelines: Lifelines;
  private readonly endsWithStarter: boolean;
  private readonly starter: number;

  constructor(
    private readonly context: ClusterContext,
    private readonly arena: ArenaFile,
    host: number,
  ) {
    const { map, config } = context;
    // Each begins with the next one, so that the others share the watch.
    this.hosts = Array.from({ length: map.hosts - 1 }, (_, i) => (host + 1 + i) % map.hosts);
    const lifelines = this.hosts.map((other) => map.host(other) + HOST.lifeline);
    this.lifelines = arena.watchLifelines(lifelines, map.host(host) + HOST.parked);
    this.endsWithStarter = arena.words[ARENA.isDetached] === 0;
    this.starter = starterLock(config);
  }

  get parking(): Parking {
    return this.lifelines.parking;
  }

  hasNews(): boolean {
    return this.lifelines.haveChanged();
  }

  look(): void {
    const { context, arena, hosts } = this;
    const { words } = arena;
    if (this.endsWithStarter && !arena.isHostLocked(this.starter) && askToEnd(context))
      arena.removeFile();
    let hasFound = false;
    for (const other of hosts) {
      const state = Atomics.load(words, context.map.host(other) + HOST.state);
      if (hostStateOf(state) === HOST_STATE.running && markEnded(context, other)) hasFound = true;
    }
    // The kernel wakes only one host that sleeps.
    if (hasFound) wakeHosts(context);
    this.forgetKilledClients();
  }

  /** It can't say itself that it is not awake any more, and hosts would spare a core for it. */
  private forgetKilledClients(): void {
    const { context, arena } = this;
    const { map, layout } = context;
    for (let slot = 0; slot < layout.sizes.clients; slot++) {
      const host = map.hosts + slot;
      const parked = map.host(host) + HOST.parked;
      if (arena.words[parked] !== PARKED.awake || arena.isHostLocked(host)) continue;
      Atomics.store(arena.words, parked, PARKED.absent);
    }
  }
}
