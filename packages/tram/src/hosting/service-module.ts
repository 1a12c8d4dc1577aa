/**
 * Imports the module of a service, once for each replica. If that fails, the error names the file and the line, so that
 * users need not search the output of a host for them.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { TramError } from '../errors.js';
import { describeThrown, isOwnPlace, placeOf } from './origin.js';

/** Anything, until it is checked. */
export type Exports = Readonly<Partial<Record<string, unknown>>>;

/** How long the search for a syntax error may take. */
const PARSE_MS = 10_000;
const NAME_MAX = 60;
const TYPESCRIPT = /\.[cm]?tsx?$/;

/** For errors: the URL, of which a data: URL has only the beginning. */
export function nameOf(href: string): string {
  return href.startsWith('data:') && href.length > NAME_MAX ? `${href.slice(0, NAME_MAX)}…` : href;
}

/**
 * @param label  makes this import load an instance of the module of its own
 * @throws TRAM_SERVICE_INVALID
 */
export async function importModule(href: string, label: string): Promise<Exports> {
  const instance = new URL(href);
  // A data: URL has no query, so the fragment makes each import a new one.
  if (instance.protocol === 'file:') instance.search = label;
  else instance.hash = label;
  try {
    return (await import(instance.href)) as Exports;
  } catch (cause) {
    const { why, hint } = explain(href, cause);
    const message = `can't load the service ${nameOf(href)}: ${why.replaceAll(`?${label}`, '')}`;
    throw new TramError('TRAM_SERVICE_INVALID', message, { cause, hint });
  }
}

function explain(href: string, cause: unknown): { why: string; hint?: string } {
  if (!(cause instanceof Error)) return { why: `it threw ${describeThrown(cause)}` };
  const { protocol, pathname } = new URL(href);
  if (protocol === 'file:' && !existsSync(fileURLToPath(href))) {
    return {
      why: 'there is no such file',
      hint: 'A relative path starts from the working directory.',
    };
  }
  if (TYPESCRIPT.test(pathname)) {
    const hint =
      'Compile the service, for example with `npx tsc`, and give the path of the JavaScript file.';
    return { why: String(cause), hint };
  }
  const place = cause instanceof SyntaxError ? whereItFailsToParse(href, cause) : placeOf(cause);
  const isKnown = place !== undefined && !isOwnPlace(place);
  return { why: isKnown ? `${String(cause)} (${place})` : String(cause) };
}

/**
 * Node tells the place of a syntax error only when it prints an error that nobody has caught. So another process imports
 * the module too. That runs none of its code, because none of it runs before all of it is parsed.
 */
function whereItFailsToParse(href: string, { stack = '' }: SyntaxError): string | undefined {
  const place = /^(?:file|data):.*:\d+$/m;
  const [told] = place.exec(stack) ?? [];
  if (told !== undefined || !href.startsWith('file:')) return told;
  const program = `import(${JSON.stringify(href)})`;
  const { stderr } = spawnSync(process.execPath, ['-e', program], {
    encoding: 'utf8',
    timeout: PARSE_MS,
  });
  return place.exec(stderr)?.[0];
}
