/** A disk in memory that loses with a power cut what was not synced: bytes of files, and names in folders. */
import type { Disk, DiskFile } from '../../src/journal/disk.js';
import { systemError } from './memory-disk.js';

/** A file, whatever its name. */
interface Content {
  bytes: Uint8Array;
  durable: Uint8Array;
}

export class PowerDisk implements Disk {
  private names = new Map<string, Content>();
  private durableNames = new Map<string, Content>();
  private folders = new Set<string>();
  private durableFolders = new Set<string>();
  /** Is told before each call that changes something, and may throw. */
  before: () => void = () => undefined;

  /** What was not synced is gone. */
  cutPower(): void {
    this.names = new Map(this.durableNames);
    this.folders = new Set(this.durableFolders);
    for (const content of this.names.values()) content.bytes = content.durable.slice();
  }

  list(folder: string): string[] {
    const prefix = folder === '' ? '' : `${folder}/`;
    const below = [...this.names.keys(), ...this.folders].filter((path) => path.startsWith(prefix));
    return [...new Set(below.map((path) => path.slice(prefix.length).split('/')[0]))].sort();
  }

  makeFolder(path: string): void {
    this.before();
    if (path !== '') this.folders.add(path);
  }

  open(path: string, how: 'read' | 'write' | 'create'): DiskFile {
    if (how === 'create') {
      this.before();
      if (this.names.has(path)) throw systemError('EEXIST', path);
      this.names.set(path, { bytes: new Uint8Array(0), durable: new Uint8Array(0) });
    }
    const content = this.names.get(path);
    if (content === undefined) throw systemError('ENOENT', path);
    return this.fileOf(content);
  }

  private fileOf(content: Content): DiskFile {
    return {
      get size() {
        return content.bytes.length;
      },
      read: (position, bytes) => {
        const found = content.bytes.subarray(position, position + bytes.length);
        bytes.set(found);
        return found.length;
      },
      write: (position, bytes) => {
        this.before();
        const end = Math.max(content.bytes.length, position + bytes.length);
        const longer = new Uint8Array(end);
        longer.set(content.bytes);
        longer.set(bytes, position);
        content.bytes = longer;
      },
      sync: () => {
        this.before();
        content.durable = content.bytes.slice();
      },
      close: () => undefined,
    };
  }

  rename(from: string, to: string): void {
    this.before();
    this.names.set(to, this.names.get(from)!);
    this.names.delete(from);
  }

  remove(path: string): void {
    this.before();
    for (const name of [...this.names.keys()]) {
      if (name === path || name.startsWith(`${path}/`)) this.names.delete(name);
    }
    this.folders.delete(path);
  }

  syncFolder(path: string): void {
    this.before();
    const isIn = (name: string): boolean =>
      name.slice(0, Math.max(0, name.lastIndexOf('/'))) === path;
    for (const name of [...this.durableNames.keys()]) {
      // The names below a folder that is gone are gone with it.
      const isGone = path === '' && !this.folders.has(name.split('/')[0]) && name.includes('/');
      if ((isIn(name) && !this.names.has(name)) || isGone) this.durableNames.delete(name);
    }
    for (const [name, content] of this.names) if (isIn(name)) this.durableNames.set(name, content);
    if (path === '') this.durableFolders = new Set(this.folders);
  }
}
