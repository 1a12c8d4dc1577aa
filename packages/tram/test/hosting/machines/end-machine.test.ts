/** The hosts of a machine are one process: its end is the end of all of them. Here, it is one that only sleeps. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  doesMachineRun,
  endHost,
  killHost,
  type LocalHost,
} from '../../../src/hosting/local-host.js';
import { HOST } from '../../../src/memory/arena.js';

let directory: string;
let child: ChildProcess;
let closed: number;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tram-end-'));
  const descriptor = openSync(join(directory, 'arena'), 'w');
  child = spawn('sleep', ['60'], { stdio: [descriptor, 'ignore', 'ignore'] });
  closeSync(descriptor);
  closed = 0;
});

afterEach(() => {
  child.kill('SIGKILL');
  rmSync(directory, { recursive: true });
});

function hasEnded(): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** @param isLocked  does it run? */
function hostThat(host: number, isLocked: () => boolean): LocalHost {
  const words = new Int32Array(HOST.words);
  words[HOST.pid] = child.pid!;
  const arena = { words, isHostLocked: isLocked, close: () => closed++ };
  const path = join(directory, 'arena');
  const context = { map: { host: () => 0 } };
  const local = { name: 'c', host, title: 'alpha', machine: 'alpha', path, arena, context };
  return local as unknown as LocalHost;
}

const ENDS: [string, (local: LocalHost) => Promise<unknown>][] = [
  ['ended', (local) => endHost(local, 10_000)],
  ['killed', killHost],
];

test.each(ENDS)('a machine of which one thread has ended is %s, and awaited', async (_, end) => {
  const besides = (): LocalHost[] => [hostThat(1, () => !hasEnded())];
  await end({ ...hostThat(0, () => false), besides });
  expect(hasEnded()).toBe(true);
  expect(closed).toBeGreaterThan(0);
});

/** A machine of two threads, of which the first one has no lock any more, or not yet. */
function machineOf(first: () => boolean, second: () => boolean): LocalHost {
  return { ...hostThat(0, first), besides: () => [hostThat(1, second)] };
}

test('a machine of which some threads have ended runs until all have', async () => {
  let looks = 0;
  const ending = machineOf(
    () => false,
    () => ++looks < 5,
  );
  expect(await doesMachineRun(ending, 10_000)).toBe(false);
  expect(looks).toBe(5);
  let isUp = false;
  const starting = machineOf(
    () => isUp,
    () => {
      isUp = true;
      return true;
    },
  );
  expect(await doesMachineRun(starting, 10_000)).toBe(true);
  const hanging = machineOf(
    () => false,
    () => true,
  );
  await expect(doesMachineRun(hanging, 20)).rejects.toMatchObject({ code: 'TRAM_HOST_RUNNING' });
});
