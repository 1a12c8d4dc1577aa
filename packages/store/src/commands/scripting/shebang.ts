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

/** The greatest length of the first line. */
const LINE_MAX = 4096;

interface Shebang {
  readonly engine: string;
  readonly words: readonly string[];
  readonly code: Bytes;
}

/**
 * @param body  begins with `#!`
 * @param lineProblem  the error if the line has no end, or is too long
 * @param quoteProblem  the error if a quote in it is not closed
 */
function readShebang(body: Bytes, lineProblem: string, quoteProblem: string): Shebang {
  const end = body.indexOf('\n');
  if (end < 0 || end > LINE_MAX) throw new ErrorReply(lineProblem);
  const words = splitWords(body.slice(0, end));
  if (words === undefined) throw new ErrorReply(quoteProblem);
  return { engine: words[0].slice(2), words: words.slice(1), code: body.slice(end) };
}

/** @returns the code of a script, and the flags that it has; undefined if it has no first line that could have them */
export function readScript(body: Bytes): { code: Bytes; flags: readonly string[] | undefined } {
  if (!body.startsWith('#!')) return { code: body, flags: undefined };
  const { engine, words, code } = readShebang(
    body,
    'ERR Invalid script shebang',
    'ERR Invalid engine in script shebang',
  );
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
  const problem = 'ERR Invalid library metadata';
  const shebang = readShebang(body, problem, problem);
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
