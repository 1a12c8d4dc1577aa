/** Strings that are read and replaced as a whole. */

import type { Keyspace } from '../engine/keyspace.js';
import { type Bytes, OK, type Reply } from '../resp/reply.js';
import { option, syntaxError, wrongArity } from './arguments.js';
import { positiveExpiryTime, TIME_FORMS } from './expiry-times.js';
import { ALL_KEYS, KEYS_WITH_VALUES, ONE_KEY } from './key-ranges.js';
import type { CommandSpec } from './spec.js';
import { perKey } from './spreads.js';

interface SetOptions {
  readonly onlyIf: 'nx' | 'xx' | undefined;
  readonly get: boolean;
  readonly keepTtl: boolean;
  readonly expiresAtMs: number;
}

function setOptions(args: readonly Bytes[], nowMs: number): SetOptions {
  let onlyIf: 'nx' | 'xx' | undefined;
  let get = false;
  let keepTtl = false;
  let form: string | undefined;
  let time = '';
  for (let i = 2; i < args.length; i++) {
    const name = option(args[i]);
    if ((name === 'nx' || name === 'xx') && (onlyIf === undefined || onlyIf === name))
      onlyIf = name;
    else if (name === 'get') get = true;
    else if (name === 'keepttl' && form === undefined) keepTtl = true;
    else if (
      isTimeForm(name) &&
      !keepTtl &&
      (form === undefined || form === name) &&
      i + 1 < args.length
    ) {
      form = name;
      time = args[++i];
    } else throw syntaxError();
  }
  const expiresAtMs =
    form === undefined ? Infinity : positiveExpiryTime(time, TIME_FORMS[form]!, nowMs, 'set');
  return { onlyIf, get, keepTtl, expiresAtMs };
}

function isTimeForm(name: string): boolean {
  return name === 'ex' || name === 'px' || name === 'exat' || name === 'pxat';
}

function set(args: readonly Bytes[], keyspace: Keyspace): Reply {
  const [key, value] = args;
  if (args.length === 2) {
    keyspace.set(key, value);
    return OK;
  }
  const { onlyIf, get, keepTtl, expiresAtMs } = setOptions(args, keyspace.nowMs);
  const old = get ? (keyspace.readString(key) ?? null) : null;
  const entry = keyspace.find(key);
  if (onlyIf !== undefined && (entry !== undefined) !== (onlyIf === 'xx')) return old;
  keyspace.set(key, value, keepTtl ? entry?.expiresAtMs : expiresAtMs);
  return get ? old : OK;
}

function setWithTime(command: string, form: 'ex' | 'px') {
  return ([key, time, value]: readonly Bytes[], { keyspace }: { keyspace: Keyspace }): Reply => {
    const { nowMs } = keyspace;
    keyspace.set(key, value, positiveExpiryTime(time, TIME_FORMS[form]!, nowMs, command));
    return OK;
  };
}

function getAndExpire(args: readonly Bytes[], keyspace: Keyspace): Reply {
  const key = args[0];
  let form: string | undefined;
  let time = '';
  for (let i = 1; i < args.length; i++) {
    const name = option(args[i]);
    if (form !== undefined && form !== name) throw syntaxError();
    if (isTimeForm(name) && i + 1 < args.length) time = args[++i];
    else if (name !== 'persist') throw syntaxError();
    form = name;
  }
  const value = keyspace.readString(key);
  if (value === undefined) return null;
  if (form === undefined) return value;
  if (form === 'persist') {
    if (keyspace.find(key)!.expiresAtMs !== Infinity) keyspace.expireAt(key, Infinity);
    return value;
  }
  const expiresAtMs = positiveExpiryTime(time, TIME_FORMS[form]!, keyspace.nowMs, 'getex');
  if (expiresAtMs <= keyspace.nowMs) keyspace.delete(key);
  else keyspace.expireAt(key, expiresAtMs);
  return value;
}

function setAll(args: readonly Bytes[], keyspace: Keyspace): void {
  for (let i = 0; i < args.length; i += 2) keyspace.set(args[i], args[i + 1]);
}

