/** Clients that wait for lists of several shards, and others that fill them. Each value has to be taken once. */

import type { Violation } from '../../src/check/history.js';
import type { ErrorReply, Reply } from '../../src/resp/reply.js';
import type { Gateway } from './simulation.js';

const QUEUES = ['q1', 'q2', 'q3'];
const STOP = 'stop';

export class Queues {
  readonly #put = new Set<string>();
  readonly #taken: string[] = [];
  /** How many values may have been taken for clients that do not know of it. */
  #doubtful = 0;
  readonly #waiting = new Set<Gateway>();
  #left: readonly string[] = [];
  #last = 0;

  constructor(
    private readonly random: () => number,
    private readonly errorReply: typeof ErrorReply,
  ) {}

  /** Whether clients of gateways that live still wait. */
  get areWaiting(): boolean {
    return [...this.#waiting].some(({ wire }) => !wire.isCut);
  }

  /** A client of this gateway takes values until it gets one that says stop. */
  async takeFrom(gateway: Gateway): Promise<void> {
    this.#waiting.add(gateway);
    await gateway.backend.ready;
    for (;;) {
      this.#doubtful++;
      const reply = await gateway.take(this.#someQueues()).catch(() => undefined);
      // It may have been carried out.
      if (reply === undefined) continue;
      this.#doubtful--;
      if (reply instanceof this.errorReply) continue;
      const [, value] = reply as readonly string[];
      this.#taken.push(value);
      if (value.startsWith(STOP)) break;
    }
    this.#waiting.delete(gateway);
  }

  /** Puts a value, or moves one. */
  async put(gateway: Gateway): Promise<void> {
    if (this.random() < 0.3) {
      const [from, to] = this.#shuffled();
      const command = { name: 'lmove', args: [from, to, 'LEFT', 'RIGHT'] };
      await gateway.transact([command]).catch(() => undefined);
      return;
    }
    const value = `${++this.#last}`;
    await this.#push(gateway, value).then(
      () => this.#put.add(value),
      // It may have been put.
      () => undefined,
    );
  }

  /** Puts a value that says stop, and reads what is left. */
  stop(gateway: Gateway): void {
    this.#push(gateway, `${STOP}${++this.#last}`).catch(() => undefined);
  }

  async readLeft(gateway: Gateway): Promise<void> {
    const reads = QUEUES.map((key) => ({ name: 'lrange', args: [key, '0', '-1'] }));
    this.#left = ((await gateway.runIndependently(reads)) as string[][]).flat();
  }

  check(): Violation | undefined {
    const seen = [...this.#taken, ...this.#left];
    if (new Set(seen).size < seen.length) return `a value was taken twice: ${seen.join(' ')}`;
    const lost = [...this.#put].filter((value) => !seen.includes(value));
    if (lost.length <= this.#doubtful) return undefined;
    return `lost: ${lost.join(' ')}, but only ${this.#doubtful} clients do not know what they have taken`;
  }

  async #push(gateway: Gateway, value: string): Promise<void> {
    const [key] = this.#shuffled();
    const reply = await gateway.runIndependently([{ name: 'rpush', args: [key, value] }]);
    if (typeof (reply[0] as Reply) !== 'number') throw new Error(`the push failed: ${reply[0]}`);
  }

  #someQueues(): readonly string[] {
    return this.#shuffled().slice(0, 1 + Math.floor(this.random() * QUEUES.length));
  }

  #shuffled(): readonly string[] {
    return QUEUES.map((key) => ({ key, at: this.random() }))
      .sort((a, b) => a.at - b.at)
      .map(({ key }) => key);
  }
}
