/** Lifelines, with real processes: what others see when the holder is stopped, killed, ends in order or starts again. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ARENA, ARENA_MAGIC, ARENA_VERSION } from 'tram-multicast/internal/memory/arena.js';
import {
  type ArenaFile,
  arenaPath,
  createArenaFile,
  removeArenaFile,
} from 'tram-multicast/internal/memory/processes/arena-file.js';
import { isCut } from 'tram-multicast/internal/memory/processes/lifelines.js';
import { afterEach, beforeEach, expect, test } from 'vitest';

const CHILD = fileURLToPath(new URL('./arena-file-child.mjs', import.meta.url));
const WORDS = 4096;
const LIFELINE = 1024;
const OTHER = 1040;
const PARKED = [2000, 2001];
/** Generous: the machine may be busy. */
const AT_ONCE_MS = 500;

let path: string;
let arena: ArenaFile;
const children: ChildProcess[] = [];

beforeEach((context) => {
  context.skip(process.platform !== 'linux', 'for Linux only');
  path = arenaPath(`test-${process.pid}-${context.task.id}`);
  arena = createArenaFile(path, WORDS);
  arena.words[ARENA.version] = ARENA_VERSION;
  arena.words[ARENA.words] = WORDS;
  Atomics.store(arena.words, ARENA.magic, ARENA_MAGIC);
});

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  arena?.close();
  removeArenaFile(path);
});

test('it is cut when its holder is killed, not while that is stopped', async () => {
  const lifelines = arena.watchLifelines([LIFELINE, OTHER], PARKED[0]);
  expect(lifelines.haveChanged()).toBe(false);
  const holder = start('lifeline', LIFELINE);
  await heard(holder, 'held');
  await heard(start('lifeline', OTHER), 'held');
  expect(arena.words[LIFELINE]).toBe(holder.pid);
  expect(lifelines.haveChanged()).toBe(true);
  expect(lifelines.haveChanged()).toBe(false);

  holder.kill('SIGSTOP');
  lifelines.parking.wait(PARKED[0], 0, 20_000);
  expect(lifelines.haveChanged()).toBe(false);

  const killed = performance.now();
  holder.kill('SIGKILL');
  while (!lifelines.haveChanged()) await turn();
  console.log(`a killed holder was known after ${(performance.now() - killed).toFixed(2)} ms`);
  expect(isCut(arena.words, LIFELINE)).toBe(true);
  expect(isCut(arena.words, OTHER)).toBe(false);
});

test('its end wakes one of those that sleep, without a time limit', async () => {
  const holder = start('lifeline', LIFELINE);
  await heard(holder, 'held');
  const sleepers: ChildProcess[] = [];
  for (const parked of PARKED) {
    const sleeper = start('watch', parked, LIFELINE);
    await heard(sleeper, 'watches');
    sleepers.push(sleeper);
  }
  await Promise.all(sleepers.map(({ pid }) => untilAsleep(pid!)));
  const woken = Promise.race(sleepers.map((sleeper) => once(sleeper, 'message')));
  const killedMs = Number(process.hrtime.bigint()) / 1e6;
  holder.kill('SIGKILL');
  const [{ isCut: wasCut, atMs }] = await woken;
  expect(wasCut).toBe(true);
  expect(atMs - killedMs).toBeLessThan(AT_ONCE_MS);
});

test('its release wakes too, and is no death', async () => {
  const holder = start('lifeline', LIFELINE);
  await heard(holder, 'held');
  const sleeper = start('watch', PARKED[0], LIFELINE);
  await heard(sleeper, 'watches');
  await untilAsleep(sleeper.pid!);
  const ended = once(holder, 'exit');
  holder.send('end');
  const [{ isCut: wasCut }] = await once(sleeper, 'message');
  expect(wasCut).toBe(false);
  await ended;
  expect(arena.words[LIFELINE]).toBe(0);
});

test('a sleep beside lifelines ends when its own word is woken', async () => {
  await heard(start('lifeline', LIFELINE), 'held');
  const sleeper = start('watch', PARKED[0], LIFELINE);
  await heard(sleeper, 'watches');
  await untilAsleep(sleeper.pid!);
  Atomics.store(arena.words, PARKED[0], 1);
  arena.parking.wake(PARKED[0]);
  await heard(sleeper, 'woken');
});

test('the next holder of a cut lifeline is seen, and its death as well', async () => {
  const lifelines = arena.watchLifelines([LIFELINE], PARKED[0]);
  for (let life = 0; life < 3; life++) {
    const holder = start('lifeline', LIFELINE);
    await heard(holder, 'held');
    expect(isCut(arena.words, LIFELINE)).toBe(false);
    expect(lifelines.haveChanged()).toBe(true);
    // Asks the kernel to wake this process.
    lifelines.parking.wait(PARKED[0], 0, 100);
    const ended = once(holder, 'exit');
    holder.kill('SIGKILL');
    while (!lifelines.haveChanged()) await turn();
    expect(isCut(arena.words, LIFELINE)).toBe(true);
    await ended;
  }
});

test('a change between the last look and the sleep is not slept through', async () => {
  const lifelines = arena.watchLifelines([LIFELINE], PARKED[0]);
  const holder = start('lifeline', LIFELINE);
  await heard(holder, 'held');
  lifelines.haveChanged();
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  lifelines.parking.wait(PARKED[0], 0, Number.POSITIVE_INFINITY);
  expect(lifelines.haveChanged()).toBe(true);
});

function start(job: string, ...numbers: readonly number[]): ChildProcess {
  const child = fork(CHILD, [job, path, ...numbers.map(String)]);
  children.push(child);
  return child;
}

async function heard(child: ChildProcess, message: string): Promise<void> {
  expect(await once(child, 'message')).toEqual([message, undefined]);
}

/** Not all systems tell. Then the sleep may begin after the death, which is also to be noticed. */
async function untilAsleep(pid: number): Promise<void> {
  const untilMs = performance.now() + 1000;
  const isAsleep = (): boolean => readFileSync(`/proc/${pid}/wchan`, 'utf8').includes('futex');
  while (!isAsleep() && performance.now() < untilMs) await turn();
}
