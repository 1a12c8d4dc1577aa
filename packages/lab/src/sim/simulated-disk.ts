/**
 * The disk of a simulated host. It keeps what was synced. Of everything else, a power cut keeps what the seed draws:
 *
 * - of the bytes that were written since the last `sync` of their file, any writes, each of them whole or in part;
 * - of the names that were created, renamed or removed since the last `syncFolder` of their folder, any changes that fit
 *   together: a rename is kept as a whole, and only if what it renames is there.
 *
 * A file may also grow by bytes that were never written: these are zero.
 *
 * A `sync` that fails does to the disk what a power cut does, but processes still read what they have written: as on Linux, the
 * page cache keeps it, takes it for synced, and a later `sync` does not write it. Only if it is written again, it becomes durable.
 * (A file system whose `syncFolder` fails takes no more changes. Here the next one makes up for it.) Called by `durable-host.ts`.
 */
import type { Disk, DiskFile } from 'tram-multicast/internal/journal/disk.js';
import type { Random } from './random.js';

/** A sync fails: the host of the disk ends. */
export class DiskFailure extends Error {}

/** The power is cut in the middle of what a host does with its disk. */
export class PowerCut extends Error {}

interface Write {
  readonly at: number;
  readonly bytes: Uint8Array;
}

class FileNode {
  /** What a process reads. */
  content = new Uint8Array(0);
  /** What was synced. */
  durable = new Uint8Array(0);
  /** Since the last sync. */
  unsynced: Write[] = [];
  /** What the last sync has made durable, and what a power cut has left of later writes. */
  lastSynced: readonly Write[] = [];

  write(at: number, bytes: Uint8Array): void {
    this.unsynced.push({ at, bytes: bytes.slice() });
    this.content = written(this.content, at, bytes);
  }

  sync(): void {
    for (const { at, bytes } of this.unsynced) this.durable = written(this.durable, at, bytes);
    if (this.unsynced.length > 0) this.lastSynced = this.unsynced;
    this.unsynced = [];
  }

  /** The disk has some of what was written, and processes read all of it. @param fateOf  draws how a write survives */
  failSync(random: Random, fateOf: () => Fate): void {
    for (const { at, bytes } of this.unsynced) {
      const fate = fateOf();
      const first = fate === 'torn' && random.percent(50) ? random.below(bytes.length) : 0;
      const last = fate === 'torn' ? first + random.below(bytes.length - first + 1) : bytes.length;
      if (fate !== 'lost') {
        this.durable = written(this.durable, at + first, bytes.subarray(first, last));
      }
      // Its length may survive although its bytes do not.
      if (fate !== 'whole' && random.percent(30)) {
        this.durable = grown(this.durable, at + bytes.length);
      }
    }
    // Nobody knows that these are durable.
    this.lastSynced = [...this.lastSynced, ...this.unsynced];
    this.unsynced = [];
  }

  /** @param fateOf  draws how a write survives */
  cutPower(random: Random, fateOf: () => Fate): void {
    this.failSync(random, fateOf);
    this.content = this.durable.slice();
  }

  /** The synced bytes that were not written last. */
  get oldBytes(): number[] {
    const places: number[] = [];
    for (let at = 0; at < this.durable.length; at++) {
      if (!this.lastSynced.some((write) => at >= write.at && at < write.at + write.bytes.length)) {
        places.push(at);
      }
    }
    return places;
  }
}

class FolderNode {
  names = new Map<string, DiskNode>();
  durable = new Map<string, DiskNode>();
}

type DiskNode = FileNode | FolderNode;

/** Where a name is. */
interface Place {
  readonly folder: FolderNode;
  readonly name: string;
}

/** `node` has come to `to`, has left `from`, or both. */
interface Change {
  readonly node: DiskNode;
  readonly from?: Place;
  readonly to?: Place;
}

type Fate = 'lost' | 'torn' | 'whole';

/** What happens to all writes at once, or that each has a fate of its own. */
type Mood = 'lost' | 'whole' | 'any';

export class SimulatedDisk implements Disk {
  private root = new FolderNode();
  /** The changes of names that no `syncFolder` has made durable, in order. */
  private unsynced: Change[] = [];
  /** A process that opened a file before the last power cut has ended with it. */
  private boots = 0;
  /** How often it was written to, and how often it has synced. */
  writes = 0;
  syncs = 0;
  private syncsUntilFailure = Number.POSITIVE_INFINITY;
  private changesUntilCut = Number.POSITIVE_INFINITY;

