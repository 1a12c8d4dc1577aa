/** The bare loop of synced writes, on a disk. The writers run built JavaScript. */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import type * as DiskFolderModule from '../../../src/bench/disk-folder.js';
import type * as SyncedWritesModule from '../../../src/bench/raw/synced-writes.js';

const built = (name: string): string =>
  new URL(`../../../dist/bench/${name}.js`, import.meta.url).href;
const { makeDiskFolder }: typeof DiskFolderModule = await import(built('disk-folder'));
const { measureSyncedWrites }: typeof SyncedWritesModule = await import(built('raw/synced-writes'));

test.each([1, 2])('%i writers write and sync, and leave no files', async (writers) => {
  const folder = makeDiskFolder();
  try {
    const options = { folder: folder.path, writers, bytesPerSync: 4096, seconds: 0.1 };
    const measured = await measureSyncedWrites(options);
    expect(measured).toMatchObject({ writers, bytesPerSync: 4096 });
    expect(measured.latencyNsP99).toBeGreaterThanOrEqual(measured.latencyNsP50);
    expect(measured.bytesPerSecond).toBe(measured.syncsPerSecond * 4096);
    expect(readdirSync(folder.path)).toEqual([]);
  } finally {
    folder.remove();
  }
});
