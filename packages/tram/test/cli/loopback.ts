/**
 * A cluster across machines, on the loopback of this one.
 *
 * A command takes a host for one of this machine if it finds its memory, by the name of the cluster. This name may differ
 * between machines. So with the same configuration under another name, all hosts are on another machine.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { ClusterStatus } from '../../src/hosting/status.js';
import { type CommandLine, type Result, until } from './command-line.js';

export const NAMES = ['alpha', 'beta', 'gamma'] as const;
export type Name = (typeof NAMES)[number];

export class Loopback {
  private constructor(
    private readonly line: CommandLine,
    /** The configuration file as the hosts have it. */
    readonly near: string,
    /** As another machine has it. */
    readonly far: string,
  ) {}

  /** Nothing of it runs yet. @param addresses  of the hosts */
  static async create(
    line: CommandLine,
    addresses: readonly string[] = NAMES.map(() => '127.0.0.1'),
  ): Promise<Loopback> {
    const ports = await freePorts(NAMES.length);
    const hosts = NAMES.map(
      (name, i) => `  - { name: ${name}, address: ${addresses[i]}, port: ${ports[i]} }\n`,
    );
    const secret = `${line.name}.secret`;
    expect(await line.exactly('secret', join(line.folder, secret))).toMatchObject({ code: 0 });
    const write = (name: string): string =>
      line.write(
        `${name}.yaml`,
        `memory: machines\nname: ${name}\ngroups: 2\nclients: 4\nlogBytes: 65536\nleaders: together\n` +
          `service: ./service.mjs\nsecret: ${secret}\nhosts:\n${hosts.join('')}`,
      );
    return new Loopback(line, write(line.name), write(`${line.name}-far`));
  }

  /** @param more  options of `tram host` */
  startHost(name: Name, ...more: string[]): ChildProcess {
    const child = this.line.startExactly('host', name, '--config', this.near, ...more);
    child.stdout!.resume();
    child.stderr!.resume();
    return child;
  }

  /** All hosts run. @param more  options of `tram host` */
  async up(...more: string[]): Promise<ChildProcess[]> {
    const children = NAMES.map((name) => this.startHost(name, ...more));
    await this.untilUp();
    return children;
  }

  async untilUp(): Promise<void> {
    await until(async () => (await this.states()).every((state) => state === 'up'));
  }

  /** Of the hosts; none if no host can be reached. */
  async states(): Promise<string[]> {
    const { code, stdout } = await this.nearby('status', '--json');
    return code === 0
      ? (JSON.parse(stdout) as ClusterStatus).hosts.map(({ state }) => state)
      : ['unknown'];
  }

  /** Runs a command on the machine of the hosts. */
  nearby(...args: string[]): Promise<Result> {
    return this.line.exactly(...args, '--config', this.near);
  }

  /** Runs a command on another machine. */
  farAway(...args: string[]): Promise<Result> {
    return this.line.exactly(...args, '--config', this.far);
  }

  /** The names of the files with the memory of its hosts. */
  memories(): string[] {
    const prefix = `tram-${this.line.name}-`;
    return readdirSync('/dev/shm').filter((file) => file.startsWith(prefix));
  }

  /** Identifies the file with the memory of a host: the number of its inode. */
  memoryOf(name: Name): number {
    return statSync(`/dev/shm/tram-${this.line.name}-${name}`).ino;
  }

  /** Nothing is left of it. */
  async clearUp(): Promise<void> {
    await this.nearby('down', '--force');
    expect(this.memories()).toEqual([]);
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const free = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return free;
}
