/** SLOWLOG: the last commands that took longer than `slowlog-log-slower-than`. */

import type { CommandSpec } from '../commands/spec.js';
import { copyOf } from '../resp/parser.js';
import type { Bytes, Reply } from '../resp/reply.js';
import type { Client } from './client.js';
import type { Settings } from './settings.js';

/** How many arguments of a command are kept, and how many bytes of each. */
const ARGUMENTS_MAX = 32;
const ARGUMENT_BYTES_MAX = 128;

/** Commands whose arguments are secrets, and EXEC: the commands of a transaction are logged one by one. */
const NOT_LOGGED = new Set(['auth', 'hello', 'config|set', 'exec']);

interface Entry {
  readonly id: number;
  readonly atSeconds: number;
  readonly us: number;
  readonly words: readonly Bytes[];
  readonly address: string;
  readonly name: Bytes;
}

export class SlowLog {
  /** From the oldest to the latest. */
  #entries: Entry[] = [];
  #lastId = -1;

  constructor(private readonly settings: Settings) {}

  get length(): number {
    return this.#entries.length;
  }

  reset(): void {
    this.#entries = [];
  }

  /** Keeps the command if it is slow. */
  note(command: CommandSpec, args: readonly Bytes[], us: number, client: Client): void {
    const { slowerThanUs, slowLogMax } = this.settings;
    if (slowerThanUs < 0 || us < slowerThanUs || slowLogMax === 0) return;
    if (NOT_LOGGED.has(command.name)) return;
    this.#entries.push({
      id: ++this.#lastId,
      atSeconds: Math.floor(Date.now() / 1000),
      us: Math.round(us),
      words: wordsOf(command, args),
      address: client.address,
      name: client.session.name,
    });
    this.#entries.splice(0, this.#entries.length - slowLogMax);
  }

  /** The latest entries, the latest first. @param count  the greatest number of entries; -1: all */
  get(count: number): Reply {
    const latest = this.#entries.toReversed();
    return latest
      .slice(0, count < 0 ? latest.length : count)
      .map(({ id, atSeconds, us, words, address, name }) => [
        id,
        atSeconds,
        us,
        words,
        address,
        name,
      ]);
  }
}

/** Long commands are cut, in the words of Redis. The copies do not keep the input that arguments are a part of. */
function wordsOf({ name }: CommandSpec, args: readonly Bytes[]): Bytes[] {
  const words = [...name.split('|'), ...args];
  const kept = words.length > ARGUMENTS_MAX ? words.slice(0, ARGUMENTS_MAX - 1) : words;
  const copies = kept.map((word) => {
    const more = word.length - ARGUMENT_BYTES_MAX;
    const start = copyOf(word.slice(0, ARGUMENT_BYTES_MAX));
    return more > 0 ? `${start}... (${more} more bytes)` : start;
  });
  const left = words.length - kept.length;
  return left > 0 ? [...copies, `... (${left} more arguments)`] : copies;
}
