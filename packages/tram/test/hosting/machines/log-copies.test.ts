/** Logs that are copied from other hosts while these write them: a reader of the copies misses and repeats nothing. */
import { beforeEach, expect, test } from 'vitest';
import { resolveConfig } from '../../../src/config/config.js';
import { ClusterContext } from '../../../src/hosting/cluster-context.js';
import { LogCopies } from '../../../src/hosting/machines/log-copies.js';
import { Tail } from '../../../src/hosting/tail.js';
import type { Network } from '../../../src/memory/machines/network.js';
import { distance, HEAD_WORDS, packBytes, seal } from '../../../src/memory/record.js';
import { threadsArena } from '../../../src/memory/threads.js';
import { LogRing } from '../../../src/protocol/data-path/log.js';
import {
  MESSAGE,
  messageWords,
  RINGS_PER_WRITER,
  SOURCE,
  seriesOf,
} from '../../../src/protocol/layout.js';

const GROUP = 1;
const ENTRY = 0;
const FIRST_NUMBER = 2 ** 32 - 2;
const config = resolveConfig(
  { groups: 2, clients: 1, logBytes: 4096, payloadBytesMax: 64, hosts: 3 },
  { check: 7, tail: 8 },
);

/** A log, as its leader writes it at one member. */
class Original {
  private readonly ring: LogRing;
  index = 0;
  position = 0;
  /** Where entries begin that can't be dropped yet. */
  private readonly entries: number[] = [];

  constructor(
    readonly context: ClusterContext,
    member: number,
    readonly ballot: number,
  ) {
    const { layout } = context;
    const own = context.region(layout.replicaParticipant(GROUP, member));
    this.ring = new LogRing(own, layout, GROUP, member, 0);
    this.ring.marker = ballot;
  }

  /** The same entries, under its own ballot. */
  static after(before: Original, member: number, ballot: number, texts: string[]): Original {
    const log = new Original(before.context, member, ballot);
    for (const text of texts) log.append(text);
    expect(log).toMatchObject({ index: before.index, position: before.position });
    return log;
  }

  append(text: string): void {
    this.write(text);
    this.decide();
  }

  write(text: string): void {
    const { ring } = this;
    const payload = new TextEncoder().encode(text);
    const bodyWords = messageWords(payload.length) + SOURCE.words;
    const words = bodyWords + HEAD_WORDS + 1;
    this.entries.push(this.position);
    this.makeRoom(words);
    const body = this.position + HEAD_WORDS;
    const put = (field: number, value: number): void => {
      ring.words[ring.at + ((body + field) & ring.mask)] = value;
    };
    put(MESSAGE.session, 1);
    const number = FIRST_NUMBER + this.index;
    put(MESSAGE.number, number);
    put(MESSAGE.series, seriesOf(ENTRY, number));
    put(MESSAGE.destinationsLow, 1 << GROUP);
    put(MESSAGE.destinationsHigh, 0);
    put(MESSAGE.payloadBytes, payload.length);
    packBytes(payload, ring, body + MESSAGE.payload);
    seal(ring, this.position, bodyWords, this.ballot, this.index);
    this.index++;
    this.position = (this.position + words) | 0;
  }

  decide(): void {
    this.ring.decided = this.index | 0;
  }

  /** If there is none for so many words, drop half of what is there. */
  private makeRoom(words: number): void {
    const size = this.ring.mask + 1;
    const end = this.position + words;
    if (distance(end, this.entries[0]) <= size) return;
    while (distance(end, this.entries[0]) > size / 2) this.entries.shift();
    this.ring.base = this.entries[0];
  }
}

let there: ClusterContext;
let here: ClusterContext;
let copies: LogCopies;
/** What happens while words are on their way. */
let meanwhile: () => void;

beforeEach(async () => {
  there = newContext();
  here = newContext();
  meanwhile = () => undefined;
  const asked: (() => void)[] = [];
  copies = new LogCopies(here, {
    read: async (_link, at, into, intoAt, count) => {
      asked.push(() => into.set(there.arena.words.subarray(at, at + count), intoAt));
    },
    settle: async () => {
      for (const bring of asked.splice(0)) {
        meanwhile();
        bring();
      }
    },
  });
});

function newContext(): ClusterContext {
  return ClusterContext.onMachines(config, new Uint8Array(32), (map) => ({
    arena: threadsArena(new SharedArrayBuffer(map.words * 4)),
    network: {
      linkOf: Array.from({ length: map.participants }, () => ({ isOpen: true })),
    } as unknown as Network,
  }));
}

