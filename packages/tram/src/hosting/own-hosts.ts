/**
 * The hosts of a cluster, for the process that starts them: `Cluster` starts, kills, stops and restarts them through this
 * class, and it restarts those that end unexpectedly.
 *
 * A host of a cluster of processes may be ended and restarted by other processes, with the commands. This process then
 * has no handle for it, and its lock in the arena shows that it runs.
 */
import { channel } from 'node:diagnostics_channel';
import { TramError } from '../errors.js';
import type { EraPlan, OpenAsk, Opening } from '../journal/recovery-asks.js';
import type { ArenaFile } from '../memory/processes/arena-file.js';
import type { ClusterContext } from './cluster-context.js';
import type { HostReport } from './host.js';
import {
  claimFreshRestart,
  keepDown,
  letRestart,
  markEnded,
  pause,
  wakeHosts,
} from './oversight.js';
import {
  costOfEnd,
  deliveredByGroup,
  refusalAfterEnd,
  requireOtherCopies,
  savedStateCheck,
  untilRejoined,
} from './rejoin.js';
import {
  type BeforeEnd,
  handOver,
  type Restarted,
  restartInTurn,
  STOP_MS,
} from './rolling-restart.js';
import type { HostHandle, HostStarter } from './starters.js';
import { type GroupStatus, type ReplicaStatus, statusOf } from './status.js';
import { Supervisor } from './supervisor.js';

