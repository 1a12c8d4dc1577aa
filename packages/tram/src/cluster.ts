/**
 * A cluster that this process starts: `Cluster.start` creates the shared memory, starts the hosts as threads or as
 * processes, and waits until every group has a leader. (One that others run: `attached-cluster.ts`.)
 */
import { randomBytes, randomInt } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { AttachedCluster } from './attached-cluster.js';
import { Client, type ClusterAddress, type ConnectOptions } from './client.js';
import { type ClusterConfig, resolveConfig } from './config/config.js';
import { ConfigError } from './config/mistakes.js';
import type { ClusterOptions } from './config/options.js';
import { TramError } from './errors.js';
import { ClusterContext } from './hosting/cluster-context.js';
import type { HostReport } from './hosting/host.js';
import {
  askToEnd,
  beginTrace,
  discardTrace,
  drain,
  endTrace,
  markEnded,
  replicasDown,
  requestLead,
  starterLock,
  untilLed,
  wakeHosts,
} from './hosting/oversight.js';
import { describeFailure } from './hosting/service.js';
import {
  type HostHandle,
  type HostStarter,
  processStarter,
  threadStarter,
} from './hosting/starters.js';
import { type ClusterStatus, statusOf } from './hosting/status.js';
import { type Delivered, type DeliveriesOptions, follow } from './hosting/tail.js';
import { ARENA, ARENA_STATE } from './memory/arena.js';
import {
  type ArenaFile,
  arenaPath,
  createArenaFile,
  type HostLock,
} from './memory/processes/arena-file.js';
import { saltFrom } from './memory/record.js';
import { threadsArena } from './memory/threads.js';

/** Receives log messages. `console` and pino loggers have this interface. */
export interface Logger {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export interface StartOptions extends ClusterOptions {
  /** Default: no logging. */
  logger?: Logger | undefined;
  /** How long the start may take. Default 30 seconds. */
  startTimeoutMs?: number | undefined;
  /** Aborts the start, and leaves nothing behind. */
  signal?: AbortSignal | undefined;
  /**
   * For processes: a directory in which each host writes its output to a file. Only such hosts can outlive this process
   * (`detach`). Default: hosts inherit the output of this process.
   */
  logDirectory?: string | undefined;
}

const SILENT: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined };
const START_TIMEOUT_MS = 30_000;
/** How long `close` waits until all replicas of a group have delivered the same messages. */
const DRAIN_MS = 5000;
/** How long a host may take to end before it is killed. */
const END_MS = 2000;

const leaderChannel = channel('tram:leader');
const hostChannel = channel('tram:host');

export class Cluster implements AsyncDisposable {
  /** For `Client.connect`: shared memory that can be posted to another thread, or a path for other processes. */
  readonly address: ClusterAddress;
  private readonly clients = new Set<Client>();
  private readonly hosts: (HostHandle | undefined)[] = [];
  private hasTrace = false;
  private isClosed = false;
  private closing: Promise<void> | undefined;
  private ending: Promise<void> | undefined;

  private constructor(
    private readonly context: ClusterContext,
    private readonly starter: HostStarter,
    private readonly logger: Logger,
    /** The file of processes. */
    private readonly file?: ArenaFile,
    /** Held until all hosts run. */
    private readonly starting?: HostLock,
  ) {
    this.address = file?.path ?? context.arena.words.buffer;
  }

  static async start(options: StartOptions): Promise<Cluster> {
    const {
      logger = SILENT,
      startTimeoutMs = START_TIMEOUT_MS,
      signal,
      logDirectory,
      ...rest
    } = options;
    const config = resolveConfig(rest, saltFrom(randomBytes(8)));
    if (signal?.aborted) throw startAborted(signal);
    const cluster = Cluster.create(config, logger, logDirectory);
    try {
      await cluster.begin(startTimeoutMs, signal);
      return cluster;
    } catch (error) {
      await cluster.destroy();
      if (cluster.hasTrace) discardTrace(config.trace!);
      throw signal?.aborted ? startAborted(signal) : error;
    }
  }

