/**
 * The server processes of a measured system, in a temporary folder, with their output in log files. Used for peers and for
 * clusters across machines.
 *
 * The servers always end with this process: `close()` kills them and removes their files, and so does an exit handler. After a
 * SIGKILL of this process the kernel kills the servers, and the next run removes the files.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { cpuSecondsOf } from '../load/cpu.js';

const READY_LIMIT_MS = 60_000;
const ATTEMPT_LIMIT_MS = 2_000;
const LOOK_MS = 50;
const LOG_LINES = 8;
const PREFIX = 'tram-peer-';
/** Free space required to use a folder in memory: enough for the logs of three servers. */
const MEMORY_FOLDER_BYTES = 4e9;
const SHARED_MEMORY = '/dev/shm';

/** Packages install servers here, but PATH may lack these folders. */
const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

interface Started {
  readonly label: string;
  readonly log: string;
  readonly child: ChildProcess;
}

export class Servers {
  /** Removed by `close` with its contents. */
  readonly folder: string;
  private readonly started: Started[] = [];
  private readonly otherFiles: string[] = [];
  private readonly readyLimitMs = performance.now() + READY_LIMIT_MS;
  private readonly atExit = (): void => this.kill();

  constructor(
    name: string,
    private readonly signal: AbortSignal,
    parent = serversParent(),
  ) {
    // Each step adds a listener, which is not a leak.
    setMaxListeners(0, signal);
    for (const folder of new Set([parent, SHARED_MEMORY])) removeLeftovers(folder);
    this.folder = mkdtempSync(join(parent, `${PREFIX}${process.pid}-${name}-`));
    process.once('exit', this.atExit);
  }

  /** Makes a folder for one of the servers. */
  makeFolder(label: string): string {
    const folder = join(this.folder, label);
    mkdirSync(folder);
    return folder;
  }

  /** `close` also removes this file, which a server makes outside the folder. */
  alsoRemove(path: string): void {
    this.otherFiles.push(path);
  }

  /** @param label  identifies the server in messages and file names. One that has ended may be started again */
  start(
    label: string,
    program: string,
    args: readonly string[],
    variables: Readonly<Record<string, string>> = {},
  ): void {
    const log = join(this.folder, `${label}.log`);
    const output = openSync(log, 'a');
    const [command, ...rest] = endingWithParent([program, ...args]);
    const child = spawn(command, rest, {
      cwd: this.folder,
      env: { ...process.env, ...variables },
      stdio: ['ignore', output, output],
    });
    // `ready` notices a server that failed to start.
    child.on('error', () => {});
    closeSync(output);
    const known = this.started.findIndex((earlier) => earlier.label === label);
    this.started.splice(known < 0 ? this.started.length : known, 1, { label, log, child });
  }

  /** Retries until the attempt succeeds. Fails if a server has ended, after the time limit, and if interrupted. */
  async ready<T>(step: string, attempt: () => Promise<T>): Promise<T> {
    for (;;) {
      this.signal.throwIfAborted();
      const ended = this.started.find(({ child }) => hasEnded(child));
      if (ended !== undefined) throw new Error(`server ${ended.label} ended: ${step}`);
      try {
        return await this.within(attempt());
      } catch (cause) {
        if (performance.now() > this.readyLimitMs) {
          throw new Error(`not ready after ${READY_LIMIT_MS / 1000} s: ${step}`, { cause });
        }
        await pause(LOOK_MS);
      }
    }
  }

  /** The last lines of all logs, each with the name of its server. */
  lastLines(): string[] {
    return this.started.flatMap(({ label, log }) =>
      readFileSync(log, 'utf8')
        .split('\n')
        .filter((line) => line.trim() !== '')
        .slice(-LOG_LINES)
        .map((line) => `${label}: ${line}`),
    );
  }

  get pids(): readonly number[] {
    return this.started.flatMap(({ child }) => child.pid ?? []);
  }

  /** User and system time of all servers until now. */
  cpuSeconds(): number {
    return this.pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
  }

  async close(): Promise<void> {
    const ends = this.started
      .filter(({ child }) => child.pid !== undefined && !hasEnded(child))
      .map(({ child }) => once(child, 'exit'));
    for (const { child } of this.started) child.kill('SIGKILL');
    await Promise.all(ends);
    this.kill();
    process.off('exit', this.atExit);
  }

  /** Limits an attempt in time: some servers do not answer at all while they start. */
  private within<T>(attempt: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => reject(new Error('no answer'));
      const timer = setTimeout(giveUp, ATTEMPT_LIMIT_MS);
      this.signal.addEventListener('abort', giveUp);
      attempt.then(resolve, reject).finally(() => {
        clearTimeout(timer);
        this.signal.removeEventListener('abort', giveUp);
      });
    });
  }

  /** Synchronous, because an exit handler cannot wait. */
  private kill(): void {
    for (const { child } of this.started) child.kill('SIGKILL');
    for (const path of [this.folder, ...this.otherFiles]) {
      rmSync(path, { recursive: true, force: true, maxRetries: 3 });
    }
  }
}

/** The usual parent of the servers' folders: in memory if there is room, so that no server waits for a disk. */
export function serversParent(): string {
  return hasRoom(SHARED_MEMORY, MEMORY_FOLDER_BYTES) ? SHARED_MEMORY : tmpdir();
}

/** The path of a program, in PATH or where packages install servers. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), ...SYSTEM_FOLDERS];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The first version number in the output of `--version`; empty if there is none. */
export function versionOf(program: string): string {
  const { stdout, stderr } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return /\d+\.\d+\.\d+/.exec(`${stdout} ${stderr}`)?.[0] ?? '';
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * Wraps a command so that the kernel kills it when this process ends (`setpriv` of util-linux). The shell in between checks
 * that the parent has not ended before the kernel was told.
 */
function endingWithParent(command: readonly string[]): string[] {
  const setpriv = findProgram('setpriv');
  if (setpriv === undefined) return [...command];
  const script = '[ "$PPID" = "$0" ] && exec "$@"';
  return [setpriv, '--pdeathsig', 'KILL', '/bin/sh', '-c', script, String(process.pid), ...command];
}

function hasEnded({ exitCode, signalCode, pid }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null || pid === undefined;
}

/** Removes the folders of runs that were killed. */
function removeLeftovers(parent: string): void {
  for (const name of existsSync(parent) ? readdirSync(parent) : []) {
    const pid = name.startsWith(PREFIX) ? Number.parseInt(name.slice(PREFIX.length), 10) : 0;
    if (pid > 0 && !isAlive(pid)) rmSync(join(parent, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

function hasRoom(folder: string, bytes: number): boolean {
  try {
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= bytes;
  } catch {
    return false;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
