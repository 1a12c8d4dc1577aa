/**
 * A cluster that others run, as `Cluster.attach` returns it: threads of this process, processes of this machine, or
 * machines. Methods that `Cluster` has too mean the same here, except that `close` leaves the cluster running.
 *
 * Across machines, what it reads is a copy that is refreshed in the background (`hosting/machines/mirror.ts`). A host on
 * this machine is signalled, and started if it has ended. A host on another machine is asked.
 */
import { basename } from 'node:path';
import { Client, type ClusterAddress, type ConnectOptions, requireRunning } from './client.js';
import { TramError } from './errors.js';
import {
  type Attachment,
  attachTo,
  locate,
  type MachinesAttachment,
  type ProcessesAttachment,
} from './hosting/attachment.js';
import type { LocalHost } from './hosting/local-host.js';
import type { RemoteHost } from './hosting/machines/remote-host.js';
import { requestLead } from './hosting/oversight.js';
import { type ClusterStatus, statusOf } from './hosting/status.js';
import { type Delivered, type DeliveriesOptions, follow } from './hosting/tail.js';
import type { MachinesEnding } from './hosting/take-down.js';
import { ARENA, ARENA_STATE } from './memory/arena.js';

export interface ShutDownOptions {
  /**
   * Processes: kills the hosts at once, instead of waiting until they have delivered everything. Machines: also removes
   * the memory of the hosts, and with it the state of the cluster.
   */
  readonly force?: boolean;
}

/** How long a host may take to end, and to be a member of all its groups again. */
const END_MS = 10_000;
const RESTART_MS = 30_000;

export class AttachedCluster implements AsyncDisposable {
  private readonly clients = new Set<Client>();
  private isClosed = false;
  private closing: Promise<void> | undefined;

  private constructor(
    private readonly attachment: Attachment,
    /** As the user has named it, for messages. */
    private readonly name: string,
  ) {}

  /** @internal */
  static async open(address: ClusterAddress): Promise<AttachedCluster> {
    const attachment = await attachTo(await locate(address));
    const name = typeof address === 'string' ? address : 'of this process';
    return new AttachedCluster(attachment, name);
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
      requireRunning(attachment.context, this.name);
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

  /** Asks a replica to become the leader of its group. That may fail; `status` shows the leader. */
  lead(group: number, member: number): void {
    this.requireOpen();
    this.attachment.context.requireGroup(group);
    requestLead(this.attachment.context, group, member, 'choice');
  }

  /** Kills a host, as a crash would: at once, possibly in the middle of a write. */
  async crash(host: number): Promise<void> {
    const { killHost } = await import('./hosting/local-host.js');
    await this.withHost(host, 'crash', {
      local: async (local) => void (await killHost(local)),
      remote: (remote) => remote.kill(END_MS),
    });
  }

  /** Ends a host in order: hands its leaderships to other members, as far as there are some, and lets it end. */
  async stop(host: number): Promise<void> {
    const { endHost } = await import('./hosting/local-host.js');
    await this.withHost(host, 'stop', {
      local: async (local) => void (await endHost(local, END_MS)),
      remote: (remote) => remote.stop(END_MS),
    });
  }

  /**
   * Restarts a host, and returns when its replicas are members of their groups again. A host that runs ends in order
   * first. A host on another machine must be running: only its own machine can start it.
   */
  async restart(
    host: number,
    { fresh = false }: { fresh?: boolean | undefined } = {},
  ): Promise<void> {
    await this.withHost(host, 'restart', {
      local: (local) => this.restartLocal(local, fresh),
      remote: async (remote) => void (await remote.restart(fresh, RESTART_MS)),
    });
  }

  /**
   * Ends the cluster, for everybody, and closes this object. Processes: first waits, for up to 5 seconds, until all
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

  private async withHost(
    host: number,
    what: 'crash' | 'stop' | 'restart',
    uses: Uses,
  ): Promise<void> {
    this.requireOpen();
    const { attachment } = this;
    attachment.context.requireHost(host);
    if (attachment.memory === 'threads') throw this.notSupported(what, what);
    const { handOver } = await import('./hosting/rolling-restart.js');
    if (what !== 'crash') await handOver(attachment.context, host);
    if (attachment.memory === 'processes') {
      const { arena, context } = attachment;
      const common = { host, title: String(host), path: arena.path, arena, context };
      await uses.local({ name: nameOf(attachment), ...common });
      return;
    }
    await this.withMachine(attachment, host, what, uses);
  }

  /** A host that runs may belong to a service manager, so it is asked to restart, wherever it is. */
  private async withMachine(
    { config, mirror }: MachinesAttachment,
    host: number,
    what: 'crash' | 'stop' | 'restart',
    uses: Uses,
  ): Promise<void> {
    const { openHere } = await import('./hosting/local-host.js');
    const { readClusterFile } = await import('./hosting/machines/cluster-file.js');
    const { RemoteHost } = await import('./hosting/machines/remote-host.js');
    const remote = new RemoteHost(mirror, host, config);
    const local = openHere(await readClusterFile(config), config, host);
    try {
      const isAsked = what === 'restart' && local?.arena.isHostLocked(host) === true;
      if (local === undefined || isAsked) await uses.remote(remote);
      else if (what === 'restart') await uses.local(local);
      else await remote.endBy(() => uses.local(local), END_MS);
    } finally {
      local?.arena.close();
    }
  }

  private async restartLocal(local: LocalHost, fresh: boolean): Promise<void> {
    const { endHost } = await import('./hosting/local-host.js');
    const { deliveredByGroup, requireOtherCopies, untilRejoined } = await import(
      './hosting/rejoin.js'
    );
    const { startAgain } = await import('./hosting/start-again.js');
    const { host, title } = local;
    const deadlineMs = Date.now() + RESTART_MS;
    const { groups } = this.status();
    if (fresh) requireOtherCopies(groups, host, title);
    await endHost(local, END_MS);
    const starting = await startAgain(local, fresh, deadlineMs);
    try {
      const delivered = deliveredByGroup(groups);
      await untilRejoined(starting, delivered, deadlineMs);
      // Across machines, `status` is a copy and shows it later.
      const seen = { ...starting, groups: () => this.status().groups };
      await untilRejoined(seen, delivered, deadlineMs);
    } finally {
      starting.close();
    }
  }
}

/** What a method does to a host. */
interface Uses {
  local(host: LocalHost): Promise<void>;
  remote(host: RemoteHost): Promise<void>;
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

/** The name of a cluster of processes; of one without a name, what the name of its file has instead. */
function nameOf({ context, arena }: ProcessesAttachment): string {
  return context.config.name ?? basename(arena.path).replace(/^tram-/, '');
}
