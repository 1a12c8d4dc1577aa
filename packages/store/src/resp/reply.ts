/** Replies as commands return them. The writer turns them into RESP 2 or 3. */

/**
 * A string of bytes: each character is one byte, 0 to 255. Everything that clients send is kept in this form: keys, values,
 * fields, members. V8 keeps such strings in one byte for each character, and they can be keys of a `Map`.
 */
export type Bytes = string;

/**
 * | value | RESP 3 | RESP 2, if different |
 * |---|---|---|
 * | number (an integer), bigint | integer | |
 * | string | bulk string | |
 * | null | null | null bulk string |
 * | array | array | |
 * | the classes below | see there | |
 */
export type Reply =
  | number
  | bigint
  | Bytes
  | null
  | readonly Reply[]
  | Simple
  | ErrorReply
  | NullArray
  | BooleanReply
  | Double
  | BigNumber
  | Pairs
  | MapReply
  | MapOrPairs
  | SetReply
  | Verbatim
  | Push;

/** A simple string, such as `+OK`. */
export class Simple {
  constructor(readonly text: string) {}
}

export const OK = new Simple('OK');
export const QUEUED = new Simple('QUEUED');

/** An error. Commands throw it; it is a value where an array of replies has it. The message begins with its code, such as `ERR`. */
export class ErrorReply extends Error {
  override name = 'ErrorReply';
}

/** RESP 3: null. RESP 2: the null array `*-1`, where Redis replies with it. */
export class NullArray {
  static readonly instance = new NullArray();
  private constructor() {}
}

/** RESP 3: a boolean. RESP 2: 1 or 0. */
export class BooleanReply {
  constructor(readonly value: boolean) {}
}

/** RESP 3: a double. RESP 2: a bulk string with the same text. */
export class Double {
  /** @param text  if it is not written with 17 digits, as others are */
  constructor(
    readonly value: number,
    readonly text?: string,
  ) {}
}

/** RESP 3: a big number. RESP 2: a bulk string with its digits. */
export class BigNumber {
  constructor(readonly digits: Bytes) {}
}

/** RESP 3: an array of arrays of two. RESP 2: one flat array. For members with scores. */
export class Pairs {
  constructor(readonly pairs: readonly (readonly [Reply, Reply])[]) {}
}

/** RESP 3: a map. RESP 2: a flat array of keys and values. */
export class MapReply {
  constructor(readonly entries: readonly (readonly [Reply, Reply])[]) {}
}

/** RESP 3: a map. RESP 2: an array of arrays of two. For entries of several streams. */
export class MapOrPairs {
  constructor(readonly entries: readonly (readonly [Reply, Reply])[]) {}
}

/** RESP 3: a set. RESP 2: an array. */
export class SetReply {
  constructor(readonly members: readonly Reply[]) {}
}

/** RESP 3: a verbatim string. RESP 2: a bulk string. */
export class Verbatim {
  /** @param format  three characters */
  constructor(
    readonly text: Bytes,
    readonly format: Bytes = 'txt',
  ) {}
}

/** RESP 3: out-of-band data. RESP 2: an array. For messages of channels. */
export class Push {
  constructor(readonly items: readonly Reply[]) {}
}
