/**
 * A cluster that others run, as `Cluster.attach` returns it: threads of this process, processes of this machine, or
 * machines. Methods that `Cluster` has too mean the same here, except that `close` leaves the cluster running.
 *
 * Across machines, what it reads is a copy that is refreshed in the background (`hosting/machines/mirror.ts`).
 */
import { resolve } from 'node:path';
import { Client, type ClusterAddress, type ConnectOptions } from './client.js';
import { requireKnown } from './config/nearest-name.js';
import { TramError } from './errors.js';
import type { AttachedHosts } from './hosting/attached-hosts.js';
import {
  type Attachment,
  attachTo,
  locate,
  type MachinesAttachment,
} from './hosting/attachment.js';
import type { Backup } from './hosting/backup.js';
import { requestLead } from './hosting/oversight.js';
import {
  type Logger,
  RESTART_OPTIONS,
  type RestartOptions,
  type RollingRestartOptions,
  SILENT,
} from './hosting/own-hosts.js';
import type { Restarted } from './hosting/rolling-restart.js';
import { type ClusterStatus, statusOf } from './hosting/status.js';
import { type Delivered, type DeliveriesOptions, follow } from './hosting/tail.js';
import type { MachinesEnding } from './hosting/take-down.js';
import { ARENA, ARENA_STATE } from './memory/arena.js';

export interface AttachOptions {
  /** Default: no logging. */
  readonly logger?: Logger | undefined;
}

export interface ShutDownOptions {
  /**
   * Processes: kills the hosts at once, instead of waiting until they have delivered everything. Machines: also removes
   * the memory of the hosts, and with it the state of the cluster.
   */
  readonly force?: boolean | undefined;
}

export class AttachedCluster implements AsyncDisposable {
  private readonly clients = new Set<Client>();
  private isClosed = false;
  private closing: Promise<void> | undefined;

  private constructor(
    private readonly attachment: Attachment,
    /** As the user has named it, for messages. */
    private readonly name: string,
    private readonly logger: Logger,
  ) {}

  /** @internal */
  static async open(address: ClusterAddress, options: AttachOptions): Promise<AttachedCluster> {
    requireKnown(options, ['logger']);
    const { logger = SILENT } = options;
    const attachment = await attachTo(await locate(address));
    const name = typeof address === 'string' ? address : 'of this process';
    return new AttachedCluster(attachment, name, logger);
  }

  /** Connects a client in this thread. It is closed with this object. */
  async connect(options: ConnectOptions = {}): Promise<Client> {
    this.requireOpen();
    const { attachment } = this;
    const onClosed = (): void => void this.clients.delete(client);
    let client: Client;
    if (attachment.memory === 'machines') {
      client = await Client.join(attachment.config, options, onClosed);
    } else {
      attachment.context.requireRunning(this.name);
      client = Client.attach(attachment.context, options, onClosed);
    }
    this.clients.add(client);
    return client;
  }

  /**
   * Iterates over the messages that a group delivers from now on, in its order. Across machines it begins with the first
   * copy of the group's log, a few milliseconds after the call, and waits while hosts are down. Otherwise it ends with the
   * cluster.
   */
  deliveries({ group, signal }: DeliveriesOptions): AsyncGenerator<Delivered, void, void> {
    this.requireOpen();
    const { attachment } = this;
    const { context } = attachment;
    context.requireGroup(group);
    const isOver = (): boolean =>
      this.isClosed ||
      signal?.aborted === true ||
      Atomics.load(context.arena.words, ARENA.state) === ARENA_STATE.closing;
    if (attachment.memory !== 'machines') return follow(context, group, isOver);
    // Now, and not with the first call of `next`.
    const begun = attachment.follow(group);
    return followCopy(attachment, begun, group, isOver);
  }

  /** Across machines, a copy: usually less than 0.1 s old. Hosts that can't be reached from here count as down. */
  status(): ClusterStatus {
    this.requireOpen();
    return statusOf(this.attachment.context);
  }

  /**
   * Saves what all groups have delivered up to one place in their order, while the cluster goes on, as `Cluster.backup`
   * does. Across machines, a host on this machine must have members of all groups.
   * @throws TRAM_NOT_SUPPORTED if the cluster has no journal, or no host here has a member of a group; TRAM_EXISTS,
   *   TRAM_TIMEOUT, TRAM_SYSTEM
   */
  async backup(directory: string): Promise<Backup> {
    this.requireOpen();
    const { saveBackup } = await import('./hosting/backup.js');
    const { config } = this.attachment.context;
    const client = await this.connect();
    try {
      const source = { config, status: () => this.status(), mark: () => client.mark() };
      return await saveBackup(source, resolve(directory));
    } finally {
      await client.close();
    }
  }

  /** Asks a replica to become the leader of its group. That may fail; `status` shows the leader. */
  lead(group: number, member: number): void {
    this.requireOpen();
    this.attachment.context.requireGroup(group);
    requestLead(this.attachment.context, group, member, 'choice');
  }

