/**
 * The files of a journal. No other file knows an offset in them.
 *
 *   host-0/                    the folder of a host
 *     identity                 which cluster and host, and the promised era
 *     cluster.json             the shape of the cluster (cluster-file.ts)
 *     accepts-loss             an operator permits that the next recovery loses messages
 *     era-7/
 *       opened                 the era is open: there once f+1 members of every group have it
 *       g3-opening.snapshot    the state with which group 3 began the era
 *       g3-12345.snapshot      its state before the entry 12345. Counts: it replaces what is older
 *       g3-12345.pending       the same, whole and durable, but it does not count yet. One at a mark is kept until it does
 *       g3-12345.draft         the same, being written
 *       segment-1, segment-2 … batches of entries
 *       spare-1 …              a file that becomes a segment later
 *
 *   every binary file                     a segment
 *   ┌───────┬─────┬─────────┬─────┐       ┌────────┬───────┬───────┬─────────┐
 *   │ magic │ crc │ version │ …   │       │ header │ batch │ batch │ … zeros │
 *   └───────┴─────┴─────────┴─────┘       └────────┴───────┴───────┴─────────┘
 *
 *   a batch                                                        a section: entries of one group
 *   ┌───────┬─────┬───────┬─────────┬────────┬────────┬──────────┐ ┌───────┬───────┬───────┬───────┬──────────────┐
 *   │ magic │ crc │ words │ segment │ number │ synced │ sections │ │ group │ leaps │ words │ index │ words, body  │
 *   └───────┴─────┴───────┴─────────┴────────┴────────┴──────────┘ └───────┴───────┴───────┴───────┴──────────────┘
 *
 * All numbers are little-endian 32-bit words; wide ones take two, the low word first. A checksum covers all that follows
 * it: in a snapshot only the header, which has a second checksum of the state. Headers and batches begin at multiples of
 * a sector. So no write changes a sector that holds an older batch, which may be durable already. (A host that starts writes
 * the last batches again, as they are: scan.ts.)
 *
 * Batches are numbered, without a gap in one era. Each says which batch was the last one known to be durable when it was
 * written. So a reader can tell a torn end, which was never durable, from corruption. A file that was a segment before
 * still holds old batches: they have the number of the old segment.
 *
 * The checksum is CRC-32 of Node, which is native. Files of another format version are refused.
 */
import { crc32 } from 'node:zlib';
import { readWide, writeWide } from '../protocol/wide.js';

/** @internal Incremented whenever a file changes its meaning. */
export const FORMAT_VERSION = 1;
/** @internal The unit in which disks write. */
export const SECTOR_BYTES = 512;
/** @internal */
export const SECTOR_WORDS: number = SECTOR_BYTES / 4;

const MAGIC = {
  identity: 0x444e5254,
  segment: 0x534e5254,
  batch: 0x424e5254,
  snapshot: 0x504e5254,
} as const;

const HEAD = { magic: 0, crc: 1, version: 2 } as const;
/** What the checksum covers begins here. */
const CHECKED = 2;
const CLUSTER_ID_WORDS = 4;

// --- names ---------------------------------------------------------------------------------------

/** @internal */
export const IDENTITY_FILE = 'identity';
const IDENTITY_DRAFT = 'identity.draft';
const OPENED_FILE = 'opened';

/** @internal */
export function eraFolder(era: number): string {
  return `era-${era}`;
}

/** @internal The era of a folder; undefined if it is something else. */
export function eraOf(name: string): number | undefined {
  return numberAfter(/^era-(\d+)$/, name);
}

/** @internal */
export function openedPath(era: number): string {
  return `${eraFolder(era)}/${OPENED_FILE}`;
}

/** @internal */
export function identityDraftPath(): string {
  return IDENTITY_DRAFT;
}

/** @internal */
export function segmentPath(era: number, segment: number): string {
  return `${eraFolder(era)}/segment-${segment}`;
}

/** @internal */
export function sparePath(era: number, spare: number): string {
  return `${eraFolder(era)}/spare-${spare}`;
}

/** @internal */
export function segmentOf(name: string): number | undefined {
  return numberAfter(/^segment-(\d+)$/, name);
}

/** @internal `snapshot`: it counts. */
export type SnapshotState = 'snapshot' | 'pending' | 'draft';

/** @internal The index of a snapshot's state, or that it opens its era. */
export type SnapshotName = number | 'opening';

/** @internal */
export function snapshotPath(
  era: number,
  group: number,
  name: SnapshotName,
  state: SnapshotState,
): string {
  return `${eraFolder(era)}/g${group}-${name}.${state}`;
}

/** @internal The group and the name of a snapshot that counts, or of one that does not yet; undefined if the file is something else. */
export function snapshotOf(
  name: string,
  state: 'snapshot' | 'pending' = 'snapshot',
): { readonly group: number; readonly name: SnapshotName } | undefined {
  const [, group, which, found] = /^g(\d+)-(opening|\d+)\.(snapshot|pending)$/.exec(name) ?? [];
  if (found !== state) return undefined;
  return { group: Number(group), name: which === 'opening' ? which : Number(which) };
}

