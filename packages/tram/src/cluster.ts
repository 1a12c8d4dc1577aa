/**
 * A cluster that this process starts: `Cluster.start` creates the shared memory, starts the hosts as threads or as
 * processes, and waits until every group has a leader. While this process runs, it restarts hosts that end unexpectedly.
 * (A cluster that others run: `attached-cluster.ts`.)
 */
import { randomBytes, randomInt } from 'node:crypto';
import { resolve } from 'node:path';
import { AttachedCluster, type AttachOptions } from './attached-cluster.js';
import { Client, type ClusterAddress, type ConnectOptions } from './client.js';
import { type ClusterConfig, resolveConfig } from './config/config.js';
import { ConfigError } from './config/mistakes.js';
import { requireKnown } from './config/nearest-name.js';
import { TramError } from './errors.js';
import type { Backup } from './hosting/backup.js';
import { ClusterContext } from './hosting/cluster-context.js';
import { nameThreads } from './hosting/open-arena.js';
import {
  askToEnd,
  becomeStarter,
  beginEraTrace,
  beginTrace,
  discardTrace,
  drain,
  endTrace,
  replicasDown,
  requestLead,
  starterLock,
  untilLed,
} from './hosting/oversight.js';
import {
  OwnHosts,
  RESTART_OPTIONS,
  type RestartOptions,
  type RollingRestartOptions,
  SILENT,
  START_TIMEOUT_MS,
} from './hosting/own-hosts.js';
import { rateLimited } from './hosting/rate-limit.js';
import type { RestoreOptions } from './hosting/restore.js';
import type { StallMessage } from './hosting/stall.js';
import { type HostStarter, processStarter, threadStarter } from './hosting/starters.js';
import { type ClusterStatus, isLocked, statusOf } from './hosting/status.js';
import { type Delivered, type DeliveriesOptions, follow } from './hosting/tail.js';
import type { EraPlan } from './journal/recovery-asks.js';
import { ARENA, ARENA_STATE } from './memory/arena.js';
import {
  type ArenaFile,
  arenaPath,
  createArenaFile,
  openArenaFile,
} from './memory/processes/arena-file.js';
import { saltFrom } from './memory/record.js';
import { threadsArena } from './memory/threads.js';
import { type ResolvedPage, resolvePage } from './page/page-options.js';
import type { PageServer } from './page/server.js';
import {
  logDirectoryOf,
  type ResumeOptions,
  requireDetachable,
  requireLogger,
  type StartOptions,
  type StartSettings,
} from './start-options.js';

/** How long `close` waits until all replicas of a group have delivered the same messages. */
const DRAIN_MS = 5000;

export class Cluster implements AsyncDisposable {
  /** For `Client.connect`: shared memory that can be posted to another thread, or a path for other processes. */
  readonly address: ClusterAddress;
  private readonly clients = new Set<Client>();
  private readonly hosts: OwnHosts;
  private pageServer: PageServer | undefined;
  private hasTrace = false;
  private readonly warn: (text: string) => void;
  private isClosed = false;
  private closing: Promise<void> | undefined;
  private ending: Promise<void> | undefined;

  private constructor(
    private readonly context: ClusterContext,
    starter: HostStarter,
    private readonly settings: StartSettings,
    /** The file of processes. */
    private readonly file?: ArenaFile,
    /** Makes the name of threads free again. */
    private readonly forgetName: () => void = () => undefined,
  ) {
    this.hosts = new OwnHosts(context, starter, settings.logger, file);
    this.address = file?.path ?? context.arena.words.buffer;
    this.warn = rateLimited((text) => settings.logger.warn(text));
  }

  static async start(options: StartOptions): Promise<Cluster> {
    const {
      logger = SILENT,
      startTimeoutMs = START_TIMEOUT_MS,
      signal,
      logDirectory,
      detached = false,
      restartHosts = true,
      page,
      ...rest
      // Without options, the error names the first one that is required.
    } = Object(options) as StartOptions;
    requireLogger(logger);
    const config = resolveConfig(rest, saltFrom(randomBytes(8)));
    if (detached) requireDetachable(config);
    if (signal?.aborted) throw startAborted(signal);
    const settings = {
      logger,
      detached,
      restartHosts,
      logDirectory,
      page: page && resolvePage(page),
    };
    return Cluster.startNew(config, settings, startTimeoutMs, signal);
  }