  /**
   * Kills a host, as a crash would: at once, possibly in the middle of a write. It stays down until `restart`. A warning
   * is logged if this costs a group its majority, or the last running copy of its state.
   */
  async crash(host: number): Promise<void> {
    const hosts = await this.hosts('crash');
    this.attachment.context.requireHost(host);
    await hosts.crash(host);
  }

  /**
   * Ends a host in order: hands its leaderships to other members, as far as there are some, and lets it end. It stays
   * down until `restart`.
   * @throws TRAM_SNAPSHOT_FAILED if it has ended, but the state of a replica could not be saved. Of a host on another
   *   machine, only its log tells
   */
  async stop(host: number): Promise<void> {
    const hosts = await this.hosts('stop');
    this.attachment.context.requireHost(host);
    await hosts.stop(host);
  }

  /**
   * Restarts a host, and returns when its replicas take part in their groups again and have caught up. A host that runs is
   * stopped in order first. A host on another machine must be running: only its own machine can start it.
   * @throws TRAM_LAST_COPY if too few other members have the state, TRAM_SNAPSHOT_FAILED if the host could not save the
   *   state before its end, TRAM_START_FAILED, TRAM_STATE_LOST, TRAM_TIMEOUT; TRAM_UNREACHABLE if a host on another machine can't be asked
   */
  async restart(host: number, options: RestartOptions = {}): Promise<void> {
    const hosts = await this.hosts('restart');
    this.attachment.context.requireHost(host);
    requireKnown(options, RESTART_OPTIONS);
    await hosts.restart(host, options);
  }

  /**
   * Restarts all hosts, one after the other, while the cluster serves its clients, as `Cluster.rollingRestart` does. Each
   * host of a cluster across machines is asked to restart.
   * @throws TRAM_UNAVAILABLE if not all replicas take part, or a group has no leader; TRAM_STATE_LOST
   */
  async rollingRestart({ signal }: RollingRestartOptions = {}): Promise<void> {
    const hosts = await this.hosts('rollingRestart');
    const onRestarted = ({ title }: Restarted): void =>
      this.logger.info(`host ${title} was restarted`);
    await hosts.restartAll({ signal, onRestarted });
  }

  /**
   * Ends the cluster for all its users, and closes this object. Processes: first waits, for up to 5 seconds, until all
   * replicas have delivered what their groups have ordered; then nothing of the cluster is left but its history.
   * Machines: all hosts end in order and keep their memory.
   * @throws TRAM_UNREACHABLE if hosts could not be asked: they may have ended before. The others have ended.
   */
  async shutDown({ force = false }: ShutDownOptions = {}): Promise<void> {
    this.requireOpen();
    const { attachment } = this;
    if (attachment.memory === 'threads') throw this.notSupported('shutDown', 'close');
    const { takeDown, takeDownMachines } = await import('./hosting/take-down.js');
    await this.closeClients(force);
    try {
      if (attachment.memory === 'processes') {
        const { nameOf } = await import('./hosting/attached-hosts.js');
        await takeDown({ ...attachment, name: nameOf(attachment) }, force);
      } else {
        const { config, mirror } = attachment;
        const { missed } = await takeDownMachines(config, mirror, force);
        if (missed.length > 0) throw notAllEnded(missed);
      }
    } finally {
      await this.close();
    }
  }

  /** Closes the clients of this object, and leaves the cluster running. */
  close(): Promise<void> {
    this.closing ??= this.detach();
    return this.closing;
  }

  private async detach(): Promise<void> {
    await this.closeClients(false);
    this.isClosed = true;
    await this.attachment.close();
  }

  private async closeClients(force: boolean): Promise<void> {
    const clients = [...this.clients];
    if (force) for (const client of clients) client.destroy();
    await Promise.all(clients.map((client) => client.close()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private requireOpen(): void {
    if (this.isClosed) throw new TramError('TRAM_CLOSED', 'this attached cluster is closed');
  }

  private notSupported(what: string, instead: string): TramError {
    return new TramError(
      'TRAM_NOT_SUPPORTED',
      `${what}: a cluster of threads belongs to the thread that has started it`,
      { hint: `Call \`${instead}\` of the \`Cluster\` in that thread.` },
    );
  }

  private async hosts(what: string): Promise<AttachedHosts> {
    this.requireOpen();
    const { attachment } = this;
    if (attachment.memory === 'threads') throw this.notSupported(what, what);
    const { AttachedHosts } = await import('./hosting/attached-hosts.js');
    return new AttachedHosts(attachment, this.logger);
  }
}

/** Follows the copy of a log from when it is there. */
async function* followCopy(
  attachment: MachinesAttachment,
  begun: Promise<() => void>,
  group: number,
  isOver: () => boolean,
): AsyncGenerator<Delivered, void, void> {
  const leave = await begun;
  try {
    yield* follow(attachment.context, group, isOver);
  } finally {
    leave();
  }
}

function notAllEnded(missed: MachinesEnding['missed']): TramError {
  const [{ error: cause }] = missed;
  const messages = missed.map(({ error }) => error.message);
  return new TramError('TRAM_UNREACHABLE', messages.join('; '), { hint: cause.hint, cause });
}
