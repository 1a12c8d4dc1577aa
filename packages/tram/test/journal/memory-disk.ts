/** A disk in memory for tests: its files can be looked at and changed, and each call can be made to fail. */
import type { Disk, DiskFile } from '../../src/journal/disk.js';

export class MemoryDisk implements Disk {
  readonly files = new Map<string, Uint8Array>();
  readonly folders = new Set<string>(['']);
  /** The calls that change something, in words. */
  readonly calls: string[] = [];
  /** Is told of each call before it is made, and may throw. */
  before: (call: string) => void = () => undefined;

  list(folder: string): string[] {
    const prefix = folder === '' ? '' : `${folder}/`;
    const names = new Set<string>();
    for (const path of [...this.files.keys(), ...this.folders]) {
      if (path !== folder && path.startsWith(prefix)) {
        names.add(path.slice(prefix.length).split('/')[0]);
      }
    }
    return [...names].sort();
  }

  makeFolder(path: string): void {
    this.call(`make folder ${path}`);
    this.folders.add(path);
  }

  open(path: string, how: 'read' | 'write' | 'create'): DiskFile {
    if (how === 'create') {
      this.call(`create ${path}`);
      if (this.files.has(path)) throw systemError('EEXIST', path);
      this.files.set(path, new Uint8Array(0));
    }
    if (!this.files.has(path)) throw systemError('ENOENT', path);
    return new MemoryFile(this, path);
  }

  rename(from: string, to: string): void {
    this.call(`rename ${from} ${to}`);
    this.files.set(to, this.bytes(from));
    this.files.delete(from);
    for (const file of this.open_) if (file.path === from) file.path = to;
  }

  remove(path: string): void {
    this.call(`remove ${path}`);
    for (const one of [...this.files.keys()]) {
      if (one === path || one.startsWith(`${path}/`)) this.files.delete(one);
    }
    this.folders.delete(path);
  }

  syncFolder(path: string): void {
    this.call(`sync folder ${path}`);
  }

  bytes(path: string): Uint8Array {
    const bytes = this.files.get(path);
    if (bytes === undefined) throw systemError('ENOENT', path);
    return bytes;
  }

  /** The same files on another disk. */
  copy(): MemoryDisk {
    const other = new MemoryDisk();
    for (const folder of this.folders) other.folders.add(folder);
    for (const [path, bytes] of this.files) other.files.set(path, bytes.slice());
    return other;
  }

  call(call: string): void {
    this.before(call);
    this.calls.push(call);
  }

  /** Files follow their names. */
  readonly open_ = new Set<MemoryFile>();
}

class MemoryFile implements DiskFile {
  constructor(
    private readonly disk: MemoryDisk,
    public path: string,
  ) {
    disk.open_.add(this);
  }

  get size(): number {
    return this.disk.bytes(this.path).length;
  }

  read(position: number, bytes: Uint8Array): number {
    const found = this.disk.bytes(this.path).subarray(position, position + bytes.length);
    bytes.set(found);
    return found.length;
  }

  write(position: number, bytes: Uint8Array): void {
    this.disk.call(`write ${this.path}`);
    let content = this.disk.bytes(this.path);
    if (content.length < position + bytes.length) {
      const longer = new Uint8Array(position + bytes.length);
      longer.set(content);
      content = longer;
      this.disk.files.set(this.path, content);
    }
    content.set(bytes, position);
  }

  sync(): void {
    this.disk.call(`sync ${this.path}`);
  }

  close(): void {
    this.disk.open_.delete(this);
  }
}

export function systemError(code: string, what: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}
