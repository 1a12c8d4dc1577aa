/** Asks and answers between two hosts, over links that break, drop what is in flight, and let words land in pieces. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAILBOX_WORDS, Mailboxes } from '../../../src/hosting/machines/mailboxes.js';
import { ArenaMap } from '../../../src/memory/arena.js';
import type { Link } from '../../../src/memory/machines/link.js';

const HOSTS = 2;
const CHUNK_WORDS = 2 ** 16;
const STEP_US = 50_000;
const LAYOUT = {
  sizes: { groups: 1, replicas: HOSTS, clients: 1 },
  replicaRegionWords: 16,
  clientRegionWords: 16,
  row: 0,
  scratchWords: () => 0,
};
const map = new ArenaMap(LAYOUT, HOSTS, 0, 0, [0, 1], MAILBOX_WORDS);

/** Words that one host has posted to the other, and that land one after the other. */
class FakeLink {
  isOpen = true;
  readonly inFlight: { readonly at: number; readonly words: Int32Array }[] = [];

  constructor(private readonly remote: Int32Array) {}

  get isSettled(): boolean {
    return this.inFlight.length === 0;
  }

  writeWords(at: number, words: Int32Array): void {
    if (this.isOpen) this.inFlight.push({ at, words: words.slice() });
  }

  /** @param words  at most so many of the first write */
  land(words = Number.POSITIVE_INFINITY): void {
    const first = this.inFlight.shift();
    if (first === undefined) return;
    const landed = first.words.subarray(0, words);
    this.remote.set(landed, first.at);
    const rest = first.words.subarray(landed.length);
    if (rest.length > 0) this.inFlight.unshift({ at: first.at + landed.length, words: rest });
  }

  break(): void {
    this.isOpen = false;
    this.inFlight.length = 0;
  }
}

class Pair {
  nowUs = 0;
  readonly arenas = [0, 1].map(() => new Int32Array(map.words));
  readonly links = [new FakeLink(this.arenas[1]), new FakeLink(this.arenas[0])];
  readonly asked: Int32Array[] = [];
  hosts = [this.start(0), this.start(1)];

  /** Answers with the reverse of what it is asked. */
  start(host: number): Mailboxes {
    const links = [undefined, undefined].map((_, other) =>
      other === host ? undefined : (this.links[host] as unknown as Link),
    );
    const answer = async (_: number, message: Int32Array): Promise<Int32Array> => {
      this.asked.push(message);
      return message.slice().reverse();
    };
    return new Mailboxes(this.arenas[host], map, host, links, answer, () => this.nowUs);
  }

  async step(): Promise<void> {
    this.nowUs += STEP_US;
    for (const host of this.hosts) host.doWork(this.nowUs);
    await Promise.resolve();
  }

  async until<T>(promise: Promise<T>, fault: () => void = () => undefined): Promise<T> {
    let isDone = false;
    void promise.then(() => {
      isDone = true;
    });
    for (let steps = 0; !isDone; steps++) {
      if (steps > 10_000) throw new Error('no answer');
      fault();
      for (const link of this.links) link.land();
      await this.step();
    }
    return promise;
  }
}

function bytesOf({ buffer, byteOffset, byteLength }: Int32Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

function counted(words: number): Int32Array {
  return Int32Array.from({ length: words }, (_, i) => i * 7);
}

test.each([0, 1, CHUNK_WORDS, 2 * CHUNK_WORDS + 5])(
  'an ask of %d words is answered',
  async (words) => {
    const pair = new Pair();
    const answer = await pair.until(pair.hosts[0].ask(1, counted(words)));
    expect(answer).toEqual(counted(words).reverse());
  },
);

test('both ask at the same time, several things', async () => {
  const pair = new Pair();
  const asks = [1, 2, 3].map((words) => pair.hosts[0].ask(1, counted(words)));
  const others = [4, 5].map((words) => pair.hosts[1].ask(0, counted(words)));
  const answers = await pair.until(Promise.all([...asks, ...others]));
  expect(answers).toEqual([1, 2, 3, 4, 5].map((words) => counted(words).reverse()));
});

test('connections that break and words that land in pieces delay an answer, and never change it', async () => {
  const fault = fc.record({
    kind: fc.constantFrom('break 0', 'break 1', 'heal', 'piece', 'restart 1'),
    words: fc.nat(CHUNK_WORDS),
    link: fc.nat(1),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fault, { maxLength: 30 }),
      fc.array(fc.nat(2 * CHUNK_WORDS), { minLength: 1, maxLength: 3 }),
      async (faults, sizes) => {
        const pair = new Pair();
        const asks = sizes.map((words) => pair.hosts[0].ask(1, counted(words)));
        const left = [...faults];
        const answers = await pair.until(Promise.all(asks), () => {
          const next = left.shift();
          if (next?.kind === 'piece') pair.links[next.link].land(next.words);
          else if (next?.kind === 'restart 1') pair.hosts[1] = pair.start(1);
          else if (next === undefined || next.kind === 'heal') {
            for (const link of pair.links) link.isOpen = true;
          } else pair.links[next.kind === 'break 0' ? 0 : 1].break();
        });
        for (const [i, words] of sizes.entries()) {
          // Quicker than `toEqual`.
          expect(Buffer.compare(bytesOf(answers[i]!), bytesOf(counted(words).reverse()))).toBe(0);
        }
      },
    ),
    { numRuns: 30 },
  );
});

test('a host that stays away is given up', async () => {
  const pair = new Pair();
  pair.links[0].break();
  expect(await pair.until(pair.hosts[0].ask(1, counted(1)))).toBeUndefined();
});

test('a host that is given up answers none of what it was asked', async () => {
  const pair = new Pair();
  const asks = [pair.hosts[0].ask(1, counted(1)), pair.hosts[0].ask(1, counted(1))];
  pair.hosts[0].giveUp(1);
  expect(await Promise.all(asks)).toEqual([undefined, undefined]);
});

test('what an earlier start has left in a mailbox is not answered again', async () => {
  const pair = new Pair();
  await pair.until(pair.hosts[0].ask(1, counted(1)));
  pair.hosts[1] = pair.start(1);
  await pair.step();
  expect(pair.asked).toHaveLength(1);
});
