/**
 * The hosts of one machine: one, in this thread; or with `threads` in the configuration one on each of so many worker threads
 * (`machine-thread.ts`), all in this process.
 *
 * To the rest of the cluster, each of them is a host like any other: with its own memory, address, connections and journal.
 * But they start and end together, so that to operators and service managers the machine is one host. If one of them is
 * asked to end, all do. If one fails, the others end in order; and if its thread is gone without having closed its
 * connections, they end at once, because only the end of the process closes those.
 */
import { Worker } from 'node:worker_threads';
import { hostsWith, machineNames } from '../../config/machines.js';
import { nearestName } from '../../config/nearest-name.js';
import { TramError } from '../../errors.js';
import type { HostFailure, HostReport } from '../host.js';
import type { HostHealth } from './health.js';
import type { Log, MachineSettings } from './machine.js';
import { OneHost } from './one-host.js';
import type { HostRequest } from './requests.js';

export interface MachineHosts {
  /** To be called once, also after `stop`. @returns what another machine has asked for, if that is why the hosts have ended */
  run(): Promise<HostRequest | undefined>;
  stop(): void;
  look(): Promise<readonly HostHealth[]>;
}

export interface MachineHostsSettings extends Pick<MachineSettings, 'config' | 'credentials'> {
  /** The name of the machine. */
  readonly machine: string;
  readonly logOf: (host: number) => Log;
  readonly reportOf: (host: number) => (report: HostReport) => void;
}

/** What a thread is given, and what it is told later. */
export type ThreadData = Pick<MachineSettings, 'config' | 'credentials' | 'host'>;
export type ThreadOrder =
  | { readonly what: 'run' }
  | { readonly what: 'stop'; readonly request?: HostRequest | undefined }
  | { readonly what: 'look' };

/** What a thread tells. */
export type ThreadReport =
  | { readonly what: 'opened' }
  | { readonly what: 'log'; readonly level: Parameters<Log>[0]; readonly text: string }
  | { readonly what: 'report'; readonly report: HostReport }
  | { readonly what: 'health'; readonly health: HostHealth }
  /** It has closed its connections, and ends. */
  | {
      readonly what: 'closed';
      readonly request?: HostRequest | undefined;
      readonly failure?: HostFailure | undefined;
    };

/** Resolves when all hosts of the machine have opened their memory. @throws what keeps them from that; TRAM_UNKNOWN_REPLICA */
export async function openHosts(settings: MachineHostsSettings): Promise<MachineHosts> {
  const { config, credentials, machine, logOf, reportOf } = settings;
  const { machines, threads } = config;
  const first = machines.findIndex((one) => one.machine === machine);
  if (first < 0) throw unknownMachine(machine, machineNames(config));
  if (threads > 1) return ThreadedHosts.open(settings, hostsWith(threads, first));
  const one = { config, credentials, host: first, log: logOf(first), report: reportOf(first) };
  const host = new OneHost(one);
  return {
    run: () => host.run(),
    stop: () => host.stop(),
    look: async () => [host.health],
  };
}

class ThreadedHosts implements MachineHosts {
  private readonly threads: readonly HostThread[];
  /** The error of the first host that has failed. */
  private failure: unknown;

  private constructor(
    private readonly settings: MachineHostsSettings,
    private readonly hosts: readonly number[],
  ) {
    this.threads = hosts.map((host) => new HostThread(settings, host));
  }

  static async open(
    settings: MachineHostsSettings,
    hosts: readonly number[],
  ): Promise<ThreadedHosts> {
    const all = new ThreadedHosts(settings, hosts);
    await Promise.all(all.threads.map(({ opened }) => opened));
    if (all.threads.some(({ failure }) => failure !== undefined)) {
      all.stop();
      // Throws the error that ended the host.
      await all.run();
    }
    return all;
  }

  async run(): Promise<HostRequest | undefined> {
    const { threads } = this;
    await Promise.all(threads.map((_, index) => this.follow(index)));
    if (this.failure !== undefined) throw this.failure;
    return threads.find(({ request }) => request !== undefined)?.request;
  }