  constructor(private readonly random: Random) {}

  // --- what the journal uses -----------------------------------------------------------------

  list(path: string): string[] {
    const folder = this.find(path);
    return folder instanceof FolderNode ? [...folder.names.keys()].sort() : [];
  }

  makeFolder(path: string): void {
    let folder = this.root;
    for (const name of partsOf(path)) {
      let next = folder.names.get(name);
      if (next === undefined) {
        next = new FolderNode();
        this.change({ node: next, to: { folder, name } });
      }
      if (!(next instanceof FolderNode)) throw new Error(`${path} is no folder`);
      folder = next;
    }
  }

  open(path: string, how: 'read' | 'write' | 'create'): DiskFile {
    const place = this.placeOf(path);
    let node = place.folder.names.get(place.name);
    if (how === 'create') {
      if (node !== undefined) throw systemError('EEXIST', path);
      node = new FileNode();
      this.change({ node, to: place });
    }
    if (!(node instanceof FileNode)) throw systemError('ENOENT', path);
    return this.handleOf(node, how);
  }

  rename(path: string, newPath: string): void {
    const from = this.placeOf(path);
    const to = this.placeOf(newPath);
    const node = from.folder.names.get(from.name);
    if (node === undefined) throw systemError('ENOENT', path);
    this.change({ node, from, to });
  }

  remove(path: string): void {
    const node = this.find(path);
    if (node === undefined) return;
    for (const name of node instanceof FolderNode ? [...node.names.keys()] : []) {
      this.remove(`${path}/${name}`);
    }
    this.change({ node, from: this.placeOf(path) });
  }

  syncFolder(path: string): void {
    const folder = this.find(path);
    if (!(folder instanceof FolderNode)) throw systemError('ENOENT', path);
    this.failIfDue();
    const synced = new Set<Change>();
    const needed: Place[] = [];
    for (const change of this.unsynced.toReversed()) {
      const { from, to } = change;
      const concerns = (place: Place | undefined): boolean =>
        place !== undefined &&
        (place.folder === folder || needed.some((other) => isSame(place, other)));
      if (!concerns(from) && !concerns(to)) continue;
      synced.add(change);
      if (from !== undefined) needed.push(from);
    }
    for (const change of this.unsynced) if (synced.has(change)) keep(change);
    this.unsynced = this.unsynced.filter((change) => !synced.has(change));
  }

  // --- faults --------------------------------------------------------------------------------

  /** All that was not synced survives as drawn. Open files are closed. */
  cutPower(): void {
    const { random } = this;
    const mood = this.drawMood();
    const fateOf = this.fatesIn(mood);
    // A file system may keep names in order, or in any order.
    const isOrdered = random.percent(50);
    const keptInOrder = random.below(this.unsynced.length + 1);
    this.unsynced.forEach((change, i) => {
      const isKept = mood === 'any' && isOrdered ? i < keptInOrder : fateOf() === 'whole';
      if (isKept) keep(change);
    });
    this.unsynced = [];
    restart(this.root, (file) => file.cutPower(random, fateOf));
    this.syncsUntilFailure = Number.POSITIVE_INFINITY;
    this.changesUntilCut = Number.POSITIVE_INFINITY;
    this.boots++;
  }

  /** What would be left if all that is not synced were lost. */
  get synced(): SimulatedDisk {
    const copy = new SimulatedDisk(this.random);
    copy.root = syncedFolder(this.root);
    return copy;
  }

  /** The disk is replaced by an empty one. */
  lose(): void {
    this.root = new FolderNode();
    this.unsynced = [];
    this.boots++;
  }

  /** After so many more writes, syncs and changes of names, the next one throws a `PowerCut`. */
  throwAfter(changes: number): void {
    this.changesUntilCut = changes;
  }

  /** After so many more syncs, the next one fails. Those after it do not. */
  failAfter(syncs: number): void {
    this.syncsUntilFailure = syncs;
  }

  /**
   * Some bytes of a file change, among those that were synced and are not the last ones that were: what was written last
   * cannot be told from a write that a power cut has torn. @returns the path of the file; undefined if there is none
   */
  rot(): string | undefined {
    const candidates = [...filesOf(this.root, '')].filter(([, file]) => file.oldBytes.length > 0);
    if (candidates.length === 0) return undefined;
    const [path, file] = this.random.pick(candidates);
    const at = this.random.pick(file.oldBytes);
    const bits = this.random.between(1, 255);
    for (const bytes of [file.durable, file.content]) bytes[at] ^= bits;
    return path;
  }

