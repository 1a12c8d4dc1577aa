/** Gives the keys of Redis to a store, and counts what becomes of them. */

import { dumpOfForm } from '../engine/rdb/dump.js';
import { StoreError } from '../options.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import type { Connection } from './connection.js';
import type { Words } from './outgoing.js';
import type { RdbKey, RdbSink } from './rdb.js';
import { count, shown } from './texts.js';

/** Keys that were left out for one reason. */
export class LeftOut {
  count = 0;
  first: Bytes | undefined;

  add(key: Bytes): void {
    this.count++;
    this.first ??= key;
  }
}

/** What has become of keys and libraries. */
export class Tally {
  keys = 0;
  libraries = 0;
  /** Keys that the store had already. */
  readonly existing = new LeftOut();
  /** Keys whose values are longer than a request to the store may be. */
  readonly tooLong = new LeftOut();
  /** Keys that had expired. */
  expired = 0;
  /** How many keys each other database has. */
  readonly otherDatabases = new Map<number, number>();
  /** What the store said to libraries that it did not take. */
  readonly refusedLibraries: string[] = [];

  addOther(database: number, keys = 1): void {
    this.otherDatabases.set(database, (this.otherDatabases.get(database) ?? 0) + keys);
  }
}

export interface ImportOptions {
  /** The one that is imported. */
  readonly database: number;
  /** Whether keys that are there already get the values of Redis. */
  readonly replaces: boolean;
  /** The import ends early. */
  readonly signal: AbortSignal;
}

/** What precedes a dump in RESTORE, and its name and options. */
const RESTORE_BYTES = 4096;
/** The longest string that Node has, and so the longest word that the store can read. */
const WORD_BYTES_MAX = 2 ** 29 - 24;

export class Importer implements RdbSink {
  readonly tally = new Tally();
  #failure: StoreError | undefined;
  #replacesKeys: boolean;

  private constructor(
    readonly target: Connection,
    private readonly options: ImportOptions,
    /** How long a value may be, without its key. */
    readonly valueBytesMax: number,
  ) {
    this.#replacesKeys = options.replaces;
  }

  static async open(target: Connection, options: ImportOptions): Promise<Importer> {
    const reply = await target.ask(['CONFIG', 'GET', 'proto-max-bulk-len']);
    const limit = Array.isArray(reply) ? Number(reply[1]) : Number.NaN;
    const wordBytesMax = Math.min(WORD_BYTES_MAX, limit || WORD_BYTES_MAX);
    return new Importer(target, options, wordBytesMax - RESTORE_BYTES);
  }

  /** For ways that may bring a key more than once: the last value counts. @throws StoreError */
  async requireEmptyStore(): Promise<void> {
    this.#replacesKeys = true;
    if (this.options.replaces) return;
    const keys = await this.target.ask(['DBSIZE']);
    if (keys === 0) return;
    throw new StoreError(
      `the store has ${typeof keys === 'number' ? count(keys, 'key') : 'keys'} already`,
      'Use --replace: keys that Redis has too get its values, and the others stay.',
    );
  }

  key({ database, expiresAtMs }: RdbKey): boolean {
    if (database !== this.options.database) this.tally.addOther(database);
    else if (expiresAtMs !== undefined && expiresAtMs <= Date.now()) this.tally.expired++;
    else return true;
    return false;
  }

  value(key: RdbKey, bytes: Buffer): Promise<void> {
    const { expiresAtMs, idleSeconds, frequency } = key;
    return this.restore(key.name, String(expiresAtMs ?? 0), dumpOfForm(key.type, bytes), [
      ...(expiresAtMs === undefined ? [] : ['ABSTTL']),
      ...(idleSeconds === undefined ? [] : ['IDLETIME', String(idleSeconds)]),
      ...(frequency === undefined ? [] : ['FREQ', String(frequency)]),
    ]);
  }

  tooLong({ name }: Pick<RdbKey, 'name'>): void {
    this.tally.tooLong.add(name);
  }

  async library(code: Bytes): Promise<void> {
    const load = ['FUNCTION', 'LOAD', ...(this.options.replaces ? ['REPLACE'] : []), code];
    await this.#send(load, (reply) => {
      if (reply instanceof ErrorReply) this.tally.refusedLibraries.push(reply.message);
      else this.tally.libraries++;
    });
  }

  /** @param time  in milliseconds; 0: it does not expire */
  restore(
    name: Bytes,
    time: string,
    dump: Bytes | Buffer,
    options: readonly string[],
  ): Promise<void> {
    const replace = this.#replacesKeys ? ['REPLACE'] : [];
    return this.#send(['RESTORE', name, time, dump, ...replace, ...options], (reply) => {
      if (!(reply instanceof ErrorReply)) this.tally.keys++;
      else if (reply.message.startsWith('BUSYKEY')) this.tally.existing.add(name);
      else this.#failure ??= refused(`the key ${shown(name)}`, reply);
    });
  }

  /** @returns once the store has answered everything */
  async settled(): Promise<void> {
    await this.target.settled();
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** @returns once the store can take more */
  async #send(words: Words, answered: (reply: Reply) => void): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    requireTime(this.options);
    this.target.send(words, answered);
    await this.target.room();
  }
}

/** @throws StoreError if the user has ended the import */
export function requireTime({ signal }: ImportOptions): void {
  if (!signal.aborted) return;
  throw new StoreError('the import was interrupted', 'What was imported stays in the store.');
}

function refused(what: string, { message }: ErrorReply): StoreError {
  const hint = message.startsWith('OOM')
    ? 'Give the store more memory: --maxmemory.'
    : 'Find out with this error what is wrong with it, or delete it in Redis.';
  return new StoreError(`the store has refused ${what}: ${message}`, hint);
}

/**
 * @param again  what to do before the next attempt
 * @throws StoreError that says how far it has come
 */
export async function withCount(tally: Tally, again: string, what: Promise<void>): Promise<void> {
  try {
    await what;
  } catch (error) {
    if (!(error instanceof StoreError) || tally.keys === 0) throw error;
    const message = `${error.message}. Until then, ${count(tally.keys, 'key')} had been imported`;
    throw new StoreError(message, `${error.hint} ${again}`, { cause: error });
  }
}
