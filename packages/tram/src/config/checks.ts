/**
 * What all checks of a cluster's options have in common: how a mistake is told, and what a number, a text or a name must
 * be. Used by `config.ts` and what stands beside it.
 */
import { type ErrorCode, TramError, type TramErrorOptions } from '../errors.js';

export type Path = readonly (string | number)[];

/** `path` leads to the value at fault: an option, perhaps an element of it; empty if there is no one value. */
export class ConfigError extends TramError {
  constructor(
    readonly path: Path,
    message: string,
    options: TramErrorOptions & { readonly code?: ErrorCode } = {},
  ) {
    super(options.code ?? 'TRAM_INVALID_CONFIG', message, options);
  }
}

/** `hosts[1].port` */
export function describePath([first = '', ...rest]: Path): string {
  const places = rest.map((place) => (typeof place === 'number' ? `[${place}]` : `.${place}`));
  return `${first}${places.join('')}`;
}

/** As it stands in "must be …, not …". */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'string') return `the string ${quote(value)}`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

export function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

export interface Range {
  readonly least: number;
  readonly most: number;
  readonly isFractional?: true;
}

export function expectation({ least, most, isFractional }: Range): string {
  return `${isFractional ? 'a number' : 'an integer'} from ${least} to ${most}`;
}

export function checkNumber(value: unknown, path: Path, range: Range): number {
  const isRight =
    typeof value === 'number' &&
    (range.isFractional || Number.isInteger(value)) &&
    value >= range.least &&
    value <= range.most;
  if (isRight) return value;
  throw mustBe(path, expectation(range), value);
}

export function checkText(value: unknown, path: Path): string {
  if (typeof value === 'string') return value;
  throw mustBe(path, 'a string', value);
}

export function checkFilled(value: unknown, path: Path): string {
  const text = checkText(value, path);
  if (text !== '') return text;
  throw new ConfigError(path, `${describePath(path)} must not be empty`);
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** It becomes part of a file's name. */
export function checkName(value: unknown, path: Path): string {
  const name = checkText(value, path);
  if (NAME.test(name)) return name;
  throw new ConfigError(
    path,
    `${describePath(path)} must be 1 to 64 letters, digits, dots, dashes and underscores, ` +
      `a letter or digit first, not ${quote(name)}`,
  );
}

export function mustBe(path: Path, expected: string, value: unknown): ConfigError {
  return new ConfigError(
    path,
    `${describePath(path)} must be ${expected}, not ${describeValue(value)}`,
  );
}

/** "one, two or three" */
export function listed(words: readonly string[]): string {
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

/** The known name that `name` may have been meant for, if one is close enough. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const asked = plain(name);
  let nearest: string | undefined;
  let nearestEdits = Math.floor(asked.length / 3) + 1;
  for (const candidate of known) {
    const edits = editDistance(asked, plain(candidate));
    if (edits < nearestEdits) {
      nearest = candidate;
      nearestEdits = edits;
    }
  }
  const isBeginning = (candidate: string): boolean =>
    asked.length >= 3 && plain(candidate).startsWith(asked);
  return nearest ?? known.find(isBeginning);
}

/** `payload_bytes_max` and `Payload-Bytes-Max` are only spelled otherwise. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** How many letters must be put in, taken out or replaced. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  return previous[to.length]!;
}
