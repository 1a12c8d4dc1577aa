/** How the validator reports a mistake in the options: where it is, what was given, and what is allowed. */
import { type ErrorCode, TramError, type TramErrorOptions } from '../errors.js';

/** Leads to a value: an option, perhaps an element of it. Empty if no single value is at fault. */
export type Path = readonly (string | number)[];

export interface Mistake {
  readonly path: Path;
  readonly message: string;
  readonly hint?: string | undefined;
  /** The key itself is wrong, whatever its value is. */
  readonly isInKey?: true;
}

/** A mistake as the user sees it. */
export class ConfigError extends TramError {
  static {
    ConfigError.prototype.name = 'ConfigError';
  }

  constructor(
    readonly path: Path,
    message: string,
    options: TramErrorOptions & { readonly code?: ErrorCode } = {},
  ) {
    super(options.code ?? 'TRAM_INVALID_CONFIG', message, options);
  }
}

/** `groups must be an integer from 1 to 64, not 65` */
export function mustBe(path: Path, expected: string, value: unknown, hint?: string): Mistake {
  const message = `${describePath(path)} must be ${expected}, not ${describeValue(value)}`;
  return { path, message, hint };
}

/** `hosts[1].port` */
export function describePath([first = 'the options', ...rest]: Path): string {
  const steps = rest.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`));
  return `${first}${steps.join('')}`;
}

/** A value as it reads in "must be …, not …". */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'string') return `the string ${quote(value)}`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** In double quotes, and cut if it is long. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** "one, two or three" */
export function listed(words: readonly (string | number)[]): string {
  return `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}