function numberAfter(pattern: RegExp, name: string): number | undefined {
  const [, digits] = pattern.exec(name) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

// --- headers -------------------------------------------------------------------------------------

/** @internal What is wrong with a file, in words that follow its name. */
export class FormatError extends Error {
  constructor(
    message: string,
    /** The format version of the file, if that is what is wrong. */
    readonly version?: number,
  ) {
    super(message);
  }
}

/** @internal Whose journal it is. */
export interface JournalIdentity {
  /** 32 hexadecimal digits, random, the same on all hosts. */
  readonly clusterId: string;
  readonly host: number;
  /** The host accepts nothing of a lower era. */
  readonly promisedEra: number;
  /** Sessions of clients in the last era that was opened start here; absent if none was. */
  readonly firstSession?: number | undefined;
}

const IDENTITY = { host: 3, promisedEra: 4, clusterId: 5, firstSession: 9, words: 10 } as const;

/** @internal */
export function encodeIdentity(identity: JournalIdentity): Uint8Array {
  const { clusterId, host, promisedEra, firstSession = 0 } = identity;
  const words = new Int32Array(SECTOR_WORDS);
  words[IDENTITY.host] = host;
  words[IDENTITY.promisedEra] = promisedEra;
  words[IDENTITY.firstSession] = firstSession;
  words.set(idWords(clusterId), IDENTITY.clusterId);
  sealHeader(words, MAGIC.identity, IDENTITY.words);
  return bytesOf(words);
}

/** @internal @throws FormatError */
export function decodeIdentity(words: Int32Array): JournalIdentity {
  checkHeader(words, MAGIC.identity, IDENTITY.words);
  return {
    clusterId: idText(words, IDENTITY.clusterId),
    host: words[IDENTITY.host],
    promisedEra: words[IDENTITY.promisedEra],
    firstSession: words[IDENTITY.firstSession] || undefined,
  };
}

/** @internal */
export interface SegmentHeader {
  readonly clusterId: string;
  readonly host: number;
  readonly era: number;
  /** Grows by one with each segment of the era. */
  readonly segment: number;
}

const SEGMENT = { host: 3, era: 4, segment: 5, clusterId: 6, words: 10 } as const;

/** @internal The first sector of a segment. */
export function encodeSegmentHeader(header: SegmentHeader): Uint8Array {
  const words = new Int32Array(SECTOR_WORDS);
  words[SEGMENT.host] = header.host;
  words[SEGMENT.era] = header.era;
  words[SEGMENT.segment] = header.segment;
  words.set(idWords(header.clusterId), SEGMENT.clusterId);
  sealHeader(words, MAGIC.segment, SEGMENT.words);
  return bytesOf(words);
}

/** @internal @throws FormatError */
export function decodeSegmentHeader(words: Int32Array): SegmentHeader {
  checkHeader(words, MAGIC.segment, SEGMENT.words);
  return {
    clusterId: idText(words, SEGMENT.clusterId),
    host: words[SEGMENT.host],
    era: words[SEGMENT.era],
    segment: words[SEGMENT.segment],
  };
}

/** @internal */
export interface SnapshotHeader {
  readonly clusterId: string;
  readonly era: number;
  readonly group: number;
  /** Of the first entry that the state does not include. */
  readonly index: number;
  /** How many marks of the era the state has seen. */
  readonly marks: number;
  /** The last entry that it has seen is a mark. */
  readonly isAtMark: boolean;
  /** The size of the state, which follows the first sector. 0: no state, the service starts as it is. */
  readonly words: number;
  /** Of the state. */
  readonly crc: number;
}

const SNAPSHOT = {
  era: 3,
  group: 4,
  index: 5,
  state: 7,
  crc: 8,
  clusterId: 9,
  marks: 13,
  isAtMark: 14,
  words: 15,
} as const;

/** @internal The first sector of a snapshot. */
export function encodeSnapshotHeader(header: SnapshotHeader): Uint8Array {
  const words = new Int32Array(SECTOR_WORDS);
  words[SNAPSHOT.era] = header.era;
  words[SNAPSHOT.group] = header.group;
  writeWide(words, SNAPSHOT.index, header.index);
  words[SNAPSHOT.state] = header.words;
  words[SNAPSHOT.crc] = header.crc;
  words.set(idWords(header.clusterId), SNAPSHOT.clusterId);
  words[SNAPSHOT.marks] = header.marks;
  words[SNAPSHOT.isAtMark] = header.isAtMark ? 1 : 0;
  sealHeader(words, MAGIC.snapshot, SNAPSHOT.words);
  return bytesOf(words);
}

/** @internal @throws FormatError */
export function decodeSnapshotHeader(words: Int32Array): SnapshotHeader {
  checkHeader(words, MAGIC.snapshot, SNAPSHOT.words);
  return {
    clusterId: idText(words, SNAPSHOT.clusterId),
    era: words[SNAPSHOT.era],
    group: words[SNAPSHOT.group],
    index: readWide(words, SNAPSHOT.index),
    marks: words[SNAPSHOT.marks],
    isAtMark: words[SNAPSHOT.isAtMark] === 1,
    words: words[SNAPSHOT.state],
    crc: words[SNAPSHOT.crc],
  };
}

function sealHeader(words: Int32Array, magic: number, count: number): void {
  words[HEAD.magic] = magic;
  words[HEAD.version] = FORMAT_VERSION;
  words[HEAD.crc] = checksum(words, CHECKED, count);
}

/** @throws FormatError */
function checkHeader(words: Int32Array, magic: number, count: number): void {
  if (words.length < count) throw new FormatError('is too short');
  if (words[HEAD.magic] !== magic) throw new FormatError('has the wrong magic word');
  if (words[HEAD.crc] !== checksum(words, CHECKED, count)) {
    throw new FormatError('has a header with a wrong checksum');
  }
  const version = words[HEAD.version];
  if (version !== FORMAT_VERSION) throw new FormatError(`has format ${version}`, version);
}

// --- batches -------------------------------------------------------------------------------------

const BATCH = { words: 2, segment: 3, number: 4, synced: 6 } as const;

/** @internal Where the sections of a batch begin. */
export const BATCH_HEAD_WORDS = 8;

/** @internal The words of a section before its entries. */
export const SECTION = {
  group: 0,
  /** 1 if entries before it were left out, so that it need not continue what is older. */
  leaps: 1,
  /** How many words of entries follow. Each entry has its size in words first, and then its body. */
  words: 2,
  /** Of its first entry. */
  index: 3,
  head: 5,
} as const;

/** @internal */
export interface BatchHeader {
  /** Of its sections. */
  readonly words: number;
  readonly segment: number;
  readonly number: number;
  /** The number of the last batch that was known to be durable when this one was written; 0 if none. */
  readonly synced: number;
}

/** @internal Seals the batch whose sections lie from `BATCH_HEAD_WORDS` on. Fills it up to whole sectors, and returns its words. */
export function sealBatch(words: Int32Array, header: BatchHeader): number {
  const end = BATCH_HEAD_WORDS + header.words;
  words[HEAD.magic] = MAGIC.batch;
  words[BATCH.words] = header.words;
  words[BATCH.segment] = header.segment;
  writeWide(words, BATCH.number, header.number);
  writeWide(words, BATCH.synced, header.synced);
  words[HEAD.crc] = checksum(words, CHECKED, end);
  const filled = sectors(end) * SECTOR_WORDS;
  words.fill(0, end, filled);
  return filled;
}

/** @internal The intact batch at `at` of a segment; undefined if there is none. */
export function batchAt(words: Int32Array, at: number, segment: number): BatchHeader | undefined {
  if (at + BATCH_HEAD_WORDS > words.length) return undefined;
  if (words[at + HEAD.magic] !== MAGIC.batch || words[at + BATCH.segment] !== segment) {
    return undefined;
  }
  const count = words[at + BATCH.words];
  const end = at + BATCH_HEAD_WORDS + count;
  if (count < 0 || end > words.length) return undefined;
  if (words[at + HEAD.crc] !== checksum(words, at + CHECKED, end)) return undefined;
  return {
    words: count,
    segment,
    number: readWide(words, at + BATCH.number),
    synced: readWide(words, at + BATCH.synced),
  };
}

/** @internal How many sectors so many words take. */
export function sectors(words: number): number {
  return Math.ceil(words / SECTOR_WORDS);
}

// --- words and bytes -----------------------------------------------------------------------------

/** One call hashes less than 2 GiB. */
const HASH_BYTES_MAX = 2 ** 30;

/** @internal @param before  the checksum of the bytes before these */
export function checksumOf(bytes: Uint8Array, before = 0): number {
  let crc = before >>> 0;
  for (let at = 0; at < bytes.length; at += HASH_BYTES_MAX) {
    crc = crc32(bytes.subarray(at, at + HASH_BYTES_MAX), crc);
  }
  return crc | 0;
}

function checksum(words: Int32Array, from: number, end: number): number {
  return checksumOf(bytesOf(words, from, end));
}

/** @internal The same memory as bytes. */
export function bytesOf(words: Int32Array, from = 0, end: number = words.length): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset + from * 4, (end - from) * 4);
}

function idWords(id: string): number[] {
  return Array.from({ length: CLUSTER_ID_WORDS }, (_, i) =>
    Number.parseInt(id.slice(i * 8, i * 8 + 8), 16),
  );
}

function idText(words: Int32Array, at: number): string {
  return Array.from(words.subarray(at, at + CLUSTER_ID_WORDS), (word) =>
    (word >>> 0).toString(16).padStart(8, '0'),
  ).join('');
}
