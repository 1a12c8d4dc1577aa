/** Two processes that start, end or clear away clusters of one name at the same time. */
import { existsSync, mkdirSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { withCluster } from '../../src/cli/attached.js';
import { requireDead } from '../../src/cli/remains.js';
import { Cluster } from '../../src/cluster.js';
import { ClusterContext } from '../../src/hosting/cluster-context.js';
import { hostProcesses, starterProcesses } from '../../src/hosting/host-processes.js';
import { askToEnd, pause } from '../../src/hosting/oversight.js';
import { clearAway } from '../../src/hosting/take-down.js';
import { arenaPath, openArenaFile } from '../../src/memory/processes/arena-file.js';
import { useCommandLine } from './command-line.js';

const line = useCommandLine();

test('two starts that find the same dead cluster go on with it together, or one of them does', async () => {
  await line.up();
  await line.killAll();
  const results = await Promise.all([line.tram('up'), line.tram('up')]);
  expect(results.map(({ code }) => code)).toContain(0);
  for (const { code, stderr } of results) {
    expect(stderr).toMatch(code === 0 ? 'resumed cluster' : /is up|supervises/);
  }
  expect(starterProcesses(arenaPath(line.name))).toHaveLength(1);
  expect(await line.tram('send', '--to', '1', '--text', 'x')).toMatchObject({ code: 0 });
});

test('the memory of a cluster that was ended, but not removed, makes way', async () => {
  await line.up();
  await line.killAll();
  await withCluster({ name: line.name }, async ({ context }) => void askToEnd(context));
  expect((await line.up()).stderr).toContain('removed the memory');
});

test('one that removes a dead cluster too late leaves the new cluster of that name alone', async () => {
  await line.up();
  await line.killAll();
  await withCluster({ name: line.name }, async (found) => {
    await requireDead(found);
    // Before this one removes what it has found dead, others have done so, and a new cluster is up.
    await line.tram('down');
    await line.up();
    expect(clearAway(found)).toBe(false);
  });
  expect(existsSync(line.stateDirectory())).toBe(true);
  expect(await line.tram('send', '--to', '1', '--text', 'x')).toMatchObject({ code: 0 });
});

test('one that finds the same dead cluster later, while the other removes it, does not remove it too', async () => {
  await line.up();
  await line.killAll();
  await withCluster({ name: line.name }, async (first) => {
    await withCluster({ name: line.name }, async (second) => {
      const isRemoved = first.arena.removeFile(() => expect(clearAway(second)).toBe(false));
      expect(isRemoved).toBe(true);
      expect(existsSync(first.path)).toBe(false);
      expect(clearAway(second)).toBe(false);
    });
  });
});

test('a host that is restarted on memory that another start removes ends', async () => {
  await line.up();
  await line.killAll();
  await withCluster({ name: line.name }, async (found) => {
    await requireDead(found);
    expect(await line.tram('restart', 'g0/0')).toMatchObject({ code: 0 });
    expect(clearAway(found)).toBe(true);
    while (hostProcesses(found.path).length > 0) await pause(5);
  });
  await line.up();
});

test('the memory of a cluster that starts is locked before others can read it', async () => {
  mkdirSync(line.stateDirectory(), { mode: 0o700 });
  const path = arenaPath(line.name);
  const create = vi.spyOn(ClusterContext, 'create');
  let isLocked: boolean | undefined;
  create.mockImplementationOnce((config, arena) => {
    create.mockRestore();
    const context = ClusterContext.create(config, arena);
    const other = openArenaFile(path);
    isLocked = other.isHostLocked(config.hosts + config.sizes.clients);
    other.close();
    return context;
  });
  // The sources have no built host: the start fails, after what this test is about.
  const options = { groups: 1, memory: 'processes', name: line.name } as const;
  await expect(
    Cluster.start({ ...options, logDirectory: line.stateDirectory() }),
  ).rejects.toThrow();
  expect(isLocked).toBe(true);
});
