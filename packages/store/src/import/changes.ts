/** Carries out in a store what Redis tells its replicas: the commands that have changed something, one after the other. */

import { StoreError } from '../options.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import type { Connection } from './connection.js';
import { shown } from './texts.js';

type Command = readonly Bytes[];

/** What concerns all databases. */
const FOR_ALL: readonly string[] = ['flushall', 'function', 'script', 'publish', 'spublish'];

/** What was sent to the store, and where in the stream of changes it ends. */
interface Sent {
  /** Where in the stream of changes it ends; of a transaction, only EXEC has it. */
  offset: number | undefined;
}

export class Changes {
  /** How many commands were sent to the store. */
  count = 0;
  /** How many were left out, because they concern other databases. */
  leftOut = 0;
  #database = 0;
  /** The commands since MULTI. They are sent together with EXEC, so that the store never has a part of a transaction. */
  #transaction: Command[] | undefined;
  /** What was sent last, as long as it is not answered. */
  #last: Sent | undefined;
  #failure: StoreError | undefined;

  /**
   * @param database  the one whose changes are carried out
   * @param applied  is told how far in the stream the store has come
   */
  constructor(
    private readonly target: Connection,
    private readonly database: number,
    private readonly applied: (offset: number) => void,
  ) {}

  /**
   * @param offset  where it ends in the stream
   * @returns once the store can take more
   * @throws StoreError
   */
  async add(command: Command, offset: number): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const name = command[0].toLowerCase();
    if (name === 'multi') this.#transaction = [];
    else if (name === 'exec') this.#endTransaction(offset);
    else if (name === 'select') this.#database = Number(command[1]);
    else if (name !== 'ping' && name !== 'replconf') this.#addChange(name, command, offset);
    if (this.#transaction === undefined) this.#advance(offset);
    await this.target.room();
  }

  /** @returns once the store has answered everything. @throws StoreError */
  async settled(): Promise<void> {
    await this.target.settled();
    if (this.#failure !== undefined) throw this.#failure;
  }

  #addChange(name: string, command: Command, offset: number): void {
    const databases = databasesOf(name, command, this.#database, this.database);
    const isOurs = FOR_ALL.includes(name) || databases.includes(this.database);
    if (!isOurs) this.leftOut++;
    else if (databases.length > 1) {
      throw new StoreError(
        `Redis has run ${name.toUpperCase()} between its databases ${databases.join(' and ')}, and the store has only one`,
        'Do without this command while the keys are copied.',
      );
    } else if (this.#transaction !== undefined) this.#transaction.push(command);
    else this.#send(command, offset);
  }

  #endTransaction(offset: number): void {
    const commands = this.#transaction ?? [];
    this.#transaction = undefined;
    if (commands.length === 0) return;
    this.#send(['MULTI'], undefined);
    for (const command of commands) this.#send(command, undefined);
    this.#send(['EXEC'], offset);
  }

  #send(command: Command, offset: number | undefined): void {
    this.count++;
    const sent: Sent = { offset };
    this.#last = sent;
    this.target.send(command, (reply) => {
      if (this.#last === sent) this.#last = undefined;
      const error = errorIn(reply);
      if (error !== undefined) this.#failure ??= refused(command, error);
      if (this.#failure === undefined && sent.offset !== undefined) this.applied(sent.offset);
    });
  }

  /** The stream has come to `offset`, but what was sent before has to be answered first. */
  #advance(offset: number): void {
    if (this.#last === undefined) this.applied(offset);
    else this.#last.offset = offset;
  }
}

/** Those that a command changes, and of `own` also those that it reads. @param current  the one that is selected */
function databasesOf(name: string, command: Command, current: number, own: number): number[] {
  const [, first, second] = command;
  if (name === 'swapdb') return [...new Set([Number(first), Number(second)])];
  if (name === 'move') return [current, Number(second)];
  const option = command.findIndex((word, i) => i > 2 && word.toLowerCase() === 'db');
  if (name !== 'copy' || option < 0) return [current];
  const destination = Number(command[option + 1]);
  return destination === own ? [...new Set([current, own])] : [destination];
}

/** EXEC replies with those of its commands. */
function errorIn(reply: Reply): ErrorReply | undefined {
  if (reply instanceof ErrorReply) return reply;
  return Array.isArray(reply) ? reply.find((item) => item instanceof ErrorReply) : undefined;
}

function refused([name, key]: Command, { message }: ErrorReply): StoreError {
  const what = key === undefined ? name : `${name} of ${shown(key)}`;
  return new StoreError(
    `the store has refused a change of Redis, ${what}: ${message}`,
    'From here on, the store differs from Redis. Find out with this error what is wrong.',
  );
}
