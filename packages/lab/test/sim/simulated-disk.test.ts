import { describe, expect, it } from 'vitest';
import { Random } from '../../src/sim/random.js';
import { DiskFailure, PowerCut, SimulatedDisk } from '../../src/sim/simulated-disk.js';

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
const bytes = (value: string): Uint8Array => Buffer.from(value);

function contentOf(disk: SimulatedDisk, path: string): string {
  const file = disk.open(path, 'read');
  const content = new Uint8Array(file.size);
  file.read(0, content);
  return text(content);
}

function create(disk: SimulatedDisk, path: string, content: string) {
  const file = disk.open(path, 'create');
  file.write(0, bytes(content));
  return file;
}

/** What is left after a power cut, with many seeds. */
function afterPowerCuts(
  prepare: (disk: SimulatedDisk) => void,
  look: (disk: SimulatedDisk) => string,
) {
  const seen = new Set<string>();
  for (let seed = 1; seed <= 400; seed++) {
    const disk = new SimulatedDisk(new Random(seed));
    prepare(disk);
    disk.cutPower();
    seen.add(look(disk));
  }
  return seen;
}

describe('a simulated disk', () => {
  it('keeps what was synced', () => {
    const seen = afterPowerCuts(
      (disk) => {
        disk.makeFolder('era-1');
        disk.syncFolder('');
        create(disk, 'era-1/a', 'synced').sync();
        disk.syncFolder('era-1');
      },
      (disk) => `${disk.list('')} ${disk.list('era-1')} ${contentOf(disk, 'era-1/a')}`,
    );
    expect([...seen]).toEqual(['era-1 a synced']);
  });

  it('keeps any part of what was not synced', () => {
    const seen = afterPowerCuts(
      (disk) => {
        const file = create(disk, 'a', '......');
        file.sync();
        disk.syncFolder('');
        file.write(0, bytes('ab'));
        file.write(2, bytes('cd'));
      },
      (disk) => contentOf(disk, 'a'),
    );
    const possible = [
      '......',
      'ab....',
      '..cd..',
      'abcd..',
      'a.....',
      '.b....',
      'a.cd..',
      '.bc...',
    ];
    for (const content of possible) expect(seen).toContain(content);
  });

  it('may keep the length of a file without its bytes', () => {
    const seen = afterPowerCuts(
      (disk) => {
        const file = create(disk, 'a', '.');
        file.sync();
        disk.syncFolder('');
        file.write(1, bytes('b'));
      },
      (disk) => contentOf(disk, 'a'),
    );
    expect(seen).toEqual(new Set(['.', '.b', '.\0']));
  });

  it('keeps any changes of names that fit together', () => {
    const seen = afterPowerCuts(
      (disk) => {
        create(disk, 'old', 'o').sync();
        disk.syncFolder('');
        create(disk, 'draft', 'd').sync();
        disk.rename('draft', 'final');
        disk.remove('old');
      },
      (disk) => `${disk.list('')}`,
    );
    expect(seen).toEqual(new Set(['old', '', 'draft,old', 'draft', 'final,old', 'final']));
  });

  it('keeps a file under its old name, with what was written to it under the new one', () => {
    const seen = afterPowerCuts(
      (disk) => {
        create(disk, 'segment-1', 'one').sync();
        disk.syncFolder('');
        disk.rename('segment-1', 'segment-2');
        const file = disk.open('segment-2', 'write');
        file.write(0, bytes('two'));
        file.sync();
      },
      (disk) => `${disk.list('')} ${contentOf(disk, disk.list('')[0])}`,
    );
    expect(seen).toEqual(new Set(['segment-1 two', 'segment-2 two']));
  });

  it('loses a folder whose name was not synced, with all that is in it', () => {
    const seen = afterPowerCuts(
      (disk) => {
        disk.makeFolder('era-1');
        create(disk, 'era-1/a', 'x').sync();
        disk.syncFolder('era-1');
      },
      (disk) => `${disk.list('')} ${disk.list('era-1')}`,
    );
    expect(seen).toEqual(new Set([' ', 'era-1 a']));
  });

  it('keeps a part of a folder that was being removed', () => {
    const seen = afterPowerCuts(
      (disk) => {
        disk.makeFolder('era-1');
        create(disk, 'era-1/a', 'x').sync();
        create(disk, 'era-1/b', 'x').sync();
        disk.syncFolder('era-1');
        disk.syncFolder('');
        disk.remove('era-1');
      },
      (disk) => `${disk.list('')} ${disk.list('era-1')}`,
    );
    expect(seen).toEqual(new Set([' ', 'era-1 ', 'era-1 a', 'era-1 b', 'era-1 a,b']));
  });

  it('loses nothing when only a process ends', () => {
    const disk = new SimulatedDisk(new Random(1));
    create(disk, 'a', 'unsynced');
    expect(contentOf(disk, 'a')).toBe('unsynced');
  });

  it('refuses a file that was opened before the power cut', () => {
    const disk = new SimulatedDisk(new Random(1));
    const file = create(disk, 'a', 'x');
    disk.cutPower();
    expect(() => file.write(0, bytes('y'))).toThrow('after a power cut');
  });

  it('fails a sync when it is told to', () => {
    const disk = new SimulatedDisk(new Random(1));
    const file = create(disk, 'a', 'x');
    disk.failAfter(1);
    file.sync();
    expect(() => file.sync()).toThrow(DiskFailure);
    file.sync();
  });

  it('has lost what a failed sync has not written, and does not show it before a power cut', () => {
    const seen = afterPowerCuts(
      (disk) => {
        const file = create(disk, 'a', 'x');
        disk.syncFolder('');
        disk.failAfter(0);
        expect(() => file.sync()).toThrow(DiskFailure);
        expect(contentOf(disk, 'a')).toBe('x');
        file.sync();
      },
      (disk) => contentOf(disk, 'a'),
    );
    expect(seen).toEqual(new Set(['', 'x', '\0']));
  });

  it('makes durable what is written again after a failed sync', () => {
    const seen = afterPowerCuts(
      (disk) => {
        const file = create(disk, 'a', 'x');
        disk.syncFolder('');
        disk.failAfter(0);
        expect(() => file.sync()).toThrow(DiskFailure);
        file.write(0, bytes('x'));
        file.sync();
      },
      (disk) => contentOf(disk, 'a'),
    );
    expect(seen).toEqual(new Set(['x']));
  });

  it('cuts the power between two changes when it is told to', () => {
    const disk = new SimulatedDisk(new Random(1));
    disk.throwAfter(2);
    expect(() => create(disk, 'a', 'x').sync()).toThrow(PowerCut);
    disk.cutPower();
    create(disk, 'b', 'x').sync();
  });

  it('shows what is synced', () => {
    const disk = new SimulatedDisk(new Random(1));
    const file = create(disk, 'a', 'synced');
    file.sync();
    expect(disk.synced.list('')).toEqual([]);
    disk.syncFolder('');
    file.write(0, bytes('S'));
    expect(contentOf(disk.synced, 'a')).toBe('synced');
    expect(contentOf(disk, 'a')).toBe('Synced');
  });

  it('rots in synced bytes that were not written last', () => {
    const rotten = new Set<string>();
    for (let seed = 1; seed <= 50; seed++) {
      const disk = new SimulatedDisk(new Random(seed));
      const file = create(disk, 'a', 'old');
      file.sync();
      disk.syncFolder('');
      file.write(3, bytes('last'));
      file.sync();
      file.write(7, bytes('unsynced'));
      expect(disk.rot()).toBe('a');
      const content = contentOf(disk, 'a');
      expect(content.endsWith('lastunsynced')).toBe(true);
      expect(content.startsWith('old')).toBe(false);
      rotten.add(content);
    }
    expect(rotten.size).toBeGreaterThan(10);
  });

  it('has nothing to rot while nothing is synced', () => {
    const disk = new SimulatedDisk(new Random(1));
    create(disk, 'a', 'x');
    expect(disk.rot()).toBeUndefined();
  });

  it('can be lost', () => {
    const disk = new SimulatedDisk(new Random(1));
    create(disk, 'a', 'x').sync();
    disk.syncFolder('');
    disk.lose();
    expect(disk.list('')).toEqual([]);
  });
});
