/** The device of `npm run chaos -- --power --device`: a power cut loses what was not synced, and nothing else. */
import {
  closeSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

interface Disk {
  readonly path: string;
  cutPower(): void;
  close(): void;
}

const { LoopDisk } = (await import(new URL('../../chaos/loop-disk.mjs', import.meta.url).href)) as {
  LoopDisk: (new (directory: string) => Disk) & { missing(): string | undefined };
};

test('a power cut loses bytes and names that were not synced', (context) => {
  const missing = LoopDisk.missing();
  context.skip(missing !== undefined, missing);
  const directory = mkdtempSync(join(tmpdir(), 'tram-disk-'));
  const disk = new LoopDisk(directory);
  try {
    const file = openSync(join(disk.path, 'file'), 'w');
    writeSync(file, 'synced');
    fsyncSync(file);
    const folder = openSync(disk.path, 'r');
    fsyncSync(folder);
    closeSync(folder);
    writeSync(file, ', and more');
    closeSync(file);
    writeFileSync(join(disk.path, 'other'), 'not synced');
    disk.cutPower();
    expect(readdirSync(disk.path)).toEqual(['file', 'lost+found']);
    expect(readFileSync(join(disk.path, 'file'), 'utf8')).toBe('synced');
  } finally {
    disk.close();
    rmSync(directory, { recursive: true });
  }
});
