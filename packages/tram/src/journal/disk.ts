/**
 * Everything that the journal of a host does with files. `FileDisk` does it with the file system; the simulator has a disk
 * in memory, which loses what was not synced. All calls are synchronous: threads that must not wait for a disk make none.
 *
 * What a power cut may undo: bytes that were written after the last `sync` of their file, and names that were created,
 * renamed or removed after the last `syncFolder` of their folder.
 *
 * `FileDisk` writes whole sectors directly, past the page cache. Hardly anybody reads a journal while its host runs. It would
 * fill memory that others need, and finding a page for each 4 KiB costs a host under load more than the rest of the write.
 */
import {
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { SECTOR_BYTES } from './format.js';

/** @internal Paths are relative to the folder of the host. The folder itself is `''`. */
export interface Disk {
  /** Names in a folder, sorted; none if it does not exist. */
  list(folder: string): string[];
  /** Does nothing if it exists. */
  makeFolder(path: string): void;
  /** `create`: to write a file that must not exist yet. */
  open(path: string, how: 'read' | 'write' | 'create'): DiskFile;
  /** Replaces a file that has the new name. */
  rename(from: string, to: string): void;
  /** A file, or a folder with all that is in it. Does nothing if it does not exist. */
  remove(path: string): void;
  /** Makes the names in a folder durable. */
  syncFolder(path: string): void;
}

/** @internal */
export interface DiskFile {
  readonly size: number;
  /** Returns how many bytes there were. */
  read(position: number, bytes: Uint8Array): number;
  write(position: number, bytes: Uint8Array): void;
  /** Makes the bytes of the file durable. If it throws, nobody knows which of them are, and a second try does not tell. */
  sync(): void;
  close(): void;
}

const FLAGS = { read: 'r', write: 'r+', create: 'wx+' } as const;
/** A system call moves less than 2 GiB. */
const CALL_BYTES_MAX = 2 ** 30;
/** What the journal holds is as secret as the messages. */
const OWNER_ONLY = { folder: 0o700, file: 0o600 };
/** The part of it that is used here: the types of Node lack it. */
declare namespace WebAssembly {
  class Memory {
    constructor(pages: { readonly initial: number; readonly maximum: number });
    readonly buffer: ArrayBuffer;
  }
}
/** Of what is written directly, so much at a time. */
const STAGE_BYTES = 2 ** 20;
const WASM_PAGE_BYTES = 2 ** 16;
/** Direct writes come from memory that begins at a page. Of all memory that a program can have, only WebAssembly's does. */
let stage: Uint8Array | undefined;

/** @internal A folder of the file system. */
export class FileDisk implements Disk {
  /** @param folder  an absolute path */
  constructor(private readonly folder: string) {}

  list(folder: string): string[] {
    try {
      return readdirSync(this.path(folder)).sort();
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }

  makeFolder(path: string): void {
    mkdirSync(this.path(path), { recursive: true, mode: OWNER_ONLY.folder });
  }

  open(path: string, how: 'read' | 'write' | 'create'): DiskFile {
    const descriptor = openSync(this.path(path), FLAGS[how], OWNER_ONLY.file);
    return new OpenFile(descriptor, how === 'read' ? undefined : openDirectly(this.path(path)));
  }

  rename(from: string, to: string): void {
    renameSync(this.path(from), this.path(to));
  }

  remove(path: string): void {
    rmSync(this.path(path), { recursive: true, force: true });
  }

  syncFolder(path: string): void {
    const descriptor = openSync(this.path(path), 'r');
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  }

  private path(path: string): string {
    return join(this.folder, path);
  }
}

/** Undefined if the file system does not permit it. */
function openDirectly(path: string): number | undefined {
  try {
    const pages = STAGE_BYTES / WASM_PAGE_BYTES;
    stage ??= new Uint8Array(new WebAssembly.Memory({ initial: pages, maximum: pages }).buffer);
    return openSync(path, constants.O_WRONLY | constants.O_DIRECT);
  } catch {
    return undefined;
  }
}

class OpenFile implements DiskFile {
  /** @param direct  another descriptor of the file, for direct writes */
  constructor(
    private readonly descriptor: number,
    private direct: number | undefined,
  ) {}

  get size(): number {
    return fstatSync(this.descriptor).size;
  }

  read(position: number, bytes: Uint8Array): number {
    let done = 0;
    while (done < bytes.length) {
      const left = Math.min(bytes.length - done, CALL_BYTES_MAX);
      const count = readSync(this.descriptor, bytes, done, left, position + done);
      if (count === 0) break;
      done += count;
    }
    return done;
  }

  write(position: number, bytes: Uint8Array): void {
    const isWhole = position % SECTOR_BYTES === 0 && bytes.length % SECTOR_BYTES === 0;
    for (let done = isWhole ? this.writeDirectly(position, bytes) : 0; done < bytes.length; ) {
      const left = Math.min(bytes.length - done, CALL_BYTES_MAX);
      done += writeSync(this.descriptor, bytes, done, left, position + done);
    }
  }

  /** Returns how many bytes were written: fewer if the disk has larger sectors, or if the call was cut short. */
  private writeDirectly(position: number, bytes: Uint8Array): number {
    let done = 0;
    while (this.direct !== undefined && done < bytes.length) {
      const part = bytes.subarray(done, done + STAGE_BYTES);
      stage!.set(part);
      try {
        done += writeSync(this.direct, stage!, 0, part.length, position + done);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error;
        this.closeDirect();
      }
    }
    return done;
  }

  private closeDirect(): void {
    if (this.direct !== undefined) closeSync(this.direct);
    this.direct = undefined;
  }

  sync(): void {
    fdatasyncSync(this.descriptor);
  }

  close(): void {
    this.closeDirect();
    closeSync(this.descriptor);
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
