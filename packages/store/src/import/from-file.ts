/** Imports an RDB file. It is read twice: nothing of it is sent before it is known to be whole. */

import { createReadStream, statSync } from 'node:fs';
import { basename } from 'node:path';
import { StoreError } from '../options.js';
import { type Importer, type ImportOptions, requireTime } from './importer.js';
import { Input } from './input.js';
import { Progress, progressLine, type Screen, Stopwatch } from './progress.js';
import { type RdbKey, type RdbSink, readRdb } from './rdb.js';

/** How much of the file is read at a time. */
const PIECE_BYTES = 256 * 1024;

/** Counts what a file has. */
class Census implements RdbSink {
  keys = 0;

  constructor(private readonly options: ImportOptions) {}

  key({ database }: RdbKey): boolean {
    requireTime(this.options);
    if (database === this.options.database) this.keys++;
    return false;
  }

  value(): undefined {}

  tooLong(): void {}

  library(): undefined {}
}

export class RdbFile {
  readonly #name: string;
  readonly #size: number;
  /** In the database that is imported. */
  #keys = 0;

  /** @throws StoreError */
  constructor(
    private readonly path: string,
    private readonly options: ImportOptions,
    private readonly screen: Screen,
  ) {
    this.#name = basename(path);
    this.#size = sizeOf(path);
  }

  /** @throws StoreError if it is not an RDB file, or a damaged one */
  async check(): Promise<void> {
    const census = new Census(this.options);
    await this.#read(`checking ${this.#name}`, census, 0, () => ({ keys: census.keys }));
    this.#keys = census.keys;
  }

  /** @throws StoreError */
  async importInto(importer: Importer): Promise<void> {
    const { tally } = importer;
    await this.#read(`importing ${this.#name}`, importer, importer.valueBytesMax, () => ({
      keys: tally.keys,
      keysMax: this.#keys,
    }));
    await importer.settled();
  }

  async #read(
    what: string,
    sink: RdbSink,
    valueBytesMax: number,
    amounts: () => { readonly keys: number; readonly keysMax?: number },
  ): Promise<void> {
    const stream = createReadStream(this.path, { highWaterMark: PIECE_BYTES });
    const input = new Input(stream[Symbol.asyncIterator](), this.#size);
    const watch = new Stopwatch();
    const progress = new Progress(this.screen, () => {
      const bytes = { bytes: input.offset, bytesMax: this.#size };
      return progressLine(what, watch.seconds, { ...bytes, ...amounts() });
    });
    try {
      await readRdb(input, sink, this.#name, valueBytesMax);
    } finally {
      progress.end();
      await input.close();
    }
    if (input.left === 0) return;
    throw new StoreError(
      `${this.#name} goes on after its end, at byte ${input.offset}, as an append-only file (AOF) does`,
      'Let Redis save an RDB file: redis-cli --rdb dump.rdb. Or copy from the running server.',
    );
  }
}

function sizeOf(path: string): number {
  try {
    const stat = statSync(path);
    if (stat.isFile()) return stat.size;
  } catch (error) {
    const hint = 'Check the path of the file, and its permissions.';
    throw new StoreError((error as Error).message, hint, { cause: error });
  }
  throw new StoreError(
    `${path} is not a file`,
    'Name an RDB file. It is read twice, so it cannot be a pipe.',
  );
}
