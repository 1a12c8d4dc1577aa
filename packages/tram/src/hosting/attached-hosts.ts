/**
 * The hosts of a cluster that others run, for `AttachedCluster` and `tram restart --all`: kills, stops and restarts them.
 * (The hosts of a cluster that this process runs: `own-hosts.ts`.)
 *
 * A host on this machine is signalled, and started if it has ended. A host on another machine is asked. A host of a cluster
 * across machines that runs may belong to a service manager, so it is asked to restart, wherever it is.
 */
import { basename } from 'node:path';
import { hostsWith } from '../config/machines.js';
import type { MachinesAttachment, ProcessesAttachment } from './attachment.js';
import {
  doesMachineRun,
  endHost,
  killHost,
  type LocalHost,
  openHere,
  withMachine,
} from './local-host.js';
import { readClusterFile } from './machines/cluster-file.js';
import { RemoteHost } from './machines/remote-host.js';
import { type Logger, type RestartOptions, START_TIMEOUT_MS } from './own-hosts.js';
import { costOfEnd, savedStateCheck } from './rejoin.js';
import {
  type BeforeEnd,
  handOver,
  restartInTurn,
  type TurnOptions,
  titleOf,
} from './rolling-restart.js';
import { restartHost } from './start-again.js';
import { type ReplicaStatus, statusOf } from './status.js';

/** How long a host may take to stop its replicas. What they leave takes its own time. */
const END_MS = 10_000;

export class AttachedHosts {
  constructor(
    private readonly attachment: ProcessesAttachment | MachinesAttachment,
    private readonly logger: Logger,
  ) {}

  /** Kills a host. It stays down until `restart`. */
  async crash(host: number): Promise<void> {
    const { context } = this.attachment;
    const cost = costOfEnd(statusOf(context).groups, hostsWith(context.config.threads, host));
    if (cost !== undefined) {
      this.logger.warn(`the crash of host ${titleOf(context, host)} ${cost}`);
    }
    await this.end(host, killHost, (remote) => remote.kill(END_MS));
  }

  /**
   * Hands its leaderships over, as far as others can take them, and ends a host in order. It stays down likewise.
   * @throws TRAM_SNAPSHOT_FAILED. The memory of a host on another machine can't be read after its end: there, only its log
   *   tells.
   */
  async stop(host: number): Promise<void> {
    const { context } = this.attachment;
    await handOver(context, hostsWith(context.config.threads, host));
    await this.end(
      host,
      (local) =>
        withMachine(local, async (all) => {
          const checks = all.map((one) => savedStateCheck(one.context, [one.host], one.title));
          await endHost(local, END_MS);
          for (const requireSaved of checks) requireSaved();
        }),
      (remote) => remote.stop(END_MS),
    );
  }

  private async end(
    host: number,
    endLocal: (local: LocalHost) => Promise<unknown>,
    askToEnd: (remote: RemoteHost) => Promise<void>,
  ): Promise<void> {
    await this.use(host, async (local, remote) => {
      if (local === undefined) await askToEnd(remote!);
      else if (remote === undefined) await endLocal(local);
      else await remote.endBy(() => endLocal(local), END_MS);
    });
  }

  /** Restarts a host, which is stopped in order if it runs, and waits until its replicas take part in their groups again. */
  restart(host: number, options: RestartOptions, beforeEnd?: BeforeEnd): Promise<ReplicaStatus[]> {
    const { fresh = false, timeoutMs = START_TIMEOUT_MS } = options;
    return this.use(host, async (local, remote) => {
      const isAsked =
        remote !== undefined && (local === undefined || (await doesMachineRun(local, timeoutMs)));
      if (isAsked) return remote.restart(fresh, timeoutMs, beforeEnd);
      return restartHost(local!, { fresh, timeoutMs, beforeEnd }, this.attachment.context);
    });
  }

  /** Restarts all hosts, one after the other. */
  async restartAll(options: TurnOptions & Pick<RestartOptions, 'timeoutMs'>): Promise<void> {
    const { timeoutMs } = options;
    const control = {
      context: this.attachment.context,
      restart: (host: number, beforeEnd: BeforeEnd) => this.restart(host, { timeoutMs }, beforeEnd),
    };
    await restartInTurn(control, options);
  }

  /** @param run  gets the host on this machine, if it is or was here; and the host to be asked, of a cluster across machines */
  private async use<Result>(
    host: number,
    run: (local: LocalHost | undefined, remote: RemoteHost | undefined) => Promise<Result>,
  ): Promise<Result> {
    const { attachment } = this;
    if (attachment.memory === 'processes') return run(localHost(attachment, host), undefined);
    const { config, mirror } = attachment;
    const local = openHere(await readClusterFile(config), config, host);
    try {
      return await run(local, new RemoteHost(mirror, host, config));
    } finally {
      local?.arena.close();
    }
  }
}

function localHost(attachment: ProcessesAttachment, host: number): LocalHost {
  const { arena, context } = attachment;
  const { path } = arena;
  return { name: nameOf(attachment), host, title: String(host), path, arena, context };
}

/** The name of a cluster of processes; of one without a name, what the name of its file has instead. */
export function nameOf({ context, arena }: ProcessesAttachment): string {
  return context.config.name ?? basename(arena.path).replace(/^tram-/, '');
}
