/**
 * A disk that loses what was not synced: a file system on a loop device. Called by `power-round.mjs`. Needs root.
 *
 * The kernel keeps written bytes in its page cache, and writes them to the device later, or when they are synced. A power cut
 * is a copy of the device at that moment, without the page cache: the file system is then mounted from the copy, and recovers
 * by its own journal. What programs have not synced is lost, in whatever order the kernel has not written it yet.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const SIZE = '4G';

export class LoopDisk {
  /** How often the power was cut. */
  cuts = 0;

  /** Why there can be none here; undefined if there can. */
  static missing() {
    if (process.getuid?.() !== 0) return 'a loop device needs root';
    return existsSync('/dev/loop-control') ? undefined : 'there is no /dev/loop-control';
  }

  /** @param {string} directory  for the images and the mount point */
  constructor(directory) {
    this.directory = directory;
    /** Where its files are. */
    this.path = join(directory, 'disk');
    mkdirSync(this.path);
    run('truncate', '-s', SIZE, this.image);
    run('mkfs.ext4', '-q', this.image);
    this.mount();
  }

  get image() {
    return join(this.directory, `disk-${this.cuts}.img`);
  }

  mount() {
    run('mount', '-o', 'loop', this.image, this.path);
  }

  /** Requires that all processes that use it have ended. */
  cutPower() {
    const before = this.image;
    this.cuts++;
    run('cp', '--sparse=always', before, this.image);
    this.close();
    rmSync(before);
    this.mount();
  }

  close() {
    run('umount', this.path);
  }
}

/** @param {string} command @param {string[]} args */
function run(command, ...args) {
  try {
    execFileSync(command, args, { stdio: 'pipe', encoding: 'utf8' });
  } catch (error) {
    const { stderr } = /** @type {any} */ (error);
    throw new Error(`${command} ${args.join(' ')}: ${String(stderr).trim()}`, { cause: error });
  }
}
