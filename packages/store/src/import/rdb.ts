/** Reads an RDB file: what Redis saves, and what it sends to a replica first. Only one value at a time is in memory. */

import { Crc64 } from '../engine/rdb/crc64.js';
import { textOfForm, VERSION_MAX } from '../engine/rdb/dump.js';
import { hasLayout, textBytes, textHeadBytes, ValueScanner } from '../engine/rdb/layout.js';
import { lengthAt, lengthBytes } from '../engine/rdb/lengths.js';
import { StoreError } from '../options.js';
import type { Bytes } from '../resp/reply.js';
import { type Input, InputEnded } from './input.js';
import { shown } from './texts.js';

/** What a file may say of a key. */
interface Attributes {
  /** undefined: it does not expire. */
  expiresAtMs?: number;
  idleSeconds?: number;
  frequency?: number;
}

/** What precedes a value. */
export interface RdbKey extends Readonly<Attributes> {
  readonly name: Bytes;
  readonly database: number;
  /** That of the value. */
  readonly type: number;
}

/** What is done with the contents. They come in the order of the file. */
export interface RdbSink {
  /** @returns whether the value is wanted: it is skipped otherwise */
  key(key: RdbKey): boolean;
  /** @param bytes  those of the file. They are valid until this has returned */
  value(key: RdbKey, bytes: Buffer): Promise<void> | undefined;
  /** The value is wanted, and too long to be kept in memory. */
  tooLong(key: RdbKey): void;
  library(code: Bytes): Promise<void> | undefined;
}

const OPCODE = {
  slotInfo: 244,
  library: 245,
  earlyLibrary: 246,
  moduleData: 247,
  idle: 248,
  frequency: 249,
  auxiliary: 250,
  sizes: 251,
  expiresAtMs: 252,
  expiresAtSeconds: 253,
  database: 254,
  end: 255,
} as const;

const MODULE_TYPES: readonly number[] = [6, 7];
/** Hashes of Redis 7.4 and later whose fields have times to live, in several forms. */
const EXPIRING_HASH_TYPES: readonly number[] = [22, 23, 24, 25];
/** How long a key may be. */
const TEXT_BYTES_MAX = 512 * 1024 ** 2;

const MAGIC = 'REDIS';
const HEADER_BYTES = 9;
const SUM_BYTES = 8;
/** Files of older versions have no checksum. */
const SUM_SINCE = 5;

/**
 * Reads from the header to the checksum. What follows stays in the input.
 * @param source  how errors call it, such as `dump.rdb`
 * @param valueBytesMax  longer values are not kept in memory
 * @throws StoreError if it is damaged, or has what the store cannot have
 */
export async function readRdb(
  input: Input,
  sink: RdbSink,
  source: string,
  valueBytesMax: number,
): Promise<void> {
  try {
    await new RdbReader(input, sink, valueBytesMax).read();
  } catch (error) {
    if (error instanceof Unsupported) {
      throw new StoreError(`${source} cannot be imported: ${error.message}`, error.hint);
    }
    const isDamage = error instanceof RangeError || error instanceof InputEnded;
    if (!isDamage) throw error;
    const reason = error instanceof InputEnded ? 'it ends too early' : error.message;
    throw new StoreError(
      `${source} is damaged at byte ${input.offset}: ${reason}`,
      'Let Redis save it again, with BGSAVE or redis-cli --rdb, and wait until it is whole.',
      { cause: error },
    );
  }
}

/** It is not damaged, but the store has nothing of this kind. */
class Unsupported extends Error {
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

class RdbReader {
  readonly #scanner = new ValueScanner();
  #database = 0;
  /** Of the key that comes next. */
  #attributes: Attributes = {};

  constructor(
    private readonly input: Input,
    private readonly sink: RdbSink,
    private readonly valueBytesMax: number,
  ) {}

  async read(): Promise<void> {
    const { input } = this;
    const sum = new Crc64();
    input.beginSum(sum);
    const version = await this.#header();
    for (;;) {
      const type = await this.#byte();
      if (type === OPCODE.end) break;
      if (hasLayout(type)) await this.#key(type);
      else await this.#opcode(type);
    }
    input.endSum();
    if (version < SUM_SINCE) return;
    const expected = await this.#take(SUM_BYTES);
    // Redis writes 0 if its configuration says that there is none.
    if (!sum.bytes().equals(expected) && expected.some((byte) => byte !== 0)) {
      throw new RangeError('the checksum is another one');
    }
  }

  /** @returns the version */
  async #header(): Promise<number> {
    const header = (await this.#take(HEADER_BYTES)).toString('latin1');
    const [, digits] = /^REDIS(\d{4})$/.exec(header) ?? [];
    if (digits === undefined) {
      const hint = `An RDB file begins with ${MAGIC} and four digits. Name one that Redis has saved.`;
      throw new Unsupported('it is not an RDB file of Redis', hint);
    }
    const version = Number(digits);
    if (version < 1 || version > VERSION_MAX) {
      const hint =
        'Copy from the running server instead: tram-store import redis://HOST:PORT --scan.';
      throw new Unsupported(
        `it has version ${version} of the format, and versions 1 to ${VERSION_MAX} are known (Redis 7.4 and older)`,
        hint,
      );
    }
    return version;
  }

