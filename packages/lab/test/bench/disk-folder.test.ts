/** Which file system a folder is on, and that one in memory is refused. */
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fileSystemIn, isOnDisk, makeDiskFolder } from '../../src/bench/disk-folder.js';

const MOUNTS = [
  '/dev/vda / ext4 rw 0 0',
  'tmpfs /tmp tmpfs rw 0 0',
  '/dev/vdb /tmp/with\\040space xfs rw 0 0',
  'tmpfs /srv tmpfs rw 0 0',
  '/dev/vdc /srv ext4 rw 0 0',
  '',
].join('\n');

test.each([
  ['/', 'ext4', '/dev/vda'],
  ['/tmpfoo', 'ext4', '/dev/vda'],
  ['/tmp', 'tmpfs', 'tmpfs'],
  ['/tmp/a', 'tmpfs', 'tmpfs'],
  ['/tmp/with space/b', 'xfs', '/dev/vdb'],
  ['/srv/later', 'ext4', '/dev/vdc'],
])('the file system of %s is %s on %s', (folder, kind, device) => {
  expect(fileSystemIn(MOUNTS, folder)).toEqual({ kind, device });
});

test('the default folder is on a disk, and is removed with its contents', () => {
  const { path, fileSystem, remove } = makeDiskFolder();
  expect(isOnDisk(fileSystem)).toBe(true);
  expect(existsSync(path)).toBe(true);
  remove();
  expect(existsSync(path)).toBe(false);
});

test('a folder in memory is refused', () => {
  expect(() => makeDiskFolder('/dev/shm')).toThrow('this is in memory: /dev/shm (tmpfs)');
});