  /**
   * Attaches to a cluster that another thread, process or machine runs.
   * @param address  as for `Client.connect`. The configuration file may also describe a cluster of processes.
   */
  static attach(address: ClusterAddress): Promise<AttachedCluster> {
    return AttachedCluster.open(address);
  }

  private static create(
    config: ClusterConfig,
    logger: Logger,
    logDirectory: string | undefined,
  ): Cluster {
    const words = ClusterContext.wordsOf(config);
    if (config.memory === 'processes') {
      const path = arenaPath(config.name ?? `${process.pid}-${randomInt(2 ** 31)}`);
      const arena = createArenaFile(path, words);
      // Before `ClusterContext.create` makes it readable.
      const starting = arena.lockHost(starterLock(config), 0);
      const context = ClusterContext.create(config, arena);
      return new Cluster(context, processStarter(path, logDirectory), logger, arena, starting);
    }
    if (config.memory === 'threads') {
      const buffer = new SharedArrayBuffer(words * 4);
      const context = ClusterContext.create(config, threadsArena(buffer));
      return new Cluster(context, threadStarter(buffer), logger);
    }
    throw new ConfigError(['memory'], "Cluster.start can't start a cluster across machines", {
      hint: 'Start each host on its machine with `tram host`.',
    });
  }

  private async begin(timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
    const { config, map } = this.context;
    const deadlineMs = Date.now() + timeoutMs;
    if (config.trace !== undefined) {
      beginTrace(config, config.trace);
      this.hasTrace = true;
    }
    const giveUp = (): void => {
      for (const host of this.hosts) void host?.kill();
    };
    signal?.addEventListener('abort', giveUp);
    try {
      const hosts = Array.from({ length: map.hosts }, (_, host) => host);
      await Promise.all(hosts.map((host) => this.startHost(host, false, deadlineMs)));
      await untilLed(this.context, deadlineMs, signal);
    } finally {
      signal?.removeEventListener('abort', giveUp);
    }
    Atomics.store(this.words, ARENA.state, ARENA_STATE.running);
    this.starting?.release();
    this.logger.info(
      `cluster of ${config.sizes.groups} groups on ${map.hosts} ${config.memory} is up`,
    );
  }

  private get words(): Int32Array {
    return this.context.arena.words;
  }

  private async startHost(host: number, resumes: boolean, deadlineMs: number): Promise<void> {
    const handle = this.starter.start(host, resumes, {
      onReport: (report) => this.onReport(report),
      onExit: (why) => this.onHostExit(host, why),
    });
    this.hosts[host] = handle;
    try {
      await handle.ready(deadlineMs);
    } catch (error) {
      await handle.kill();
      throw error;
    }
    hostChannel.publish({ what: 'started', host });
  }

  private onReport(report: HostReport): void {
    // While the cluster closes, replicas may still take over from hosts that have ended: not worth a report.
    if (this.isClosed) return;
    if (report.what === 'leader') {
      const { group, member, ballot } = report;
      this.logger.info(`g${group}/${member} leads its group under ballot ${ballot}`);
      leaderChannel.publish({ group, member, ballot });
    } else if (report.what === 'service-failed') {
      this.logger.error(describeFailure(report));
    } else if (report.what === 'trouble') {
      this.logger.error(report.text);
    }
  }

  /** Marks the host as ended and wakes the others, so that they take over at once. */
  private onHostExit(host: number, why: string): void {
    this.hosts[host] = undefined;
    // A cluster that closes, or has detached, no longer has the memory. What its hosts do is their own business.
    if (this.isClosed) return;
    markEnded(this.context, host);
    wakeHosts(this.context);
    this.logger.warn(`host ${host} has ended: ${why}`);
    hostChannel.publish({ what: 'ended', host, why });
  }

