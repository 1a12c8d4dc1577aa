/**
 * A host of a RamCast cluster: runs its share of the replicas until the cluster closes. A worker thread or a process,
 * `node host.js ARENA HOST`; started by `system.ts`.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { nowUs } from 'tram-multicast/internal/hosting/clock.js';
import { Duty } from 'tram-multicast/internal/hosting/duty.js';
import type { HostReport } from 'tram-multicast/internal/hosting/host.js';
import type { HostThreadData } from 'tram-multicast/internal/hosting/host-thread.js';
import { openArena } from 'tram-multicast/internal/hosting/open-arena.js';
import { pacingOf } from 'tram-multicast/internal/hosting/pacing.js';
import { TraceFile } from 'tram-multicast/internal/hosting/trace.js';
import { ARENA, ARENA_STATE, HOST } from 'tram-multicast/internal/memory/arena.js';
import type { ParticipantId } from 'tram-multicast/internal/memory/contract.js';
import { beginIncarnation } from 'tram-multicast/internal/memory/shared.js';
import type { Application, Delivery } from '../../../baselines/ramcast/edges.js';
import { newReplica, type Replica } from '../../../baselines/ramcast/replica.js';
import { endWithParent } from '../../load/end-with-parent.js';
import { messageName, RamcastContext } from './context.js';

const SLICE_US = 50_000;
/** A trace ends after this long without work. */
const STILL_US = 100_000;
const NO_SERVICE: Application = { deliver: () => undefined };

class Host {
  private readonly traces: TraceFile[] = [];
  private readonly replicas: Replica[];

  constructor(
    private readonly context: RamcastContext,
    private readonly host: number,
  ) {
    const { arena, map } = context;
    Atomics.store(arena.words, map.host(host) + HOST.pid, process.pid);
    this.replicas = map.participantsOf(host).map((replica) => this.startReplica(replica));
  }

  private startReplica(replica: ParticipantId): Replica {
    const { arena, map, config } = this.context;
    const group = Math.floor(replica / config.sizes.replicas);
    const member = replica % config.sizes.replicas;
    beginIncarnation(arena, map, replica, false);
    const application = this.application(group, member);
    return newReplica(this.context.edges(replica), group, member, application);
  }

  private application(group: number, member: number): Application {
    const { trace: directory } = this.context.config;
    if (directory === undefined) return NO_SERVICE;
    const trace = new TraceFile(directory, `replica-${group}-${member}`);
    this.traces.push(trace);
    const replica = `${group}/${member}`;
    const deliver = ({ client, sequence }: Delivery): undefined =>
      trace.add({
        event: 'deliver',
        id: messageName(client, sequence),
        group,
        replica,
      }) as undefined;
    return { deliver };
  }

  async run(): Promise<void> {
    const { arena, map, config } = this.context;
    const at = {
      parked: map.host(this.host) + HOST.parked,
      ready: map.readyOf(this.host),
      readyLater: map.readyLaterOf(this.host),
      allParked: map.allParked,
    };
    const duty = new Duty(
      arena,
      at,
      this.replicas,
      pacingOf({ ...config, durability: 'none' }),
      nowUs,
    );
    while (Atomics.load(arena.words, ARENA.state) !== ARENA_STATE.closing) {
      duty.run(SLICE_US);
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.finish();
  }

  /** All messages are answered, but followers may lag behind: the trace is complete once they have delivered. */
  private finish(): void {
    if (this.traces.length === 0) return;
    for (let workedUs = nowUs(); nowUs() - workedUs < STILL_US; ) {
      for (const replica of this.replicas) if (replica.doWork() > 0) workedUs = nowUs();
    }
    for (const trace of this.traces) trace.close();
  }
}

const READY: HostReport = { what: 'ready' };

async function live(
  address: SharedArrayBuffer | string,
  host: number,
  report: (report: HostReport) => void,
): Promise<void> {
  const arena = openArena(address);
  const running = new Host(RamcastContext.attach(arena), host);
  report(READY);
  await running.run();
  arena.close();
}

if (parentPort !== null) {
  const { buffer, host } = workerData as HostThreadData;
  await live(buffer, host, (report) => parentPort!.postMessage(report));
} else {
  endWithParent();
  await live(process.argv[2], Number(process.argv[3]), (report) => process.send!(report));
  process.exit(0);
}
