/** How `cjson` encodes and decodes. Each script begins with the defaults. */

import type { Arguments, Native } from './arguments.js';

/** Deeper tables would fill the stack of JavaScript, whatever a script allows. */
export const DEPTH_MAX = 1000;

export interface JsonSettings {
  readonly encodeDepth: number;
  readonly decodeDepth: number;
  /** How many digits numbers have. */
  readonly precision: number;
  /** How NaN and infinite numbers are encoded: as an error, as their names, or as null. */
  readonly invalidNumbers: 'off' | 'on' | 'null';
  /** Whether numbers are read that JSON does not have, such as `0x10` or `nan`. */
  readonly readsInvalidNumbers: boolean;
  /** Has no effect here. */
  readonly keepsBuffer: boolean;
  /** Whether an array with few elements becomes an object; otherwise it is an error. */
  readonly convertsSparse: boolean;
  /** An array is sparse if its last index is more than so many times the number of elements; 0: none is. */
  readonly sparseRatio: number;
  /** Arrays up to this last index are never sparse. */
  readonly sparseSafe: number;
}

export const JSON_DEFAULTS: JsonSettings = {
  encodeDepth: DEPTH_MAX,
  decodeDepth: DEPTH_MAX,
  precision: 14,
  invalidNumbers: 'off',
  readsInvalidNumbers: true,
  keepsBuffer: true,
  convertsSparse: false,
  sparseRatio: 2,
  sparseSafe: 10,
};

const INT_MAX = 2 ** 31 - 1;

type Read<T> = (args: Arguments, position: number) => T;

const word =
  (words: readonly string[]): Read<string> =>
  (args, position) => {
    const given = args.string(position);
    return words.includes(given) ? given : args.fail(position, `invalid option '${given}'`);
  };

const flag: Read<boolean> = (args, position) => {
  const value = args.at(position);
  return typeof value === 'boolean' ? value : word(['off', 'on'])(args, position) === 'on';
};

const integer =
  (min: number, max: number): Read<number> =>
  (args, position) => {
    const value = args.integer(position);
    if (value >= min && value <= max) return value;
    return args.fail(1, `expected integer between ${min} and ${max}`);
  };

const invalidNumbers: Read<JsonSettings['invalidNumbers']> = (args, position) => {
  const value = args.at(position);
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return word(['off', 'on', 'null'])(args, position) as JsonSettings['invalidNumbers'];
};

/** Sets an option if it is given as an argument. @returns the value from then on */
function set<Name extends keyof JsonSettings>(
  args: Arguments,
  position: number,
  name: Name,
  read: Read<JsonSettings[Name]>,
): JsonSettings[Name] {
  const { runtime } = args;
  if (args.at(position) !== undefined) {
    runtime.json = { ...runtime.json, [name]: read(args, position) };
  }
  return runtime.json[name];
}

function atMost(args: Arguments, count: number): void {
  if (args.count > count) args.fail(count + 1, 'found too many arguments');
}

function option<Name extends keyof JsonSettings>(
  name: Name,
  read: Read<JsonSettings[Name]>,
): (args: Arguments) => JsonSettings[Name] {
  return (args) => {
    atMost(args, 1);
    return set(args, 1, name, read);
  };
}

/** The functions of `cjson` that change how it works. */
export const JSON_OPTIONS: Readonly<Record<string, Native>> = {
  decode_invalid_numbers: option('readsInvalidNumbers', flag),
  decode_max_depth: option('decodeDepth', integer(1, INT_MAX)),
  encode_invalid_numbers: (args) => {
    const holds = option('invalidNumbers', invalidNumbers)(args);
    return holds === 'null' ? holds : holds === 'on';
  },
  encode_keep_buffer: option('keepsBuffer', flag),
  encode_max_depth: option('encodeDepth', integer(1, INT_MAX)),
  encode_number_precision: option('precision', integer(1, 14)),
  encode_sparse_array: (args) => {
    atMost(args, 3);
    return [
      set(args, 1, 'convertsSparse', flag),
      set(args, 2, 'sparseRatio', integer(0, INT_MAX)),
      set(args, 3, 'sparseSafe', integer(0, INT_MAX)),
    ];
  },
};
