/** `tram-lab bench durable` on threads, as a command, with a little recovery. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectDirectory } from '../../../../tram/test/built.js';
import type { DurableResult } from '../../../src/bench/durable/durable.js';

const MAIN = join(projectDirectory, 'packages/lab/dist/cli/main.js');

function bench(...args: string[]): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(process.execPath, [MAIN, 'bench', 'durable', ...args]);
}

test('measures all durabilities beside a bare loop', async () => {
  const { stdout } = await bench('--only', 'one', '--rounds', '1', '--seconds', '0.2', '--json');
  const { costs, disk } = JSON.parse(stdout) as DurableResult;
  expect(disk.kind).not.toBe('tmpfs');
  expect(costs!.loads.map(({ load }) => load)).toEqual(['1 group']);
  for (const { latencyNsP50, messagesPerSecond, bareAlone, ...load } of costs!.loads) {
    for (const { figures, everySecond, always } of [latencyNsP50, messagesPerSecond]) {
      expect(everySecond.median).toBe(figures.everySecond.median / figures.none.median);
      expect(always.median).toBe(figures.always.median / figures.none.median);
    }
    expect(bareAlone).toMatchObject({ writers: 1 });
    expect(load.barePerMessage.median).toBeGreaterThan(0);
    expect(load.bareLoaded).toMatchObject({ writers: costs!.hosts });
    expect(load.shareOfDisk.median).toBeGreaterThan(0);
  }
});

test('measures recovery, with snapshots and without', async () => {
  const { stdout } = await bench('--recovery', '--messages', '1000', '--megabytes', '1', '--json');
  const { recoveries } = JSON.parse(stdout) as DurableResult;
  expect(recoveries!.map(({ name }) => name)).toEqual(['with snapshots', 'without snapshots']);
  for (const { messages, bytes, recoverSeconds } of recoveries!) {
    expect(messages).toBeGreaterThan(0);
    expect(bytes).toBeGreaterThan(0);
    expect(recoverSeconds).toBeGreaterThan(0);
  }
});

test.each([
  [['--recovery', '--memory', 'machines'], '--recovery measures threads or processes'],
  [['--folder', '/dev/shm'], 'this is in memory: /dev/shm'],
])('refuses %j', async (args, complaint) => {
  await expect(bench(...args)).rejects.toThrow(complaint);
});