  async #opcode(opcode: number): Promise<void> {
    switch (opcode) {
      case OPCODE.expiresAtMs:
        this.#attributes.expiresAtMs = timeOf((await this.#take(8)).readBigInt64LE(0));
        return;
      case OPCODE.expiresAtSeconds:
        this.#attributes.expiresAtMs = (await this.#take(4)).readInt32LE(0) * 1000;
        return;
      case OPCODE.idle:
        this.#attributes.idleSeconds = await this.#length();
        return;
      case OPCODE.frequency:
        this.#attributes.frequency = await this.#byte();
        return;
      case OPCODE.database:
        this.#database = await this.#length();
        return;
      case OPCODE.sizes:
        for (let lengths = 0; lengths < 2; lengths++) await this.#length();
        return;
      case OPCODE.slotInfo:
        for (let lengths = 0; lengths < 3; lengths++) await this.#length();
        return;
      case OPCODE.auxiliary:
        requireNoLog(await this.#text(), await this.#text());
        return;
      case OPCODE.library:
        return this.sink.library(await this.#text());
      default:
        throw await this.#refusal(opcode);
    }
  }

  async #key(type: number): Promise<void> {
    const name = await this.#text();
    const key = { name, database: this.#database, type, ...this.#attributes };
    this.#attributes = {};
    const { input } = this;
    if (this.sink.key(key)) input.keptFrom = input.at;
    this.#scanner.begin(type);
    while (!this.#scan()) {
      this.#limit(key);
      await input.more();
    }
    this.#limit(key);
    if (input.keptFrom < 0) return;
    const bytes = input.bytes.subarray(input.keptFrom, input.at);
    input.keptFrom = -1;
    await this.sink.value(key, bytes);
  }

  /** @returns whether it is at the end of the value */
  #scan(): boolean {
    const { input } = this;
    try {
      return this.#scanner.scan(input.bytes, input.at, input.end, input.at + input.left);
    } finally {
      input.at = this.#scanner.at;
    }
  }

  /** Gives up a value that is too long. */
  #limit(key: RdbKey): void {
    const { input } = this;
    if (input.keptFrom < 0 || input.at - input.keptFrom <= this.valueBytesMax) return;
    input.keptFrom = -1;
    this.sink.tooLong(key);
  }

  /** Why there is no such opcode or type here. */
  async #refusal(opcode: number): Promise<Error> {
    if (opcode === OPCODE.moduleData) {
      return ofModule(`it has data of the module ${await this.#moduleName()}`);
    }
    if (MODULE_TYPES.includes(opcode)) {
      const key = shown(await this.#text());
      return ofModule(`the key ${key} has a value of the module ${await this.#moduleName()}`);
    }
    if (EXPIRING_HASH_TYPES.includes(opcode)) {
      return new Unsupported(
        `fields of the hash ${shown(await this.#text())} have times to live, which the store does not know`,
        'Remove them in Redis with HPERSIST, or delete such keys there, and let it save again.',
      );
    }
    if (opcode === OPCODE.earlyLibrary) {
      const hint = 'Load it with Redis 7.0 or later, and let that save it again.';
      return new Unsupported('its functions are of a release candidate of Redis 7.0', hint);
    }
    this.input.at--;
    return new RangeError(`no value has the type ${opcode}`);
  }

  /** It has 9 characters, of 6 bits each. A version of 10 bits follows. */
  async #moduleName(): Promise<string> {
    await this.input.need(1);
    const length = lengthBytes(this.input.bytes[this.input.at]);
    if (length !== 9) throw new RangeError('there is no module where one has to be');
    const bytes = await this.#take(length);
    const id = bytes.readBigUInt64BE(1);
    const characters = Array.from({ length: 9 }, (_, i) => {
      return MODULE_CHARACTERS[Number((id >> BigInt(58 - 6 * i)) & 63n)];
    });
    return characters.join('');
  }

  async #byte(): Promise<number> {
    const { input } = this;
    if (input.at === input.end) await input.need(1);
    return input.bytes[input.at++];
  }

  /** They are valid until more is read. */
  async #take(length: number): Promise<Buffer> {
    const { input } = this;
    await input.need(length);
    input.at += length;
    return input.bytes.subarray(input.at - length, input.at);
  }

  async #length(): Promise<number> {
    const { input } = this;
    await input.need(1);
    const length = lengthBytes(input.bytes[input.at]);
    if (length === 0) throw new RangeError('there is no length where one has to be');
    await input.need(length);
    input.at += length;
    return lengthAt(input.bytes, input.at - length);
  }

  async #text(): Promise<Bytes> {
    const { input } = this;
    for (;;) {
      const head = textHeadBytes(input.bytes, input.at, input.end);
      if (head === undefined) {
        await input.more();
        continue;
      }
      const length = head + textBytes(input.bytes, input.at);
      if (length > input.left) throw new RangeError('a length goes beyond the end');
      if (length > TEXT_BYTES_MAX) throw new RangeError('a key is too long');
      return textOfForm(await this.#take(length));
    }
  }
}

const MODULE_CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Some that are never reached are greater than what a number can have. */
function timeOf(ms: bigint): number {
  return Math.min(Number(ms), Number.MAX_SAFE_INTEGER);
}

function ofModule(message: string): Unsupported {
  const hint =
    'The store has no modules. Delete such keys in Redis, and let it save again without the module.';
  return new Unsupported(message, hint);
}

/** Redis may begin an append-only file like an RDB file. What has changed since then follows in another form, or in other files. */
function requireNoLog(name: Bytes, value: Bytes): void {
  if (value !== '1' || !['aof-preamble', 'aof-base'].includes(name)) return;
  throw new Unsupported(
    'it is only the beginning of an append-only file (AOF)',
    'Let Redis save an RDB file: redis-cli --rdb dump.rdb. Or copy from the running server.',
  );
}
