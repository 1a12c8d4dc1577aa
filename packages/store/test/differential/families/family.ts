/** What a family of commands draws. */

import * as fc from 'fast-check';
import type { Comparison } from '../comparisons.js';
import type { Step } from '../run.js';

export type Drawn = fc.Arbitrary<readonly string[]>;

export interface Family {
  /** For each command of the table, in lower case; a subcommand is `object|encoding`. */
  readonly commands: Readonly<Record<string, Drawn>>;
  /** For those whose replies need not be equal. */
  readonly comparisons?: Readonly<Record<string, Comparison>>;
  /** What goes before a command. */
  readonly before?: Readonly<Record<string, Step>>;
  /** What follows a command whose random choice would leave a difference. */
  readonly after?: Readonly<Record<string, (command: readonly string[]) => Step>>;
}

/** Few keys, so that commands meet. Each type has its own, and sometimes another's is drawn. */
const OWN = {
  string: ['s1', 's2', 's3'],
  hash: ['h1', 'h2'],
  list: ['l1', 'l2', 'l3'],
  set: ['t1', 't2', 't3'],
  zset: ['z1', 'z2', 'z3'],
  stream: ['x1', 'x2'],
};

export const anyKey = fc.constantFrom(...Object.values(OWN).flat(), 'absent');

export function keyOf(type: keyof typeof OWN): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...OWN[type]) },
    { weight: 1, arbitrary: anyKey },
  );
}

/** One of these words, in any case. */
export function word(...words: string[]): fc.Arbitrary<string> {
  return fc.constantFrom(...words.flatMap((one) => [one, one, one.toLowerCase()]));
}

/** A command of fixed parts: texts, and what is drawn. */
export function of(...parts: (string | fc.Arbitrary<string>)[]): Drawn {
  return fc.tuple(...parts.map((part) => (typeof part === 'string' ? fc.constant(part) : part)));
}

/** Puts drawn pieces one after the other. */
export function joined(...parts: (string | fc.Arbitrary<string | readonly string[]>)[]): Drawn {
  const arbitraries = parts.map((part) => (typeof part === 'string' ? fc.constant(part) : part));
  return fc.tuple(...arbitraries).map((pieces) => pieces.flat());
}

/** This piece, or nothing. */
export function maybe(...parts: (string | fc.Arbitrary<string | readonly string[]>)[]): Drawn {
  return fc.oneof(fc.constant([]), joined(...parts));
}

export function several(
  piece: fc.Arbitrary<string | readonly string[]>,
  minLength = 1,
  maxLength = 4,
): Drawn {
  return fc.array(piece, { minLength, maxLength }).map((pieces) => pieces.flat());
}

export const smallInteger = fc.integer({ min: -6, max: 12 }).map(String);

/** Integers at the edges of what has 64 bits, and what is none. */
export const oddInteger = fc.constantFrom(
  '0',
  '1',
  '-1',
  '10',
  '9223372036854775807',
  '-9223372036854775808',
  '9223372036854775808',
  '-9223372036854775809',
  '9007199254740993',
  '-9007199254740993',
  '4294967296',
  '+1',
  '01',
  '-0',
  ' 1',
  '1 ',
  '',
  'a',
  '1.0',
);

export const integer = fc.oneof(
  { weight: 4, arbitrary: smallInteger },
  { weight: 1, arbitrary: oddInteger },
);

export const float = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: -50, max: 50 }).map((n) => String(n / 4)) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '0.1',
      '1.1',
      '3.0',
      '-0.0',
      '1e5',
      '1e-5',
      '1E+3',
      '.5',
      '5.',
      '0x10',
      '123456789.123456789',
      '3.14159265358979323846',
      '1e17',
      '17179869184.5',
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'inf',
      '-inf',
      '+inf',
      'nan',
      '',
      'a',
      ' 1',
      '1 ',
      '1e400',
      '1e-400',
    ),
  },
);

/** What a string, a field or a member has. */
export const value = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('', 'a', 'b', 'ab', 'abc', 'hello world', 'foobar') },
  { weight: 3, arbitrary: integer },
  { weight: 1, arbitrary: float },
  {
    weight: 2,
    arbitrary: fc
      .array(fc.integer({ min: 0, max: 255 }), { maxLength: 12 })
      .map((codes) => String.fromCharCode(...codes)),
  },
  { weight: 1, arbitrary: fc.integer({ min: 40, max: 70 }).map((n) => 'x'.repeat(n)) },
);

/** A few fields or members, so that they meet. */
export const member = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'b', 'c', 'd', '1', '2', '3') },
  { weight: 1, arbitrary: value },
);

export const pattern = fc.constantFrom(
  '*',
  'a*',
  '*1',
  '?',
  '?1',
  '[a-c]',
  '[a-c]*',
  '[^a]',
  '[^a]*',
  's[12]',
  '\\a',
  '[\\a]',
  'h?',
  '',
  '**',
  '*?*',
  '[a',
  '[]',
  '[^]',
  '[z-a]',
  '\\',
  '[-a]',
);