async function follow(): Promise<Tail> {
  await copies.follow(GROUP);
  return new Tail(here, GROUP);
}

/** All that is there to read. */
function readOn(tail: Tail): string[] {
  const texts: string[] = [];
  for (let next = tail.next(); next !== undefined; next = tail.next()) {
    texts.push(new TextDecoder().decode(next.payload));
  }
  return texts;
}

test('from now on, and only what is decided', async () => {
  const log = new Original(there, 0, 8);
  log.append('before');
  const tail = await follow();
  expect(await copies.copy()).toBe(false);
  log.append('one');
  log.write('two');
  expect(await copies.copy()).toBe(true);
  expect(readOn(tail)).toEqual(['one']);
  log.decide();
  await copies.copy();
  expect(readOn(tail)).toEqual(['two']);
});

test('ids are different beyond 2³² messages of a client', async () => {
  const log = new Original(there, 0, 8);
  log.append('before');
  const tail = await follow();
  for (const text of ['one', 'two']) log.append(text);
  await copies.copy();
  const ids = [tail.next()?.id, tail.next()?.id];
  expect(ids).toEqual(['c1:0.4294967295', 'c1:0.4294967296']);
});

test('a log without entries costs nothing and is followed when it has some', async () => {
  const log = new Original(there, 2, 8);
  const tail = await follow();
  expect(await copies.copy()).toBe(false);
  log.append('first');
  await copies.copy();
  expect(readOn(tail)).toEqual(['first']);
});

test('around the ring, many times', async () => {
  const log = new Original(there, 1, 9);
  const tail = await follow();
  for (let number = 0; number < 500; number++) {
    const text = 'x'.repeat(number % 61);
    log.append(text);
    await copies.copy();
    expect(readOn(tail)).toEqual([text]);
  }
});

test('from one leader to the next', async () => {
  const first = new Original(there, 0, 8);
  first.append('a');
  const tail = await follow();
  first.append('b');
  await copies.copy();
  // What was copied and not yet read is not lost with its log.
  const second = Original.after(first, 1, 17, ['a', 'b']);
  second.append('c');
  await copies.copy();
  expect(readOn(tail)).toEqual(['b', 'c']);
});

test('a reader that is a whole log behind is told so', async () => {
  const log = new Original(there, 0, 8);
  log.append('a');
  const tail = await follow();
  for (let number = 0; number < 200; number++) log.append('x'.repeat(60));
  await copies.copy();
  expect(() => readOn(tail)).toThrow(expect.objectContaining({ code: 'TRAM_LAGGED' }));
  const again = new Tail(here, GROUP);
  log.append('z');
  await copies.copy();
  expect(readOn(again)).toEqual(['z']);
});

test('a reader that is a whole log behind is told so, also after a change of leaders', async () => {
  const first = new Original(there, 0, 8);
  first.append('a');
  const tail = await follow();
  const second = Original.after(first, 1, 17, ['a']);
  // The second log is overwritten once its copy has begun, so that the copy begins anew.
  const { replicas } = config.sizes;
  const looksBefore = replicas * replicas * RINGS_PER_WRITER + 1;
  let looks = 0;
  meanwhile = () => {
    if (looks++ === looksBefore) for (let i = 0; i < 100; i++) second.append('x'.repeat(60));
  };
  await copies.copy();
  expect(looks).toBeGreaterThan(looksBefore);
  await copies.copy();
  expect(() => readOn(tail)).toThrow(expect.objectContaining({ code: 'TRAM_LAGGED' }));
});

test('what is overwritten while it is copied is not shown', async () => {
  const log = new Original(there, 0, 8);
  log.append('a');
  const tail = await follow();
  const seen: string[] = [];
  let number = 0;
  let looks = 0;
  meanwhile = () => {
    // A little, and now and then more than a log holds.
    const count = looks % 400 === 0 ? 60 : looks % 7 === 0 ? 3 : 0;
    looks++;
    for (let i = 0; i < count; i++) log.append(String(number++).padStart(40));
  };
  let reader = tail;
  for (let round = 0; round < 300; round++) {
    await copies.copy();
    try {
      seen.push(...readOn(reader));
    } catch (error) {
      expect(error).toMatchObject({ code: 'TRAM_LAGGED' });
      reader = new Tail(here, GROUP);
    }
  }
  const numbers = seen.map(Number);
  expect(numbers.length).toBeGreaterThan(300);
  expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
});