  /** Connects a client in this thread. Other threads and processes use `Client.connect`. */
  async connect(options: ConnectOptions = {}): Promise<Client> {
    this.requireOpen();
    const client: Client = Client.attach(this.context, options, () => this.clients.delete(client));
    this.clients.add(client);
    return client;
  }

  /**
   * Iterates over the messages that a group delivers from now on, in its order. Reading does not slow the group down: a
   * reader that falls a whole log behind gets TRAM_LAGGED.
   */
  deliveries({ group, signal }: DeliveriesOptions): AsyncGenerator<Delivered, void, void> {
    this.requireOpen();
    this.context.requireGroup(group);
    return follow(this.context, group, () => this.isClosed || signal?.aborted === true);
  }

  status(): ClusterStatus {
    this.requireOpen();
    return statusOf(this.context);
  }

  /** Asks a replica to become the leader of its group. That may fail; `status` shows the leader. */
  lead(group: number, member: number): void {
    this.requireOpen();
    this.context.requireGroup(group);
    requestLead(this.context, group, member, 'choice');
  }

  /** Kills a host, as a crash would: at once, possibly in the middle of a write. */
  async crash(host: number): Promise<void> {
    this.requireOpen();
    this.context.requireHost(host);
    await this.hosts[host]?.kill();
  }

  /** Restarts a host. It resumes with the memory that it left, or with `fresh` starts with empty memory. */
  async restart(
    host: number,
    { fresh = false }: { fresh?: boolean | undefined } = {},
  ): Promise<void> {
    this.requireOpen();
    this.context.requireHost(host);
    if (this.hosts[host] !== undefined) {
      throw new TramError('TRAM_HOST_RUNNING', `host ${host} is running`);
    }
    await this.startHost(host, !fresh, Date.now() + START_TIMEOUT_MS);
  }

  private requireOpen(): void {
    if (this.isClosed) throw new TramError('TRAM_CLOSED', 'this cluster is closed');
  }

  /**
   * Accepts no more messages, waits for the replies to all messages of this process's clients, and ends the cluster. If a
   * group has lost its majority, it can't reply and `close` waits forever: call `destroy` then.
   */
  close(): Promise<void> {
    this.closing ??= this.drainAndEnd();
    return this.closing;
  }

  private async drainAndEnd(): Promise<void> {
    await Promise.all([...this.clients].map((client) => client.close()));
    const isOver = (): boolean => this.ending !== undefined;
    await this.end(!isOver() && (await drain(this.context, DRAIN_MS, isOver)));
  }

  /** Ends the cluster at once. Unanswered messages may or may not be delivered. */
  async destroy(): Promise<void> {
    for (const client of [...this.clients]) client.destroy();
    await this.end(false);
  }

  private end(isQuiescent: boolean): Promise<void> {
    this.ending ??= this.endHosts(isQuiescent);
    return this.ending;
  }

  private async endHosts(isQuiescent: boolean): Promise<void> {
    this.isClosed = true;
    const down = replicasDown(this.context);
    // Otherwise another process is closing the cluster, and may have started the next one of that name.
    const isOurs = askToEnd(this.context);
    await Promise.all(this.hosts.map((host) => host?.end(END_MS)));
    if (isOurs && this.hasTrace) endTrace(this.context, down, isQuiescent);
    if (isOurs) this.file?.removeFile();
    this.context.arena.close();
  }

  /**
   * Leaves the cluster running without this process: others connect to it by its name. For processes that were started
   * with a `logDirectory`.
   */
  async detach(): Promise<void> {
    this.requireOpen();
    await Promise.all([...this.clients].map((client) => client.close()));
    this.isClosed = true;
    this.ending = Promise.resolve();
    for (const host of this.hosts) host?.detach();
    this.context.arena.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function startAborted({ reason }: AbortSignal): TramError {
  return new TramError('TRAM_ABORTED', 'aborted while the cluster started', { cause: reason });
}
