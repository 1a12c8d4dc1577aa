/** Starts a host that has ended, on this machine, so that it outlives this process and its terminal. */
import { spawn } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { removeUnlocked } from '../memory/processes/arena-file.js';
import { type LocalHost, reopened } from './local-host.js';
import { keepDown } from './oversight.js';
import type { StartedHost } from './rejoin.js';
import { logFile, processStarter } from './starters.js';
import { makeStateDirectory } from './state-directory.js';
import { statusOf } from './status.js';

/** A host that has been started, and what is kept open to look at it. */
export interface Starting extends StartedHost {
  close(): void;
}

/** @throws TRAM_START_FAILED */
export async function startAgain(
  target: LocalHost,
  fresh: boolean,
  deadlineMs: number,
): Promise<Starting> {
  return target.machine === undefined
    ? startProcess(target, fresh, deadlineMs)
    : startMachine(target, target.machine, fresh);
}

async function startProcess(
  target: LocalHost,
  fresh: boolean,
  deadlineMs: number,
): Promise<Starting> {
  const { name, path, host, title, context } = target;
  const logs = makeStateDirectory(name);
  let exit: string | undefined;
  // The starter of the cluster leaves it to us.
  keepDown(context, host);
  const handle = processStarter(path, logs).start(host, !fresh, {
    onReport: () => undefined,
    onExit: (why) => {
      exit = why;
    },
  });
  try {
    await handle.ready(deadlineMs);
  } catch (error) {
    await handle.kill();
    throw error;
  }
  handle.detach();
  return {
    host,
    title,
    log: logFile(logs, host),
    groups: () => statusOf(context).groups,
    ended: () => exit,
    close: () => undefined,
  };
}

/** Starts `tram host` in a session of its own. If it is asked to restart, it starts its successor itself. */
async function startMachine(target: LocalHost, machine: string, fresh: boolean): Promise<Starting> {
  const { name, config, path, host, title } = target;
  // Without memory, the host learns from the others that it had some, and recovers from them.
  if (fresh) removeUnlocked(path, host);
  const log = logFile(makeStateDirectory(`${name}-${machine}`), machine);
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  const descriptor = openSync(log, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o600);
  const main = fileURLToPath(new URL('../cli/main.js', import.meta.url));
  let exit: string | undefined;
  const args = [main, 'host', machine, '--config', config!, '--respawn'];
  const child = spawn(process.execPath, args, {
    detached: true,
    stdio: ['ignore', descriptor, descriptor],
  });
  closeSync(descriptor);
  child.on('exit', (code, signal) => {
    exit = signal ?? `exit code ${code}`;
  });
  child.unref();
  let current: LocalHost | undefined;
  const close = (): void => {
    current?.arena.close();
    current = undefined;
  };
  return {
    host,
    title,
    log,
    groups: async () => {
      // Until the host has locked it, the file may be replaced.
      if (!current?.arena.isHostLocked(current.host)) {
        close();
        current = await reopened(target);
      }
      return current === undefined ? [] : statusOf(current.context).groups;
    },
    ended: () => exit,
    close,
  };
}
