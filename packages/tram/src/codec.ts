/**
 * How commands, replies and states of a typed service become bytes.
 *
 * JSON is the default. It changes or drops some values without a word: a `Map` becomes `{}`, a `Date` text, `NaN` null. A
 * state that loses something on the way to another replica is no longer the same state, so the codec refuses such values.
 */

export interface Codec<Value> {
  encode(value: Value): Uint8Array;
  /** @param bytes  a copy, which the value may keep. @throws if they are not those of a value */
  decode(bytes: Uint8Array): Value;
}

/** How a state becomes bytes: at once, or in pieces, as `StatefulService.snapshot` gives them. */
export interface StateCodec<State> {
  encode(state: State): Uint8Array | Iterable<Uint8Array>;
  /** @param bytes  all pieces together, a copy. @throws if they are not those of a state */
  decode(bytes: Uint8Array): State;
}

/** Bytes as they are. */
export const bytesCodec: Codec<Uint8Array> = {
  encode: (bytes) => {
    if (bytes instanceof Uint8Array) return bytes;
    throw new TypeError(`the value must be a Uint8Array, not ${describe(bytes)}`);
  },
  decode: (bytes) => bytes,
};

/** `undefined` has no JSON: it is no bytes at all. */
const NOTHING = new Uint8Array(0);
const DEPTH_MAX = 500;
const PATH_MAX = 100;

/** Up to this many characters, a loop is much faster than an encoder. */
const SHORT_TEXT = 64;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

/** @internal For commands and replies. */
export const jsonCodec: Codec<unknown> = {
  encode: (value) => encodeJson(value, false),
  decode: (bytes) => {
    if (bytes.length === 0) return undefined;
    try {
      return JSON.parse(decoder.decode(bytes));
    } catch (cause) {
      // The text of the cause depends on the version of Node, and all replicas must fail alike.
      throw new TypeError(`${bytes.length} bytes are not JSON`, { cause });
    }
  },
};

/**
 * @internal For states. A service reads its state again, so here JSON must not even leave out a property that is undefined
 * (which `Object.keys` shows), or make two objects of one that occurs twice (of which a change would reach only one).
 */
export const jsonStateCodec: Codec<unknown> = {
  encode: (state) => encodeJson(state, true),
  decode: jsonCodec.decode,
};

function encodeJson(value: unknown, isState: boolean): Uint8Array {
  if (value === undefined) return NOTHING;
  const loss = new Search(isState).lossIn(value, 0);
  if (loss !== undefined) throw new TypeError(describeLoss(loss));
  return bytesOf(JSON.stringify(value));
}

function bytesOf(text: string): Uint8Array {
  const { length } = text;
  if (length > SHORT_TEXT) return encoder.encode(text);
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return encoder.encode(text);
    bytes[i] = code;
  }
  return bytes;
}

/** A part of a value that JSON would change. */
interface Loss {
  readonly what: string;
  /** Such as `.items[2]`. */
  readonly path: string;
}

/** Searches a value for what JSON would change. */
class Search {
  /** The objects in which nothing was found: each is searched once, however often it occurs. Absent if there are none. */
  private done: Set<unknown> | undefined;

  constructor(private readonly isState: boolean) {}

  /** The first such part. The path is put together only if there is one. */
  lossIn(value: unknown, depth: number): Loss | undefined {
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return undefined;
    if (typeof value === 'number' && Number.isFinite(value) && !Object.is(value, -0)) {
      return undefined;
    }
    if (depth > DEPTH_MAX) return { what: 'a value that contains itself or is too deep', path: '' };
    if (this.done?.has(value)) {
      return this.isState ? { what: 'an object that occurs twice', path: '' } : undefined;
    }
    const loss = Array.isArray(value)
      ? this.lossInArray(value, depth)
      : isPlain(value)
        ? this.lossInObject(value, depth)
        : { what: describe(value), path: '' };
    // After the value itself nothing is searched.
    if (loss === undefined && depth > 0) {
      this.done ??= new Set();
      this.done.add(value);
    }
    return loss;
  }

  private lossInArray(array: readonly unknown[], depth: number): Loss | undefined {
    for (let i = 0; i < array.length; i++) {
      const loss = this.lossIn(array[i], depth + 1);
      if (loss !== undefined) return { ...loss, path: `[${i}]${loss.path}` };
    }
    return undefined;
  }

  private lossInObject(object: Record<string, unknown>, depth: number): Loss | undefined {
    for (const key of Object.keys(object)) {
      // Of a command or a reply, JSON leaves it out, and reading it gives undefined all the same.
      if (object[key] === undefined && !this.isState) continue;
      const loss = this.lossIn(object[key], depth + 1);
      if (loss !== undefined) return { ...loss, path: `.${key}${loss.path}` };
    }
    return undefined;
  }
}

function describeLoss({ what, path }: Loss): string {
  const where =
    path === '' ? '' : `, at ${path.length > PATH_MAX ? `${path.slice(0, PATH_MAX)}…` : path}`;
  const instead = what === 'a Uint8Array' && path === '' ? ': use bytesCodec for bytes' : '';
  return `JSON can't represent ${what}${where}${instead}`;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** `NaN`, `a bigint`, `a Map`: for an error. */
function describe(value: unknown): string {
  if (Object.is(value, -0)) return '-0';
  if (typeof value === 'number' || value === undefined || value === null) return String(value);
  if (typeof value !== 'object') return `a ${typeof value}`;
  return `a ${value.constructor?.name ?? 'object'}`;
}
