/** The first line of scripts and libraries, such as `#!lua name=library flags=no-writes`. */

import { splitWords } from '../../resp/inline.js';
import { type Bytes, ErrorReply } from '../../resp/reply.js';

/** What scripts and functions can say of themselves. */
export const FLAGS = [
  'no-writes',
  'allow-oom',
  'allow-stale',
  'no-cluster',
  'allow-cross-slot-keys',
];

interface Shebang {
  readonly engine: string;
  readonly words: readonly string[];
  readonly code: Bytes;
}

/** @param body  begins with `#!`. @returns undefined if the line has no end, or a quote in it has none */
function readShebang(body: Bytes): Shebang | undefined {
  const end = body.indexOf('\n');
  const words = end < 0 ? undefined : splitWords(body.slice(0, end));
  if (words === undefined) return undefined;
  return { engine: words[0].slice(2), words: words.slice(1), code: body.slice(end) };
}

/** @returns the code of a script, and the flags that it has; undefined if it has no first line that could have them */
export function readScript(body: Bytes): { code: Bytes; flags: readonly string[] | undefined } {
  if (!body.startsWith('#!')) return { code: body, flags: undefined };
  const shebang = readShebang(body);
  if (shebang === undefined) throw new ErrorReply('ERR Invalid script shebang');
  const { engine, words, code } = shebang;
  if (engine !== 'lua') {
    throw new ErrorReply(`ERR Unexpected engine in script shebang: #!${engine}`);
  }
  const flags: string[] = [];
  for (const word of words) {
    if (!word.startsWith('flags=')) throw new ErrorReply(`ERR Unknown lua shebang option: ${word}`);
    const given = word.slice('flags='.length);
    for (const flag of given === '' ? [] : given.split(',')) {
      if (!FLAGS.includes(flag)) {
        throw new ErrorReply(`ERR Unexpected flag in script shebang: ${flag}`);
      }
      flags.push(flag);
    }
  }
  return { code, flags };
}

/** @returns the name of a library, and its code */
export function readLibrary(body: Bytes): { name: string; code: Bytes } {
  if (!body.startsWith('#!')) throw new ErrorReply('ERR Missing library metadata');
  const shebang = readShebang(body);
  if (shebang === undefined) throw new ErrorReply('ERR Invalid library metadata');
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
