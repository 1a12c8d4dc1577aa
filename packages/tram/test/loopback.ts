/**
 * A cluster across machines as an operator runs it: `tram host` for each, here on addresses of the loopback.
 *
 * A command takes a host for one of this machine if it finds its memory, by the name of the cluster. This name may differ
 * between machines. So with the same configuration under another name, all hosts are on another machine.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type * as mirrors from '../src/hosting/machines/mirror.js';
import { type HostRequest, requestWord } from '../src/hosting/machines/requests.js';
import type * as statuses from '../src/hosting/status.js';
import type { ClusterStatus } from '../src/hosting/status.js';
import { HOST } from '../src/memory/arena.js';
import { Client, TramError } from './built.js';
import { finish, MAIN, type Result, SERVICE, textOf, until } from './cli/command-line.js';
import { freePorts } from './free-ports.js';

const built = (path: string): string => new URL(`../dist/${path}`, import.meta.url).href;
const { Mirror } = (await import(built('hosting/machines/mirror.js'))) as typeof mirrors;
const { statusOf } = (await import(built('hosting/status.js'))) as typeof statuses;

/** The threads of a machine listen at its port and those that follow. */
const THREADS_MAX = 2;

export const NAMES = ['alpha', 'beta', 'gamma'] as const;
export type Name = (typeof NAMES)[number];

interface LogLine {
  /** 30: info, 40: warning, 50: error. */
  readonly level: number;
  readonly msg: string;
}

