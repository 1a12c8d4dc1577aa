/**
 * Copies a running server as its replica (PSYNC): Redis sends all keys as they are at one moment, in the form of an RDB file, and then every
 * change.
 */

import type { Socket } from 'node:net';
import { StoreError } from '../options.js';
import type { Bytes } from '../resp/reply.js';
import { Changes } from './changes.js';
import { Connection, logIn } from './connection.js';
import type { Importer, ImportOptions } from './importer.js';
import { Input } from './input.js';
import { Outgoing } from './outgoing.js';
import { Progress, progressLine, type Screen, Stopwatch } from './progress.js';
import { readRdb } from './rdb.js';
import { lengthOf, nextBulk, nextLine, nextReply } from './replies.js';
import { ConnectionLost, nameOf, openSocket, received, type Server } from './server.js';
import { count, size } from './texts.js';

/** Redis cuts off replicas that are silent for a minute. */
const ACK_MS = 1000;
/** How long the last changes may take, after the end was asked for. */
const LAST_CHANGES_MS = 10_000;
const MARK_BYTES = 40;
const CUT_OFF =
  'Redis cuts off replicas that are too slow: see its log, client-output-buffer-limit and repl-timeout.';

/** The result of following the changes. */
export interface Followed {
  readonly changes: number;
  /** How many changes concern other databases. */
  readonly leftOut: number;
  /** How many bytes of the stream the store has not got; undefined: Redis did not tell. */
  readonly missing: number | undefined;
}

export class Replication {
  readonly #name: string;
  readonly #input: Input;
  readonly #outgoing: Outgoing;
  /** Our position in the stream of changes. */
  #offset = 0;
  /** The store has everything up to here. */
  #appliedTo = 0;
  /** Redis has asked for an acknowledgement once the store has everything up to here. */
  #askedAt: number | undefined;
  /** The position of Redis when the user asked for the end. */
  #endAt: number | undefined;

  private constructor(
    private readonly server: Server,
    private readonly socket: Socket,
    private readonly importer: Importer,
    private readonly options: ImportOptions,
    private readonly screen: Screen,
  ) {
    this.#name = nameOf(server.place);
    this.#input = new Input(received(socket, this.#name, CUT_OFF));
    this.#outgoing = new Outgoing(socket);
  }

  /** @throws StoreError */
  static async open(
    server: Server,
    importer: Importer,
    options: ImportOptions,
    screen: Screen,
  ): Promise<Replication> {
    const socket = await openSocket(server);
    return new Replication(server, socket, importer, options, screen);
  }

  close(): void {
    this.socket.destroy();
  }

