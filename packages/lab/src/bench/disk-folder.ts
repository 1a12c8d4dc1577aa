/**
 * A temporary folder on a disk, for benchmarks that measure synced writes. A file system in memory is refused: there a sync
 * costs nothing, and survives nothing.
 */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { TramError } from 'tram-multicast/internal/errors.js';

export interface FileSystem {
  /** `ext4` */
  readonly kind: string;
  /** `/dev/vda` */
  readonly device: string;
}

export interface DiskFolder {
  readonly path: string;
  readonly fileSystem: FileSystem;
  /** Removes the folder with its contents. */
  remove(): void;
}

const IN_MEMORY: ReadonlySet<string> = new Set(['tmpfs', 'ramfs', 'devtmpfs', 'hugetlbfs']);

/**
 * @param parent  Default: the first of the usual temporary folders, the home folder and the working folder that is on a disk.
 * @throws TRAM_INVALID_ARGUMENT if the parent is in memory
 */
export function makeDiskFolder(parent?: string): DiskFolder {
  const candidates = parent === undefined ? usualFolders() : [resolve(parent)];
  if (parent !== undefined) mkdirSync(parent, { recursive: true });
  const found = candidates.find((folder) => isOnDisk(fileSystemOf(folder)));
  if (found === undefined) throw inMemory(candidates);
  const path = mkdtempSync(join(found, `tram-bench-${process.pid}-`));
  const remove = (): void => rmSync(path, { recursive: true, force: true });
  process.once('exit', remove);
  return {
    path,
    fileSystem: fileSystemOf(path),
    remove: () => {
      process.off('exit', remove);
      remove();
    },
  };
}

export function isOnDisk({ kind }: FileSystem): boolean {
  return !IN_MEMORY.has(kind);
}

/** The file system of an existing folder, as the kernel lists it. */
function fileSystemOf(folder: string): FileSystem {
  return fileSystemIn(readFileSync('/proc/self/mounts', 'utf8'), realpathSync(folder));
}

/** @param mounts  lines of `device folder kind options …`; of two with the same folder, the later one hides the earlier */
export function fileSystemIn(mounts: string, folder: string): FileSystem {
  let best = { device: 'unknown', mounted: '', kind: 'unknown' };
  for (const line of mounts.split('\n')) {
    const [device, mounted, kind] = line.split(' ').map(unescapeOctal);
    if (kind === undefined || !isIn(folder, mounted)) continue;
    if (mounted.length >= best.mounted.length) best = { device, mounted, kind };
  }
  return { kind: best.kind, device: best.device };
}

function isIn(folder: string, mounted: string): boolean {
  return folder === mounted || folder.startsWith(mounted === '/' ? '/' : `${mounted}/`);
}

/** The kernel writes a space in a path as `\040`. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

function usualFolders(): string[] {
  return [tmpdir(), '/var/tmp', homedir(), process.cwd()];
}

function inMemory(folders: readonly string[]): TramError {
  const names = folders.map((folder) => `${folder} (${fileSystemOf(folder).kind})`).join(', ');
  return new TramError(
    'TRAM_INVALID_ARGUMENT',
    `the benchmark needs a folder on a disk, but this is in memory: ${names}`,
    { hint: 'Name a folder on a disk.' },
  );
}
