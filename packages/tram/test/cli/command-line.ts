/** The built `tram` as an operator runs it, on a cluster of processes for each test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, expect } from 'vitest';
import { starterProcesses } from '../../src/hosting/host-processes.js';
import type { ClusterStatus } from '../../src/hosting/status.js';

export const MAIN: string = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
/** Small clusters start faster, and fit anywhere. */
export const SMALL: readonly string[] = ['--groups', '3', '--clients', '4', '--log-bytes', '65536'];
const PATIENCE_MS = 20_000;
/** Replies with how many messages the group has delivered, and the payload. */
export const SERVICE = `
  let count = 0;
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  export function deliver({ payload }) {
    return encoder.encode(++count + ' ' + decoder.decode(payload));
  }
  export const snapshot = () => encoder.encode(String(count));
  export const restore = (state) => { count = Number(decoder.decode(state)); };
`;

export interface Result {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Registers the hooks that give each test of a file a cluster name of its own, and clear up after it. */
export function useCommandLine(): CommandLine {
  const line = new CommandLine();
  beforeEach((context) => {
    context.skip(process.platform !== 'linux', 'for Linux only');
    line.next();
  });
  afterEach(() => line.clearUp());
  afterAll(() => rmSync(line.folder, { recursive: true }));
  return line;
}

export class CommandLine {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'tram-cli-test-'));
  readonly service: string = this.write('service.mjs', SERVICE);
  /** Of this test's cluster. */
  name = '';
  private tests = 0;
  private readonly children: ChildProcess[] = [];

  next(): void {
    this.name = `cli-test-${process.pid}-${this.tests++}`;
  }

  async clearUp(): Promise<void> {
    for (const child of this.children.splice(0)) child.kill('SIGKILL');
    await this.tram('down', '--force');
    expect(this.remains()).toEqual([]);
  }

  /** Makes a file. @returns its path */
  write(name: string, text: string): string {
    const file = join(this.folder, name);
    writeFileSync(file, text);
    return file;
  }

  /** Runs a command on this test's cluster. */
  async tram(command: string, ...args: string[]): Promise<Result> {
    return finish(this.start(command, ...args));
  }

  start(command: string, ...args: string[]): ChildProcess {
    const isNamed = command === 'up' || (command !== 'check' && !args.includes('--config'));
    return this.startExactly(command, ...args, ...(isNamed ? ['--name', this.name] : []));
  }

  /** The same without adding which cluster is meant. */
  startExactly(...args: string[]): ChildProcess {
    const child = spawn(process.execPath, [MAIN, ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' },
    });
    return this.kill(child);
  }

  async exactly(...args: string[]): Promise<Result> {
    return finish(this.startExactly(...args));
  }

  /** At the end of the test, if it has not ended by then. */
  kill(child: ChildProcess): ChildProcess {
    this.children.push(child);
    return child;
  }

  /** Runs a command that must succeed and prints JSON. */
  async json<Value>(command: string, ...args: string[]): Promise<Value> {
    const result = await this.tram(command, ...args, '--json');
    expect(result, `${command} ${args.join(' ')}`).toMatchObject({ code: 0 });
    return JSON.parse(result.stdout) as Value;
  }

  async up(...args: string[]): Promise<Result> {
    const result = await this.tram('up', ...SMALL, ...args);
    expect(result).toMatchObject({ code: 0 });
    return result;
  }

  status(): Promise<ClusterStatus> {
    return this.json<ClusterStatus>('status');
  }

  async pids(): Promise<number[]> {
    return (await this.status()).hosts.map(({ pid }) => pid);
  }

  /** Kills the starter and all hosts, and returns when none is left. */
  async killAll(): Promise<void> {
    process.kill(this.starter(), 'SIGKILL');
    for (const pid of await this.pids()) process.kill(pid, 'SIGKILL');
    await until(() => this.processes().length === 0);
  }

  /** The process that `up` leaves in the background. */
  starter(): number {
    const [pid] = starterProcesses(`/dev/shm/tram-${this.name}`);
    if (pid === undefined) throw new Error('there is no starter');
    return pid;
  }

  /** What is left of this test's cluster: files, and processes. */
  remains(): string[] {
    const files = [`/dev/shm/tram-${this.name}`, this.stateDirectory()];
    const processes = this.processes().map((pid) => `process ${pid}`);
    return [...files.filter((file) => existsSync(file)), ...processes];
  }

  stateDirectory(name: string = this.name): string {
    return join(tmpdir(), `tram-${name}-${process.getuid!()}`);
  }

  /** The processes of the cluster: its hosts and its starter. */
  processes(): string[] {
    return readdirSync('/proc').filter((entry) => {
      try {
        const words = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0');
        return words.includes(`/dev/shm/tram-${this.name}`);
      } catch {
        return false;
      }
    });
  }
}

/** @param input  for its stdin */
export async function finish(child: ChildProcess, input = ''): Promise<Result> {
  const stdout = textOf(child.stdout!);
  const stderr = textOf(child.stderr!);
  child.stdin!.on('error', () => undefined).end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** What a stream has said so far. */
export function textOf(stream: NodeJS.ReadableStream): { text: string } {
  const seen = { text: '' };
  stream.setEncoding('utf8').on('data', (text: string) => {
    seen.text += text;
  });
  return seen;
}

/** For conditions that stay true once they are. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (Date.now() > deadlineMs) throw new Error('waited in vain');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