  /** Copies all keys. @throws StoreError */
  async copy(): Promise<void> {
    const { importer, screen } = this;
    const input = this.#input;
    await importer.requireEmptyStore();
    await this.#requestKeys();
    const mark = await this.#beginSnapshot();
    const from = input.offset;
    const watch = new Stopwatch();
    const progress = new Progress(screen, () => {
      const bytes = { bytes: input.offset - from, bytesMax: input.size - from };
      return progressLine('copying', watch.seconds, { keys: importer.tally.keys, ...bytes });
    });
    const acks = setInterval(() => this.#acknowledge(), ACK_MS);
    try {
      await readRdb(input, importer, `what ${this.#name} sends`, importer.valueBytesMax);
      await this.#requireEnd(mark);
      await importer.settled();
    } finally {
      clearInterval(acks);
      progress.end();
    }
  }

  /**
   * Carries out the changes, until the signal says that this is enough.
   * @throws StoreError
   */
  async follow(): Promise<Followed> {
    const { importer, options, screen } = this;
    const { signal, database } = options;
    screen.write(
      `copied ${count(importer.tally.keys, 'key')}. Now following ${this.#name}, until SIGINT or SIGTERM\n`,
    );
    const master = await MasterOffset.open(this.server);
    const changes = new Changes(importer.target, database, (offset) => this.#applied(offset));
    const progress = new Progress(screen, () => {
      const lag = master.known === undefined ? 'unknown' : size(this.#lag(master.known));
      return `following: ${count(changes.count, 'change')}, offset ${this.#appliedTo}, lag ${lag}`;
    });
    const acks = setInterval(() => this.#acknowledge(), ACK_MS);
    const end = (): void => void this.#end(master);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    try {
      await this.#carryOut(changes);
    } catch (error) {
      if (!signal.aborted || !(error instanceof ConnectionLost)) throw error;
      await changes.settled();
    } finally {
      signal.removeEventListener('abort', end);
      clearInterval(acks);
      progress.end();
      master.close();
    }
    const missing = this.#endAt === undefined ? undefined : this.#lag(this.#endAt);
    return { changes: changes.count, leftOut: changes.leftOut, missing };
  }

  /** Reads changes until the connection ends. */
  async #carryOut(changes: Changes): Promise<never> {
    const input = this.#input;
    for (let from = input.offset; ; from = input.offset) {
      const command = await nextCommand(input);
      if (isQuestion(command)) this.#askedAt = this.#offset;
      this.#offset += input.offset - from;
      await changes.add(command, this.#offset);
    }
  }

  /** Ends once the store has what Redis had when the end was asked for. */
  async #end(master: MasterOffset): Promise<void> {
    setTimeout(() => this.close(), LAST_CHANGES_MS).unref();
    await master.refresh();
    this.#endAt = master.known;
    if (this.#endAt === undefined || this.#appliedTo >= this.#endAt) this.close();
  }

  #applied(offset: number): void {
    this.#appliedTo = offset;
    if (this.#askedAt !== undefined && offset >= this.#askedAt) {
      this.#askedAt = undefined;
      this.#acknowledge();
    }
    if (this.#endAt !== undefined && offset >= this.#endAt) this.close();
  }

  #lag(offset: number): number {
    return Math.max(0, offset - this.#appliedTo);
  }

  #acknowledge(): void {
    this.#outgoing.add(['REPLCONF', 'ACK', String(this.#appliedTo)]);
  }

  /** Logs in, and asks for everything. */
  async #requestKeys(): Promise<void> {
    const input = this.#input;
    await logIn(this.server, (words) => {
      this.#outgoing.add(words);
      return nextReply(input);
    });
    // Versions before 4 do not know them, and go on without.
    this.#outgoing.add(['REPLCONF', 'capa', 'eof', 'capa', 'psync2']);
    await nextReply(input);
    this.#outgoing.add(['PSYNC', '?', '-1']);
    const line = await nextFullLine(input);
    const [, offset] = /^\+FULLRESYNC \S+ (\d+)$/.exec(line) ?? [];
    if (offset === undefined) {
      throw new StoreError(
        `${this.#name} does not accept us as a replica: ${line.slice(0, 200).replace(/^-/, '')}`,
        'Use --scan: it asks for each key.',
      );
    }
    this.#offset = this.#appliedTo = Number(offset);
  }

  /** @returns what follows the snapshot, if Redis did not know its length when it began */
  async #beginSnapshot(): Promise<string | undefined> {
    const input = this.#input;
    const line = await nextFullLine(input);
    const [, mark] = /^\$EOF:(.*)$/.exec(line) ?? [];
    if (mark?.length === MARK_BYTES) return mark;
    input.size = input.offset + lengthOf(line.replace(/^\$/, ''));
    return undefined;
  }

  /** @param mark  what has to follow the snapshot; undefined: nothing, by the length that Redis has told */
  async #requireEnd(mark: string | undefined): Promise<void> {
    const input = this.#input;
    if (mark !== undefined) await input.need(MARK_BYTES);
    const end = input.at + (mark?.length ?? 0);
    const isRight =
      mark === undefined
        ? input.left === 0
        : mark === input.bytes.toString('latin1', input.at, end);
    if (!isRight) throw new StoreError(`${this.#name} has sent a damaged snapshot`, 'Try again.');
    input.at = end;
    input.size = Infinity;
  }
}

/** How far Redis has come in its stream of changes. It is asked once a second. */
class MasterOffset {
  /** undefined: it does not tell. */
  known: number | undefined;
  readonly #timer = setInterval(() => void this.refresh(), ACK_MS);

  private constructor(private readonly connection: Connection) {}

  static async open(server: Server): Promise<MasterOffset> {
    return new MasterOffset(await Connection.open(server));
  }

  async refresh(): Promise<void> {
    try {
      const info = await this.connection.ask(['INFO', 'replication']);
      const [, offset] = /^master_repl_offset:(\d+)/m.exec(String(info)) ?? [];
      this.known = offset === undefined ? undefined : Number(offset);
    } catch {
      // Redis has ended: the connection of the replica tells more.
      this.known = undefined;
    }
  }

  close(): void {
    clearInterval(this.#timer);
    this.connection.close();
  }
}

/** Redis sends empty lines while it prepares something. */
async function nextFullLine(input: Input): Promise<string> {
  for (;;) {
    const line = await nextLine(input);
    if (line !== '') return line;
  }
}

async function nextCommand(input: Input): Promise<Bytes[]> {
  const line = await nextFullLine(input);
  const words: Bytes[] = [];
  for (let left = lengthOf(line.replace(/^\*/, '')); left > 0; left--) {
    words.push(await nextBulk(input, lengthOf((await nextLine(input)).replace(/^\$/, ''))));
  }
  return words;
}

/** Whether Redis asks how far its replicas are. WAIT makes it do so. */
function isQuestion([name, option]: readonly Bytes[]): boolean {
  return name.toLowerCase() === 'replconf' && option?.toLowerCase() === 'getack';
}