export const STRINGS: readonly CommandSpec[] = [
  {
    name: 'get',
    arity: 2,
    flags: ['readonly', 'fast'],
    category: 'string',
    since: '1.0.0',
    summary: 'Replies with the string of a key.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => keyspace.readString(key) ?? null,
  },
  {
    name: 'set',
    arity: -3,
    flags: ['write', 'denyoom'],
    category: 'string',
    since: '1.0.0',
    summary: 'Gives a key a string, whatever it had before.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => set(args, keyspace),
  },
  {
    name: 'setnx',
    arity: 3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'string',
    since: '1.0.0',
    summary: 'Gives a key a string if the key is absent.',
    keys: ONE_KEY,
    run: ([key, value], { keyspace }) => {
      if (keyspace.find(key) !== undefined) return 0;
      keyspace.set(key, value);
      return 1;
    },
  },
  {
    name: 'setex',
    arity: 4,
    flags: ['write', 'denyoom'],
    category: 'string',
    since: '2.0.0',
    summary: 'Gives a key a string that expires after seconds.',
    keys: ONE_KEY,
    run: setWithTime('setex', 'ex'),
  },
  {
    name: 'psetex',
    arity: 4,
    flags: ['write', 'denyoom'],
    category: 'string',
    since: '2.6.0',
    summary: 'Gives a key a string that expires after milliseconds.',
    keys: ONE_KEY,
    run: setWithTime('psetex', 'px'),
  },
  {
    name: 'getset',
    arity: 3,
    flags: ['write', 'denyoom', 'fast'],
    category: 'string',
    since: '1.0.0',
    summary: 'Gives a key a string, and replies with the one before.',
    keys: ONE_KEY,
    run: ([key, value], { keyspace }) => {
      const old = keyspace.readString(key) ?? null;
      keyspace.set(key, value);
      return old;
    },
  },
  {
    name: 'getdel',
    arity: 2,
    flags: ['write', 'fast'],
    category: 'string',
    since: '6.2.0',
    summary: 'Deletes a key, and replies with its string.',
    keys: ONE_KEY,
    run: ([key], { keyspace }) => {
      const value = keyspace.readString(key);
      if (value === undefined) return null;
      keyspace.delete(key);
      return value;
    },
  },
  {
    name: 'getex',
    arity: -2,
    flags: ['write', 'fast'],
    category: 'string',
    since: '6.2.0',
    summary: 'Replies with the string of a key, and sets or removes its expiry time.',
    keys: ONE_KEY,
    run: (args, { keyspace }) => getAndExpire(args, keyspace),
  },
  {
    name: 'mget',
    arity: -2,
    flags: ['readonly', 'fast'],
    category: 'string',
    since: '1.0.0',
    summary: 'Replies with the strings of keys.',
    keys: ALL_KEYS,
    spread: perKey(1),
    // A key of another type counts as absent.
    run: (keys, { keyspace }) =>
      keys.map((key) => {
        const value = keyspace.find(key)?.value;
        if (typeof value === 'string') return value;
        return Buffer.isBuffer(value) ? value.toString('latin1') : null;
      }),
  },
  {
    name: 'mset',
    arity: -3,
    flags: ['write', 'denyoom'],
    category: 'string',
    since: '1.0.1',
    summary: 'Gives keys strings, all at once.',
    keys: KEYS_WITH_VALUES,
    spread: perKey(2, 'mset'),
    run: (args, { keyspace }) => {
      if (args.length % 2 !== 0) throw wrongArity('mset');
      setAll(args, keyspace);
      return OK;
    },
  },
  {
    name: 'msetnx',
    arity: -3,
    flags: ['write', 'denyoom'],
    category: 'string',
    since: '1.0.1',
    summary: 'Gives keys strings, all at once, if all of them are absent.',
    keys: KEYS_WITH_VALUES,
    run: (args, { keyspace }) => {
      if (args.length % 2 !== 0) throw wrongArity('msetnx');
      for (let i = 0; i < args.length; i += 2) {
        if (keyspace.find(args[i]) !== undefined) return 0;
      }
      setAll(args, keyspace);
      return 1;
    },
  },
];