  // --- inside --------------------------------------------------------------------------------

  /** @param fail  what the failure does */
  private failIfDue(fail: () => void = () => undefined): void {
    this.cutIfDue();
    this.syncs++;
    if (--this.syncsUntilFailure >= 0) return;
    this.syncsUntilFailure = Number.POSITIVE_INFINITY;
    fail();
    throw new DiskFailure('the disk failed');
  }

  private drawMood(): Mood {
    return this.random.pick(['lost', 'whole', 'any', 'any', 'any'] as const);
  }

  private fatesIn(mood: Mood): () => Fate {
    const { random } = this;
    return () =>
      mood === 'any' ? random.pick(['lost', 'lost', 'torn', 'torn', 'whole'] as const) : mood;
  }

  private cutIfDue(): void {
    if (--this.changesUntilCut < 0) throw new PowerCut('the power is cut');
  }

  private change(change: Change): void {
    this.cutIfDue();
    const { node, from, to } = change;
    from?.folder.names.delete(from.name);
    to?.folder.names.set(to.name, node);
    this.unsynced.push(change);
  }

  private find(path: string): DiskNode | undefined {
    let node: DiskNode | undefined = this.root;
    for (const name of partsOf(path)) {
      node = node instanceof FolderNode ? node.names.get(name) : undefined;
    }
    return node;
  }

  private placeOf(path: string): Place {
    const parts = partsOf(path);
    const name = parts.pop()!;
    const folder = this.find(parts.join('/'));
    if (!(folder instanceof FolderNode)) throw systemError('ENOENT', path);
    return { folder, name };
  }

  private handleOf(node: FileNode, how: 'read' | 'write' | 'create'): DiskFile {
    const { boots } = this;
    const requirePower = (): void => {
      if (boots !== this.boots) throw new Error('a process uses a file after a power cut');
    };
    return {
      get size() {
        return node.content.length;
      },
      read: (position, bytes) => {
        requirePower();
        const there = node.content.subarray(position, position + bytes.length);
        bytes.set(there);
        return there.length;
      },
      write: (position, bytes) => {
        requirePower();
        if (how === 'read') throw new Error('the file is open only for reading');
        this.cutIfDue();
        this.writes++;
        node.write(position, bytes);
      },
      sync: () => {
        requirePower();
        this.failIfDue(() => node.failSync(this.random, this.fatesIn(this.drawMood())));
        node.sync();
      },
      close: () => undefined,
    };
  }
}

function syncedFolder(folder: FolderNode): FolderNode {
  const copy = new FolderNode();
  for (const [name, node] of folder.durable) {
    copy.names.set(name, node instanceof FolderNode ? syncedFolder(node) : syncedFile(node));
  }
  return copy;
}

function syncedFile({ durable }: FileNode): FileNode {
  const copy = new FileNode();
  copy.content = durable;
  return copy;
}

/** Make a change of names durable, if what it moves or removes is there. */
function keep({ node, from, to }: Change): void {
  if (from !== undefined) {
    if (from.folder.durable.get(from.name) !== node) return;
    from.folder.durable.delete(from.name);
  }
  to?.folder.durable.set(to.name, node);
}

/** Go on with what is durable. */
function restart(folder: FolderNode, cut: (file: FileNode) => void): void {
  folder.names = new Map(folder.durable);
  for (const node of folder.names.values()) {
    if (node instanceof FolderNode) restart(node, cut);
    else cut(node);
  }
}

function* filesOf(folder: FolderNode, path: string): Generator<[string, FileNode]> {
  for (const [name, node] of [...folder.durable].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (node instanceof FileNode) yield [`${path}${name}`, node];
    else yield* filesOf(node, `${path}${name}/`);
  }
}

function isSame(a: Place, b: Place): boolean {
  return a.folder === b.folder && a.name === b.name;
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

function grown(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  if (bytes.length >= length) return bytes as Uint8Array<ArrayBuffer>;
  const larger = new Uint8Array(length);
  larger.set(bytes);
  return larger;
}

function written(bytes: Uint8Array, at: number, piece: Uint8Array): Uint8Array<ArrayBuffer> {
  if (piece.length === 0) return bytes as Uint8Array<ArrayBuffer>;
  const result = grown(bytes, at + piece.length);
  result.set(piece, at);
  return result;
}

function systemError(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