/** Receives log messages. `console` and pino loggers have this interface. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** @internal */
export const SILENT: Logger = {
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export interface RestartOptions {
  /** Start with empty memory, and recover from the other members. Default false. */
  readonly fresh?: boolean | undefined;
  /** How long the host may take from its start until its replicas take part again. Default 30 seconds. */
  readonly timeoutMs?: number | undefined;
}

/** @internal */
export const RESTART_OPTIONS: readonly (keyof RestartOptions)[] = ['fresh', 'timeoutMs'];

export interface RollingRestartOptions {
  /** Ends the rolling restart before the next host. */
  readonly signal?: AbortSignal | undefined;
}

/** @internal How long a start may take. */
export const START_TIMEOUT_MS = 30_000;
/** How long a host may take to end before it is killed. */
const END_MS = 2000;
const LOOK_MS = 5;

const leaderChannel = channel('tram:leader');
const hostChannel = channel('tram:host');

/** @internal */
export class OwnHosts {
  /** Those that this process has started, and that run. */
  private readonly handles: (HostHandle | undefined)[] = [];
  /** By host: how it has ended. */
  private readonly exits: (string | undefined)[] = [];
  /** By host: why a replica could not leave its state. */
  private readonly unsavedBy: (string | undefined)[] = [];
  /** Hosts that a call starts: the call learns of their end, and nobody else restarts them. */
  private readonly starting = new Set<number>();
  private supervisor: Supervisor | undefined;
  private isClosed = false;
  /** Is it about to leave its hosts to themselves? Then it starts no more. */
  private isLeaving = false;

  constructor(
    private readonly context: ClusterContext,
    private readonly starter: HostStarter,
    private readonly logger: Logger,
    /** The file of processes. */
    private readonly file?: ArenaFile,
  ) {}

  // --- starting ----------------------------------------------------------------------------------

  async startAll(deadlineMs: number): Promise<void> {
    const hosts = Array.from({ length: this.context.map.hosts }, (_, host) => host);
    await Promise.all(hosts.map((host) => this.start(host, false, deadlineMs)));
  }

  /** Starts the hosts that are down, with the memory that they left. */
  async resumeAll(deadlineMs: number): Promise<void> {
    const hosts = Array.from({ length: this.context.map.hosts }, (_, host) => host);
    const down = hosts.filter((host) => !this.isRunning(host));
    await Promise.all(
      down.map(async (host) => {
        try {
          await this.start(host, true, deadlineMs);
        } catch (error) {
          // Another process has started it.
          if (!(error instanceof TramError) || error.code !== 'TRAM_HOST_RUNNING') throw error;
        }
      }),
    );
  }

  /** From now on, hosts that end unexpectedly are restarted. */
  supervise(): void {
    this.supervisor = new Supervisor(this.context, {
      restart: async (host) => void (await this.start(host, true, Date.now() + START_TIMEOUT_MS)),
      isWatched: (host) => this.handles[host] !== undefined || this.starting.has(host),
      onEnded: (host) => this.onExit(host, 'its process is gone'),
      onRestarting: (host, delayMs) => {
        this.logger.warn(`host ${host} is restarted in ${delayMs} ms`);
        hostChannel.publish({ what: 'restarting', host, delayMs });
      },
      onGivenUp: (host, why) => {
        this.logger.error(
          `host ${host} keeps ending and is left down: ${why}. Correct the cause, then restart it: ` +
            `cluster.restart(${host}), or \`tram restart\``,
        );
        hostChannel.publish({ what: 'given-up', host, why });
      },
    });
    // Those that have ended between their start and now.
    for (const [host, why] of this.exits.entries()) {
      if (why !== undefined && this.handles[host] === undefined) this.supervisor.ended(host, why);
    }
  }

  /** Starts all hosts, which open an era together. Resolves when all of them have. */
  async openAll(asks: readonly OpenAsk[], deadlineMs: number): Promise<Opening[]> {
    return await Promise.all(
      asks.map(async ({ host, plan }) => {
        const lastSession = await this.start(host, false, deadlineMs, plan);
        return { groups: plan.groups.map(({ group }) => group), lastSession };
      }),
    );
  }

  private async start(
    host: number,
    resumes: boolean,
    deadlineMs: number,
    plan?: EraPlan,
  ): Promise<number> {
    this.starting.add(host);
    try {
      return await this.untilReady(host, resumes, deadlineMs, plan);
    } finally {
      this.starting.delete(host);
    }
  }

  private async untilReady(
    host: number,
    resumes: boolean,
    deadlineMs: number,
    plan?: EraPlan,
  ): Promise<number> {
    // Not later: if the host is stopped while it starts, it stays down.
    letRestart(this.context, host);
    const events = {
      onReport: (report: HostReport) => this.onReport(host, report),
      onExit: (why: string) => this.onExit(host, why),
    };
    const handle = this.starter.start(host, resumes, events, plan);
    this.handles[host] = handle;
    this.unsavedBy[host] = undefined;
    try {
      const lastSession = await handle.ready(deadlineMs);
      hostChannel.publish({ what: 'started', host });
      return lastSession;
    } catch (error) {
      await handle.kill();
      throw error;
    }
  }

  private onReport(host: number, report: HostReport): void {
    // While the cluster closes, replicas may still take over from hosts that have ended: not worth a report.
    if (this.isClosed) return;
    if (report.what === 'leader') {
      const { group, member, ballot } = report;
      this.logger.info(`g${group}/${member} leads its group under ballot ${ballot}`);
      leaderChannel.publish({ group, member, ballot });
    } else if (report.what === 'progress') {
      this.logger.info(report.text);
    } else if (report.what === 'trouble') {
      this.logger.error(report.text);
      this.unsavedBy[host] ??= report.unsavedBy;
    }
  }

  /** Marks the host as ended and wakes the others, so that they take over at once. */
  private onExit(host: number, why: string): void {
    this.handles[host] = undefined;
    this.exits[host] = why;
    // A cluster that closes, or has detached, no longer has the memory. What its hosts do is their own business.
    if (this.isClosed) return;
    markEnded(this.context, host);
    wakeHosts(this.context);
    this.logger.warn(`host ${host} has ended: ${why}`);
    hostChannel.publish({ what: 'ended', host, why });
    if (!this.starting.has(host)) this.supervisor?.ended(host, why);
  }

  // --- one host ----------------------------------------------------------------------------------

  /** Kills a host. It stays down until `restart`. */
  async crash(host: number): Promise<void> {
    const cost = costOfEnd(this.groups(), [host]);
    if (cost !== undefined) this.logger.warn(`the crash of host ${host} ${cost}`);
    keepDown(this.context, host);
    const handle = this.handles[host];
    if (handle !== undefined) await handle.kill();
    else await this.endForeign(host, 'SIGKILL');
  }

  /**
   * Hands its leaderships over, as far as others can take them, and ends a host in order. It stays down likewise.
   * @throws TRAM_SNAPSHOT_FAILED
   */
  async stop(host: number, beforeEnd?: BeforeEnd): Promise<void> {
    const requireSaved = savedStateCheck(this.context, [host], String(host));
    await this.end(host, beforeEnd);
    if (!this.isClosed) requireSaved(this.unsavedBy[host]);
  }

  private async end(host: number, beforeEnd?: BeforeEnd): Promise<void> {
    await handOver(this.context, [host]);
    await beforeEnd?.();
    this.requireOpen();
    keepDown(this.context, host);
    const handle = this.handles[host];
    if (handle !== undefined) await handle.stop(STOP_MS);
    else await this.endForeign(host, 'SIGTERM');
  }

  /** Ends a host that another process has started. */
  private async endForeign(host: number, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { context, file: arena } = this;
    if (!arena?.isHostLocked(host)) return;
    const { endHost, killHost } = await import('./local-host.js');
    const { path } = arena;
    const local = { name: path, host, title: String(host), path, arena, context };
    if (signal === 'SIGKILL') await killHost(local);
    else await endHost(local, STOP_MS);
    this.onExit(host, signal);
  }

  /**
   * Restarts a host, which is stopped in order if it runs, and waits until its replicas take part in their groups again.
   * @returns its replicas
   */
  async restart(
    host: number,
    options: RestartOptions,
    beforeEnd?: BeforeEnd,
  ): Promise<ReplicaStatus[]> {
    const { fresh = false, timeoutMs = START_TIMEOUT_MS } = options;
    this.requireStartable(host);
    const before = this.groups();
    if (fresh) requireOtherCopies(before, [host], String(host));
    const release = fresh ? claimFreshRestart(this.context) : undefined;
    this.supervisor?.leave(host);
    this.starting.add(host);
    try {
      // What it would leave is not used if it starts with empty memory.
      if (this.isRunning(host)) {
        await (fresh ? this.end(host, beforeEnd) : this.stop(host, beforeEnd));
      }
      const refusal = fresh ? refusalAfterEnd(this.groups(), [host], String(host)) : undefined;
      const deadlineMs = Date.now() + timeoutMs;
      await this.untilReady(host, !fresh || refusal !== undefined, deadlineMs);
      const started = {
        hosts: [host],
        title: String(host),
        groups: () => this.groups(),
        ended: () => (this.handles[host] === undefined ? this.exits[host] : undefined),
      };
      const replicas = await untilRejoined(started, deliveredByGroup(before), deadlineMs);
      if (refusal !== undefined) throw refusal;
      return replicas;
    } catch (error) {
      // The caller is told, and decides what to do.
      if (!this.isClosed && !this.isRunning(host)) keepDown(this.context, host);
      throw error;
    } finally {
      this.starting.delete(host);
      release?.();
    }
  }

  /** Restarts all hosts, one after the other. */
  async restartAll({ signal }: RollingRestartOptions): Promise<void> {
    const onRestarted = ({ title }: Restarted): void =>
      this.logger.info(`host ${title} was restarted`);
    const control = {
      context: this.context,
      restart: (host: number, beforeEnd: BeforeEnd) => this.restart(host, {}, beforeEnd),
    };
    await restartInTurn(control, { signal, onRestarted });
  }

  private groups(): readonly GroupStatus[] {
    this.requireOpen();
    return statusOf(this.context).groups;
  }

  private requireOpen(): void {
    if (this.isClosed) throw new TramError('TRAM_CLOSED', 'this cluster is closed');
  }

  private isRunning(host: number): boolean {
    return this.handles[host] !== undefined || this.file?.isHostLocked(host) === true;
  }

  private requireStartable(host: number): void {
    if (this.isLeaving) throw new TramError('TRAM_CLOSED', 'this cluster is being detached');
    if (!this.starting.has(host)) return;
    throw new TramError('TRAM_HOST_RUNNING', `host ${host} is being started already`);
  }

  // --- the end -----------------------------------------------------------------------------------

  /** Hosts may end from now on, and nobody restarts them. */
  close(): void {
    this.isClosed = true;
    this.supervisor?.close();
  }

  killAll(): void {
    for (const handle of this.handles) void handle?.kill();
  }

  /** Ends those that this process has started, in order. */
  async stopAll(): Promise<void> {
    await Promise.all(this.handles.map((handle) => handle?.stop(STOP_MS)));
  }

  /**
   * Waits for the hosts, which have been told to end, and kills those that do not.
   * @param all  also those that other processes have started. The process that has told them to end does that.
   */
  async untilEnded(all: boolean): Promise<void> {
    const deadlineMs = Date.now() + END_MS;
    await Promise.all(this.handles.map((handle) => handle?.end(END_MS)));
    if (!all) return;
    for (let host = 0; host < this.context.map.hosts; host++) {
      while (this.file?.isHostLocked(host) && Date.now() < deadlineMs) await pause(LOOK_MS);
      await this.endForeign(host, 'SIGKILL');
    }
  }

  /** Leaves the hosts to themselves, once those run that are being started: what they report on the way must be heard. */
  async detach(): Promise<void> {
    this.isLeaving = true;
    this.supervisor?.close();
    while (this.starting.size > 0) await pause(LOOK_MS);
    this.close();
    for (const handle of this.handles) handle?.detach();
  }
}