  /** Runs a host to its end, with which all others end too. */
  private async follow(index: number): Promise<void> {
    const { threads, settings, hosts } = this;
    const thread = threads[index];
    thread.tell({ what: 'run' });
    await thread.ended;
    const { request, failure, hasClosed } = thread;
    if (failure !== undefined && this.failure === undefined) {
      this.failure = failure;
      const why = failure instanceof Error ? failure.message : String(failure);
      const text = `has failed, so all hosts of this machine end: ${why}`;
      settings.logOf(hosts[index])('error', text);
    }
    if (hasClosed) this.stop(request);
    else await Promise.all(threads.map((one) => one.terminate()));
  }

  stop(request?: HostRequest): void {
    for (const thread of this.threads) thread.tell({ what: 'stop', request });
  }

  look(): Promise<readonly HostHealth[]> {
    return Promise.all(this.threads.map((thread) => thread.look()));
  }
}

/** A thread with one host, seen from the main thread. */
class HostThread {
  /** Resolves when it has opened its memory, or has ended. */
  readonly opened: Promise<void>;
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>;
  /** What another machine has asked for, if that is why it has ended. */
  request: HostRequest | undefined;
  /** Why it has failed, if it has. */
  failure: unknown;
  /** Has it closed its connections? */
  hasClosed = false;
  private readonly worker: Worker;
  private hasEnded = false;
  private readonly lookers: ((health: HostHealth) => void)[] = [];
  /** What is seen of it once it has ended. */
  private readonly endedHealth: HostHealth;

  constructor(settings: MachineHostsSettings, host: number) {
    const { config, credentials, logOf, reportOf } = settings;
    const log = logOf(host);
    const report = reportOf(host);
    const { name } = config.machines[host];
    this.endedHealth = { unready: `${name} has ended\n`, metrics: [] };
    const workerData: ThreadData = { config, credentials, host };
    const worker = new Worker(new URL('./machine-thread.js', import.meta.url), { workerData });
    this.worker = worker;
    this.ended = new Promise((resolve) => worker.on('exit', () => resolve()));
    this.opened = new Promise((resolve) => {
      worker.on('message', (message: ThreadReport) => {
        if (message.what === 'opened') resolve();
        else if (message.what === 'log') log(message.level, message.text);
        else if (message.what === 'report') report(message.report);
        else if (message.what === 'health') this.lookers.shift()?.(message.health);
        else this.onClosed(message);
      });
      worker.on('exit', () => resolve());
    });
    // A bug, or the thread has run out of memory.
    worker.on('error', (error) => {
      this.failure ??= error;
    });
    worker.on('exit', (code) => {
      this.hasEnded = true;
      if (!this.hasClosed) this.failure ??= new Error(`thread ${name} ended: exit code ${code}`);
      for (const tell of this.lookers.splice(0)) tell(this.endedHealth);
    });
  }

  private onClosed({ request, failure }: ThreadReport & { readonly what: 'closed' }): void {
    this.hasClosed = true;
    this.request = request;
    if (failure === undefined) return;
    const { code, message, hint, cause } = failure;
    this.failure = new TramError(code, message, { hint, cause });
  }

  tell(order: ThreadOrder): void {
    this.worker.postMessage(order);
  }

  look(): Promise<HostHealth> {
    if (this.hasEnded) return Promise.resolve(this.endedHealth);
    return new Promise((resolve) => {
      this.lookers.push(resolve);
      this.tell({ what: 'look' });
    });
  }

  async terminate(): Promise<void> {
    await this.worker.terminate();
  }
}

function unknownMachine(name: string, names: readonly string[]): TramError {
  const nearest = nearestName(name, names);
  return new TramError(
    'TRAM_UNKNOWN_REPLICA',
    `there is no host ${name}: there are ${names.join(', ')}`,
    { hint: nearest === undefined ? 'Choose one of these names.' : `Did you mean ${nearest}?` },
  );
}