  private static async startNew(
    config: ClusterConfig,
    settings: StartSettings,
    startTimeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Cluster> {
    const cluster = Cluster.create(config, settings);
    try {
      await cluster.begin(false, startTimeoutMs, signal);
      return cluster;
    } catch (error) {
      await cluster.destroy();
      // With a journal, the era may be open by now, and the next start continues its history.
      if (cluster.hasTrace && config.journal === undefined) discardTrace(config.trace!);
      throw signal?.aborted ? startAborted(signal) : error;
    }
  }

  /**
   * @internal Takes over a detached cluster of processes that has no starter any more: starts the hosts that are down with
   * the memory that they left, and supervises all. If that fails, it stops those hosts again, and the memory stays. With a
   * journal, if no host runs, it recovers the cluster from the journals instead: these have what was acknowledged, and the
   * logs in the memory may have dropped what the journals lacked when the hosts ended.
   * @throws TRAM_EXISTS if the cluster has a starter, TRAM_CLOSED if it was ended; TRAM_STATE_LOST, TRAM_START_FAILED
   */
  static async resume(name: string, options: ResumeOptions): Promise<Cluster> {
    const { logger, startTimeoutMs, signal, logDirectory } = options;
    if (signal.aborted) throw startAborted(signal);
    const arena = openArenaFile(arenaPath(name));
    const settings = { logger, detached: true, restartHosts: true, logDirectory };
    let cluster: Cluster;
    try {
      const context = ClusterContext.attach(arena);
      const { config } = context;
      becomeStarter(context, arena, name);
      if (config.journal !== undefined && !isAnyHostUp(context)) {
        arena.removeFile(() => askToEnd(context));
        arena.close();
        return Cluster.startNew(config, settings, startTimeoutMs, signal);
      }
      cluster = new Cluster(context, processStarter(arena.path, logDirectory), settings, arena);
    } catch (error) {
      arena.close();
      throw error;
    }
    try {
      await cluster.begin(true, startTimeoutMs, signal);
      return cluster;
    } catch (error) {
      await cluster.leaveDown();
      throw signal.aborted ? startAborted(signal) : error;
    }
  }

  /** Ends the hosts that this process has started, in order, and keeps the memory. */
  private async leaveDown(): Promise<void> {
    await this.hosts.stopAll();
    this.isClosed = true;
    this.hosts.close();
    this.context.arena.close();
  }

  /**
   * Attaches to a cluster that another thread, process or machine runs.
   * @param address  as for `Client.connect`. The configuration file may also describe a cluster of processes.
   */
  static attach(address: ClusterAddress, options: AttachOptions = {}): Promise<AttachedCluster> {
    return AttachedCluster.open(address, options);
  }

  private static create(config: ClusterConfig, settings: StartSettings): Cluster {
    const words = ClusterContext.wordsOf(config);
    const { name } = config;
    if (config.memory === 'processes') {
      const { detached, restartHosts } = settings;
      const path = arenaPath(name ?? `${process.pid}-${randomInt(2 ** 31)}`);
      const logs = logDirectoryOf(settings, name);
      const arena = createArenaFile(path, words);
      // Before `ClusterContext.create` makes it readable.
      arena.lockHost(starterLock(config), 0);
      arena.words[ARENA.isDetached] = Number(detached);
      arena.words[ARENA.restartsHosts] = Number(restartHosts);
      const context = ClusterContext.create(config, arena);
      return new Cluster(context, processStarter(path, logs), settings, arena);
    }
    if (config.memory === 'threads') {
      const buffer = new SharedArrayBuffer(words * 4);
      const forget = name === undefined ? undefined : nameThreads(name, buffer);
      const context = ClusterContext.create(config, threadsArena(buffer));
      return new Cluster(context, threadStarter(buffer), settings, undefined, forget);
    }
    throw new ConfigError(['memory'], "Cluster.start can't start a cluster across machines", {
      hint: 'Start each host on its machine with `tram host`.',
    });
  }

  private async begin(
    resumes: boolean,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { config, map } = this.context;
    const deadlineMs = Date.now() + timeoutMs;
    const recovers = !resumes && config.journal !== undefined;
    if (config.trace !== undefined && !recovers) {
      if (!resumes) beginTrace(config, config.trace);
      this.hasTrace = true;
    }
    const giveUp = (): void => void (resumes ? this.hosts.stopAll() : this.hosts.killAll());
    signal?.addEventListener('abort', giveUp);
    try {
      if (resumes) await this.hosts.resumeAll(deadlineMs);
      else if (recovers) await this.recover(timeoutMs);
      else await this.hosts.startAll(deadlineMs);
      // A recovery takes its own time.
      await untilLed(this.context, recovers ? Date.now() + timeoutMs : deadlineMs, signal);
    } finally {
      signal?.removeEventListener('abort', giveUp);
    }
    const { starting, running } = ARENA_STATE;
    Atomics.compareExchange(this.context.arena.words, ARENA.state, starting, running);
    if (this.settings.restartHosts) this.hosts.supervise();
    if (this.settings.page !== undefined) await this.openPage(this.settings.page);
    const { groups } = config.sizes;
    this.settings.logger.info(
      `cluster of ${groups} ${groups === 1 ? 'group' : 'groups'} on ${map.hosts} ${config.memory} is up`,
    );
  }

  private async openPage(options: ResolvedPage): Promise<void> {
    const { openOwnPage } = await import('./page/own-page.js');
    const { context } = this;
    const hosts = {
      crash: (host: number) => this.crash(host),
      restart: (host: number) => this.restart(host),
    };
    this.pageServer = await openOwnPage(context, hosts, options);
  }

  /** With the option `page`: where to open it. If it has a token, keep it secret: the token permits to use the page. */
  get page(): string | undefined {
    return this.pageServer?.url;
  }

  /** Starts the hosts from their journals, in a new era. Clients come in when it is open. */
  private async recover(timeoutMs: number): Promise<void> {
    const { config, arena } = this.context;
    const { recoverLocally } = await import('./hosting/local-recovery.js');
    const { firstSession } = await recoverLocally(config, this.settings.logger, (asks) => {
      this.beginEraTrace(asks[0].plan);
      return this.hosts.openAll(asks, Date.now() + timeoutMs);
    });
    Atomics.store(arena.words, ARENA.sessions, firstSession - 1);
  }

  private beginEraTrace({ groups }: EraPlan): void {
    const { config } = this.context;
    if (config.trace === undefined) return;
    beginEraTrace(config, config.trace, Math.max(...groups.map(({ fromEra }) => fromEra)));
    this.hasTrace = true;
  }

  private readonly warnOfStall = ({ client, missingGroups, reason }: StallMessage): void => {
    const names = missingGroups.map((group) => `g${group}`).join(', ');
    this.warn(
      `client ${client} waits for ${names} for more than a second${reason && `: ${reason}`}`,
    );
  };

  /** Connects a client in this thread. Other threads and processes use `Client.connect`. */
  async connect(options: ConnectOptions = {}): Promise<Client> {
    this.requireOpen();
    const forget = (): void => void this.clients.delete(client);
    const client: Client = Client.attach(this.context, options, forget, this.warnOfStall);
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

  /**
   * Kills a host, as a crash would: at once, possibly in the middle of a write. It stays down until `restart`. A warning
   * is logged if this costs a group its majority, or the last running copy of its state.
   */
  async crash(host: number): Promise<void> {
    this.requireOpen();
    this.context.requireHost(host);
    await this.hosts.crash(host);
  }

  /**
   * Ends a host in order: hands its leaderships to other members, as far as there are some, and lets it end. It stays
   * down until `restart`.
   * @throws TRAM_SNAPSHOT_FAILED if it has ended, but the state of a replica could not be saved
   */
  async stop(host: number): Promise<void> {
    this.requireOpen();
    this.context.requireHost(host);
    await this.hosts.stop(host);
  }

  /**
   * Restarts a host, and returns when its replicas take part in their groups again and have caught up. A host that runs is
   * stopped in order first. It resumes with the memory that it left, or with `fresh` starts with empty memory.
   * @throws TRAM_LAST_COPY if too few other members have the state, TRAM_SNAPSHOT_FAILED if the host could not save the
   *   state before its end, TRAM_START_FAILED, TRAM_STATE_LOST, TRAM_TIMEOUT; TRAM_HOST_RUNNING if the host is being started already
   */
  async restart(host: number, options: RestartOptions = {}): Promise<void> {
    this.requireOpen();
    this.context.requireHost(host);
    requireKnown(options, RESTART_OPTIONS);
    await this.hosts.restart(host, options);
  }

  /**
   * Restarts all hosts, one after the other, while the cluster serves its clients: each is stopped in order, started with
   * the memory that it left, and waited for. Each start loads the module of the service again. Stops at the first host
   * that fails, with an error that names the hosts that were restarted.
   * @throws TRAM_UNAVAILABLE if not all replicas take part, or a group has no leader; TRAM_STATE_LOST
   */
  async rollingRestart(options: RollingRestartOptions = {}): Promise<void> {
    this.requireOpen();
    await this.hosts.restartAll(options);
  }

  /**
   * Saves what all groups have delivered up to one place in their order, while the cluster goes on: everything that was
   * replied to before the call is in it. Needs a journal. Copying blocks this thread.
   * @param directory  must not exist, or be empty
   * @throws TRAM_NOT_SUPPORTED if the cluster has no journal; TRAM_EXISTS, TRAM_TIMEOUT, TRAM_SYSTEM
   */
  async backup(directory: string): Promise<Backup> {
    this.requireOpen();
    const { context } = this;
    const { saveBackup } = await import('./hosting/backup.js');
    const client = await this.connect();
    try {
      const status = (): ClusterStatus => statusOf(context);
      const source = { config: context.config, status, mark: () => client.mark() };
      return await saveBackup(source, resolve(directory));
    } finally {
      await client.close();
    }
  }

  /**
   * Writes the journals from which a cluster of the same shape starts with the state of a backup.
   * @throws TRAM_EXISTS if there are journals; TRAM_NOT_FOUND, TRAM_CORRUPT, TRAM_VERSION_MISMATCH, TRAM_SYSTEM
   */
  static async restore(directory: string, options: RestoreOptions): Promise<void> {
    requireKnown(options, ['journal', 'host']);
    const { restoreBackup } = await import('./hosting/restore.js');
    restoreBackup(resolve(directory), { ...options, journal: resolve(options.journal) });
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
    this.hosts.close();
    this.forgetName();
    const down = replicasDown(this.context);
    // Otherwise another process is closing the cluster, and may have started the next one of that name.
    const isOurs = askToEnd(this.context);
    await this.hosts.untilEnded(isOurs);
    if (isOurs && this.hasTrace) endTrace(this.context, down, isQuiescent);
    if (isOurs) this.file?.removeFile();
    await this.pageServer?.close();
    this.context.arena.close();
  }

  /**
   * Leaves a detached cluster running without this process: others connect to it by its name. From now on nobody restarts
   * its hosts if they end. Hosts that are being started are waited for.
   */
  async detach(): Promise<void> {
    this.requireOpen();
    if (!this.settings.detached) {
      throw new TramError('TRAM_INVALID_ARGUMENT', 'this cluster ends with its process', {
        hint: 'Start it with `detached: true`, so that its hosts can run on without this process.',
      });
    }
    await Promise.all([...this.clients].map((client) => client.close()));
    this.isClosed = true;
    this.ending = Promise.resolve();
    await this.pageServer?.close();
    await this.hosts.detach();
    this.context.arena.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function isAnyHostUp({ map, arena }: ClusterContext): boolean {
  const hosts = Array.from({ length: map.hosts }, (_, host) => host);
  return hosts.some((host) => isLocked(arena, host));
}

function startAborted({ reason }: AbortSignal): TramError {
  return new TramError('TRAM_ABORTED', 'aborted while the cluster started', { cause: reason });
}
