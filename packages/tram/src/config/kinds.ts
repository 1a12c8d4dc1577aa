/** The kinds of values that options have, as data: `options.ts` composes them, `validate.ts` interprets them. */
import { listed } from './mistakes.js';

export type Kind = Scalar | List | Table;

/** `expected` completes the sentence "… must be …", here and below. */
export interface Scalar {
  readonly expected: string;
  accepts(value: unknown): boolean;
}

export interface List {
  readonly expected: string;
  readonly elements: Kind;
  /** What the user may give instead of a list. */
  readonly or?: Scalar;
}

export interface Table {
  readonly expected: string;
  readonly fields: Fields;
}

export type Fields = Readonly<Record<string, Option>>;

export interface Option {
  /** An option without a `kind` is for `memory: 'machines'` only. */
  readonly kind?: Kind;
  /** What the value must be with `memory: 'machines'`, if that differs from `kind`. */
  readonly onMachines?: Kind;
  readonly required?: 'always' | 'on machines';
  /** The value if the user gives none. */
  readonly default?: string | number;
  /** In words, for the documentation: the default if it is computed; after a `default`, what raises it. */
  readonly computed?: string;
  /** What to do about a missing or wrong value. */
  readonly hint?: string;
}

export function integer(least: number, most: number): Scalar {
  return {
    expected: `an integer from ${least} to ${most}`,
    accepts: (value) => Number.isInteger(value) && isWithin(value as number, least, most),
  };
}

export function number(least: number, most: number): Scalar {
  return {
    expected: `a number from ${least} to ${most}`,
    accepts: (value) => typeof value === 'number' && isWithin(value, least, most),
  };
}

function isWithin(value: number, least: number, most: number): boolean {
  return value >= least && value <= most;
}

export function choice(values: readonly (string | number)[]): Scalar {
  return { expected: listed(values), accepts: (value) => values.some((one) => one === value) };
}

/** A string of a certain form. */
export function text(expected: string, isRight: (text: string) => boolean): Scalar {
  return { expected, accepts: (value) => typeof value === 'string' && isRight(value) };
}

export const PATH = text('a path', (path) => path !== '');

/** Becomes part of a file's name. */
export const NAME = text(
  'a name of 1 to 64 letters, digits, dots, dashes and underscores that begins with a letter or digit',
  (name) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name),
);
