/** Replies that were stored come in pieces. */
import { expect, test } from 'vitest';
import { Fetches } from '../../src/backend/fetches.js';
import { ByteReader } from '../../src/engine/bytes.js';

const PIECE_BYTES = 16 * 1024 - 1;

interface Asked {
  readonly shard: number;
  readonly number: number;
  readonly from: number;
  readonly to: number;
  readonly replied: (piece: Uint8Array) => void;
  readonly failed: (error: Error) => void;
}

/** Shards that reply when they are told to. Each byte of a stored reply tells its place. */
function shards(count: number): {
  fetches: Fetches;
  asked: Asked[];
  reply(asked: Asked, length: number): void;
} {
  const asked: Asked[] = [];
  const fetches = new Fetches(count, (shard, bytes, replied, failed) => {
    const reader = new ByteReader(bytes);
    const [number, from, to] = [reader.float64(), reader.uint32(), reader.uint32()];
    asked.push({ shard, number, from, to, replied, failed });
  });
  const reply = ({ from, to, replied }: Asked, length: number): void =>
    replied(stored(from, Math.min(to, length)));
  return { fetches, asked, reply };
}

function stored(from: number, to: number): Uint8Array {
  return Uint8Array.from({ length: to - from }, (_, i) => (from + i) * 7 + ((from + i) >> 8));
}

test('pieces may come in any order', async () => {
  const { fetches, asked, reply } = shards(1);
  const length = 5 * PIECE_BYTES + 1;
  const fetched = fetches.fetch(0, { number: 1, length });
  expect(asked.map(({ from }) => from / PIECE_BYTES)).toEqual([0, 1, 2, 3, 4, 5]);
  for (const piece of asked.reverse()) reply(piece, length);
  expect(Buffer.compare(await fetched, stored(0, length))).toBe(0);
});

test('a few pieces are under way at a time, and those of all replies come in turn', async () => {
  const { fetches, asked, reply } = shards(1);
  const [long, short] = [100 * PIECE_BYTES, 2 * PIECE_BYTES];
  const ofLong = fetches.fetch(0, { number: 1, length: long });
  const ofShort = fetches.fetch(0, { number: 2, length: short });
  expect(asked.map(({ number }) => number)).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
  for (let i = 0; i < 4; i++) reply(asked[i], long);
  expect(asked.slice(8).map(({ number }) => number)).toEqual([1, 2, 1, 2]);
  for (let i = 4; i < asked.length; i++) reply(asked[i], asked[i].number === 1 ? long : short);
  expect((await ofShort).length).toBe(short);
  expect((await ofLong).length).toBe(long);
});

test('however many shards there are, a few pieces are under way at a time, and shards take turns', () => {
  const { fetches, asked, reply } = shards(16);
  const long = 100 * PIECE_BYTES;
  for (let shard = 0; shard < 16; shard++) void fetches.fetch(shard, { number: 1, length: long });
  expect(asked).toHaveLength(12);
  for (let i = 0; i < 16; i++) reply(asked[i], long);
  expect(new Set(asked.slice(12).map(({ shard }) => shard)).size).toBe(16);
  expect(asked).toHaveLength(28);
});

test('a shard that does not reply leaves room for others', async () => {
  const { fetches, asked, reply } = shards(2);
  const long = 100 * PIECE_BYTES;
  void fetches.fetch(0, { number: 1, length: long });
  const fetched = fetches.fetch(1, { number: 1, length: long });
  for (let i = 0; i < asked.length; i++) if (asked[i].shard === 1) reply(asked[i], long);
  expect((await fetched).length).toBe(long);
  expect(asked.filter(({ shard }) => shard === 0)).toHaveLength(8);
});

test('if a piece was dropped, no more of its reply are asked for', async () => {
  const { fetches, asked, reply } = shards(1);
  const long = 100 * PIECE_BYTES;
  const dropped = fetches.fetch(0, { number: 1, length: long });
  asked[0].replied(new Uint8Array(0));
  await expect(dropped).rejects.toThrow('dropped');
  expect(asked).toHaveLength(8);
  const fetched = fetches.fetch(0, { number: 2, length: 10 });
  asked[1].failed(new Error('the cluster is closed'));
  reply(asked.at(-1)!, 10);
  expect((await fetched).length).toBe(10);
});

test('if asking fails at once, all fetches fail, however many there are', async () => {
  const failures: ((error: Error) => void)[] = [];
  let asked = 0;
  let isClosed = false;
  const closed = new Error('the cluster is closed');
  const fetches = new Fetches(1, (_shard, _bytes, _replied, failed) => {
    asked++;
    if (isClosed) failed(closed);
    else failures.push(failed);
  });
  const count = 5000;
  const fetched = Array.from({ length: count }, (_, i) =>
    fetches
      .fetch(0, { number: i, length: i === 9 ? 3 * PIECE_BYTES : 1 })
      .catch((error: Error) => error),
  );
  isClosed = true;
  for (const failed of failures) failed(closed);
  const outcomes = await Promise.all(fetched);
  expect(outcomes.filter((outcome) => outcome === closed)).toHaveLength(count);
  // Also of the long one, only one piece.
  expect(asked).toBe(count);
});
