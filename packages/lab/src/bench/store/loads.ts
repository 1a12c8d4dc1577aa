/** The requests of `bench store`: what is sent to each system, encoded in advance. */
import { encodeCommand } from '../peers/resp.js';

export type LoadId = 'set' | 'get' | 'mset' | 'multi';

/** How many requests a connection sends together. It sends the next ones when it has all replies. */
export type Pipeline = 1 | 16;

export interface LoadKind {
  readonly id: LoadId;
  readonly name: string;
  /** Of the measured store. */
  readonly shards: number;
  readonly writes: boolean;
  /** How many keys a request has. */
  readonly keys: number;
  /** How many replies a request has. */
  readonly replies: number;
  encode(key: () => string): Buffer;
}

/** Keys and values have the length that `redis-benchmark` gives them. */
export const KEYS = 100_000;
export const VALUE = 'xxx';

const MSET_KEYS = 10;
const MULTI_KEYS = 8;

/** The default of the store, and the number over which a request with many keys is spread. */
export const FEW_SHARDS = 4;
const MANY_SHARDS = 8;

export const LOADS: readonly LoadKind[] = [
  {
    id: 'set',
    name: 'SET',
    ...{ shards: FEW_SHARDS, writes: true, keys: 1, replies: 1 },
    encode: (key) => encodeCommand('SET', key(), VALUE),
  },
  {
    id: 'get',
    name: 'GET',
    ...{ shards: FEW_SHARDS, writes: false, keys: 1, replies: 1 },
    encode: (key) => encodeCommand('GET', key()),
  },
  {
    id: 'mset',
    name: `MSET of ${MSET_KEYS} keys`,
    ...{ shards: MANY_SHARDS, writes: true, keys: MSET_KEYS, replies: 1 },
    encode: (key) =>
      encodeCommand('MSET', ...Array.from({ length: MSET_KEYS }, () => [key(), VALUE]).flat()),
  },
  {
    id: 'multi',
    name: `MULTI, ${MULTI_KEYS} SET, EXEC`,
    ...{ shards: MANY_SHARDS, writes: true, keys: MULTI_KEYS, replies: MULTI_KEYS + 2 },
    encode: (key) =>
      Buffer.concat([
        encodeCommand('MULTI'),
        ...Array.from({ length: MULTI_KEYS }, () => encodeCommand('SET', key(), VALUE)),
        encodeCommand('EXEC'),
      ]),
  },
];

export function loadOf(id: LoadId): LoadKind {
  return LOADS.find((load) => load.id === id)!;
}

/** As `redis-benchmark -r` names them. */
export function keyOf(number: number): string {
  return `key:${String(number).padStart(12, '0')}`;
}
