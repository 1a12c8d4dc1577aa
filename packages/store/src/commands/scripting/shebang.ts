/** The first line of scripts and libraries, such as `#!lua name=library flags=no-writes`. */

import { type Bytes, ErrorReply } from '../../resp/reply.js';

/** What scripts and functions can say of themselves. */
export const FLAGS = [
  'no-writes',
  'allow-oom',
  'allow-stale',
  'no-cluster',
  'allow-cross-slot-keys',
];

/** @returns undefined if there is none */
export function readShebang(
  body: Bytes,
): { engine: string; words: readonly string[]; code: Bytes } | undefined {
  if (!body.startsWith('#!')) return undefined;
  const end = body.indexOf('\n');
  const line = end < 0 ? body : body.slice(0, end);
  const [engine, ...words] = line.slice(2).trim().split(/\s+/);
  return { engine, words, code: end < 0 ? '' : body.slice(end) };
}

/** @returns the code of a script, and the flags that it has; undefined if it has no first line that could have them */
export function readScript(body: Bytes): { code: Bytes; flags: readonly string[] | undefined } {
  const shebang = readShebang(body);
  if (shebang === undefined) return { code: body, flags: undefined };
  if (!body.includes('\n')) throw new ErrorReply('ERR Invalid script shebang');
  const { engine, words, code } = shebang;
  if (engine !== 'lua') {
    throw new ErrorReply(`ERR Unexpected engine in script shebang: #!${engine}`);
  }
  const flags: string[] = [];
  for (const word of words) {
    if (!word.startsWith('flags=')) throw new ErrorReply(`ERR Unknown lua shebang option: ${word}`);
    for (const flag of word.slice('flags='.length).split(',')) {
      if (flag !== '' && !FLAGS.includes(flag)) {
        throw new ErrorReply(`ERR Unexpected flag in script shebang: ${flag}`);
      }
      flags.push(flag);
    }
  }
  return { code, flags };
}

/** @returns the name of a library, and its code */
export function readLibrary(body: Bytes): { name: string; code: Bytes } {
  const shebang = readShebang(body);
  if (shebang === undefined) throw new ErrorReply('ERR Missing library metadata');
  if (!body.includes('\n')) throw new ErrorReply('ERR Invalid library metadata');
  let name: string | undefined;
  for (const word of shebang.words) {
    if (!word.toLowerCase().startsWith('name=')) {
      throw new ErrorReply(`ERR Invalid metadata value given: ${word}`);
    }
    if (name !== undefined) {
      throw new ErrorReply('ERR Invalid metadata value, name argument was given multiple times');
    }
    name = word.slice('name='.length);
  }
  if (name === undefined) throw new ErrorReply('ERR Library name was not given');
  if (!/^\w+$/.test(name)) {
    throw new ErrorReply(
      'ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long',
    );
  }
  if (shebang.engine.toLowerCase() !== 'lua') {
    throw new ErrorReply(`ERR Engine '${shebang.engine}' not found`);
  }
  return { name, code: shebang.code };
}
