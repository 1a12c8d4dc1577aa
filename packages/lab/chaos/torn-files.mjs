/**
 * What a power cut may leave in the files of a journal, beyond what a killed process leaves: anything behind the durable end. Called
 * by `power-round.mjs`, after all processes have ended.
 *
 * Which bytes are durable is not known from outside. But no batch is acknowledged, or counted on, before it is complete in its
 * file. So everything behind the last intact batch of an era may be torn, and files that are drafts, or that are no segment yet.
 */
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import {
  BATCH_HEAD_WORDS,
  batchAt,
  eraOf,
  SECTOR_WORDS,
  sectors,
  segmentOf,
} from 'tram-multicast/internal/journal/format.js';

/** @typedef {import('../dist/sim/random.js').Random} Random */

const TORN_BYTES_MAX = 65_536;
const DRAFT = /\.draft$|^spare-/;
const WORD_BYTES = 4;

/** @param {string} journal  the directory of all hosts @param {Random} random @returns {string[]} what was torn, in words */
export function tearFiles(journal, random) {
  return readdirSync(journal).flatMap((host) => {
    const folder = join(journal, host);
    const eras = readdirSync(folder).flatMap((name) => eraOf(name) ?? []);
    return eras.flatMap((era) => tearEra(join(folder, `era-${era}`), random));
  });
}

/** @param {string} folder @param {Random} random */
function tearEra(folder, random) {
  const names = readdirSync(folder);
  const torn = names
    .filter((name) => DRAFT.test(name))
    .map((name) => tearDraft(join(folder, name), random));
  const last = Math.max(0, ...names.flatMap((name) => segmentOf(name) ?? []));
  if (last > 0) torn.push(tearEnd(join(folder, `segment-${last}`), last, random));
  return torn;
}

/** Cuts a file off, or fills it with random bytes from somewhere on. @param {string} path @param {Random} random */
function tearDraft(path, random) {
  const { size } = statSync(path);
  const at = random.below(size + 1);
  if (random.percent(50)) {
    truncateSync(path, at);
    return `${path} ends after ${at} of ${size} bytes`;
  }
  return scribble(path, at, Math.min(size - at, TORN_BYTES_MAX), random);
}

/** Random bytes, or a broken copy of the last batch, behind the last intact batch. @param {string} path @param {number} segment @param {Random} random */
function tearEnd(path, segment, random) {
  const bytes = readFileSync(path);
  const words = new Int32Array(
    bytes.buffer,
    bytes.byteOffset,
    Math.floor(bytes.length / WORD_BYTES),
  );
  let at = SECTOR_WORDS;
  let before = at;
  for (;;) {
    const batch = batchAt(words, at, segment);
    if (batch === undefined) break;
    before = at;
    at += sectors(BATCH_HEAD_WORDS + batch.words) * SECTOR_WORDS;
  }
  const [end, room] = [at * WORD_BYTES, bytes.length - at * WORD_BYTES];
  if (at > before && random.percent(50)) {
    const copy = bytes.subarray(before * WORD_BYTES, Math.min(end, before * WORD_BYTES + room));
    // Not the whole batch: that would be an intact one, with the number of the last.
    write(path, end, copy.subarray(0, random.below(copy.length)));
    return `${path} has a part of a batch at ${end}`;
  }
  return scribble(path, end, random.below(Math.min(room, TORN_BYTES_MAX) + 1), random);
}

/** @param {string} path @param {number} at @param {number} count @param {Random} random */
function scribble(path, at, count, random) {
  write(path, at, Buffer.from(Array.from({ length: count }, () => random.below(256))));
  return `${path} has ${count} random bytes at ${at}`;
}

/** @param {string} path @param {number} at @param {Uint8Array} bytes */
function write(path, at, bytes) {
  const file = openSync(path, 'r+');
  try {
    writeSync(file, bytes, 0, bytes.length, at);
  } finally {
    closeSync(file);
  }
}