export class Loopback {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'tram-loopback-'));
  /** The configuration file that all machines have, unless a test says otherwise. */
  readonly config: string = join(this.folder, 'cluster.yaml');
  /** As a machine has it that runs none of the hosts. */
  readonly far: string = join(this.folder, 'far.yaml');
  readonly hosts: HostProcess[] = [];
  readonly clients: Client[] = [];
  readonly name: string;
  private readonly children: ChildProcess[] = [];

  private constructor(
    /** Of each host. */
    readonly addresses: readonly string[],
    readonly port: number,
  ) {
    this.name = `loopback-${process.pid}-${port}`;
  }

  /** Nothing of it runs yet. @param addresses  of the hosts */
  static async make(
    addresses: readonly string[] = NAMES.map((_, host) => `127.0.0.${host + 2}`),
  ): Promise<Loopback> {
    const [port] = await freePorts(1, THREADS_MAX - 1);
    const cluster = new Loopback(addresses, port);
    writeFileSync(join(cluster.folder, 'service.mjs'), SERVICE);
    cluster.writeConfig(cluster.config, addresses);
    cluster.writeConfig(cluster.far, addresses, '', `${cluster.name}-far`);
    const secret = join(cluster.folder, 'cluster.secret');
    expect(await cluster.tram('secret', secret)).toMatchObject({ code: 0 });
    return cluster;
  }

  /** @param name  as its machine calls the cluster */
  writeConfig(file: string, addresses: readonly string[], more = '', name = this.name): void {
    const hosts = NAMES.map(
      (machine, host) =>
        `  - { name: ${machine}, address: ${addresses[host]}, port: ${this.port} }\n`,
    );
    writeFileSync(
      file,
      `memory: machines\nname: ${name}\ngroups: 2\nclients: 4\nlogBytes: 65536\nsuspectAfterMs: 2000\n` +
        `leaders: together\nservice: ./service.mjs\nsecret: cluster.secret\nhosts:\n${hosts.join('')}${more}`,
    );
  }

  /** @param file  the configuration of its machine @param more  options of `tram host` */
  start(name: Name, file: string = this.config, ...more: string[]): HostProcess {
    const host = new HostProcess(name, this.command('host', name, '--config', file, ...more));
    this.hosts.push(host);
    return host;
  }

  /** @param more  options of `tram host` */
  async startAll(...more: string[]): Promise<HostProcess[]> {
    const hosts = NAMES.map((name) => this.start(name, this.config, ...more));
    for (const host of hosts) await host.says('runs its replicas');
    await this.untilLevel();
    return hosts;
  }

  async connect(file: string = this.config): Promise<Client> {
    const client = await Client.connect(file);
    this.clients.push(client);
    return client;
  }

  tram(...args: string[]): Promise<Result> {
    return finish(this.command(...args));
  }

  /** Runs a command on the machine of the hosts. */
  nearby(...args: string[]): Promise<Result> {
    return this.tram(...args, '--config', this.config);
  }

  /** Runs a command on another machine. */
  farAway(...args: string[]): Promise<Result> {
    return this.tram(...args, '--config', this.far);
  }

  command(...args: string[]): ChildProcess {
    const child = spawn(process.execPath, [MAIN, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' },
    });
    this.children.push(child);
    return child;
  }

  async look(file: string = this.config): Promise<ClusterStatus> {
    const mirror = await Mirror.open(file);
    const seen = statusOf(mirror.context);
    await mirror.close();
    return seen;
  }

  /** Asks a host, without the checks of the commands. */
  async ask(who: Name | number, request: HostRequest): Promise<void> {
    const mirror = await Mirror.open(this.far);
    const host = typeof who === 'number' ? who : NAMES.indexOf(who);
    const at = mirror.context.map.host(host) + HOST.request;
    const hasLanded = await mirror.change(host, at, (word) => requestWord(word, request));
    await mirror.close();
    expect(hasLanded).toBe(true);
  }

  /** Of the hosts; none if no host can be reached. */
  async states(): Promise<string[]> {
    try {
      return (await this.look()).hosts.map(({ state }) => state);
    } catch (error) {
      if (error instanceof TramError && error.code === 'TRAM_UNREACHABLE') return [];
      throw error;
    }
  }

  /** Every group has a leader, and all its replicas take part and have delivered the same. */
  async untilLevel(file: string = this.config): Promise<void> {
    await until(async () =>
      (await this.look(file)).groups.every(({ leader, replicas }) => {
        const isMember = replicas.every(
          ({ state, role }) => state === 'up' && (role === 'leader' || role === 'follower'),
        );
        const delivered = new Set(replicas.map((replica) => replica.delivered));
        return leader !== undefined && isMember && delivered.size === 1;
      }),
    );
  }

  /** The memory that a host has left. */
  memoryOf(name: string): string {
    return `/dev/shm/tram-${this.name}-${name}`;
  }

  /** The names of the files with the memory of its hosts, and with what they have left. */
  memories(): string[] {
    return readdirSync('/dev/shm').filter((file) => file.startsWith(`tram-${this.name}-`));
  }

  /** Do all its hosts have memory? */
  hasMemory(): boolean {
    return NAMES.every((name) => existsSync(this.memoryOf(name)));
  }

  async clearUp(): Promise<void> {
    for (const client of this.clients) client.destroy();
    // Also those that were started in the background.
    await this.nearby('down', '--force');
    for (const child of this.children) child.kill('SIGKILL');
    await Promise.all(this.children.map(ended));
    for (const file of this.memories()) rmSync(join('/dev/shm', file));
    rmSync(this.folder, { recursive: true });
  }
}

/** A `tram host`, and what it logs. */
export class HostProcess {
  private readonly stdout: { text: string };
  private readonly stderr: { text: string };

  constructor(
    readonly name: Name,
    readonly child: ChildProcess,
  ) {
    this.stdout = textOf(child.stdout!);
    this.stderr = textOf(child.stderr!);
  }

  get log(): LogLine[] {
    const lines = this.stdout.text.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as LogLine);
  }

  /** What it has warned of. */
  get warnings(): string[] {
    return this.log.filter(({ level }) => level >= 40).map(({ msg }) => msg);
  }

  async says(text: string | RegExp): Promise<void> {
    const isSaid = (): boolean => this.log.some(({ msg }) => msg.match(text) !== null);
    try {
      await until(isSaid);
    } catch (cause) {
      const said = `${this.stdout.text}${this.stderr.text}`;
      throw new Error(`${this.name} never said ${text}:\n${said}`, { cause });
    }
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.child.kill(signal);
    await ended(this.child);
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}
