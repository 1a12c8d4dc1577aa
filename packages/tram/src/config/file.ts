/**
 * Reads the options of a cluster from a YAML file. Options in files and in programs have the same validator; this file only
 * adds the line and column of each mistake, in the format of compilers, so that an editor can jump to it.
 *
 * Relative paths in the file start from the directory of the file.
 */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { type ErrorCode, TramError, type TramErrorOptions } from '../errors.js';
import { NO_SALT } from '../protocol/layout.js';
import { resolveConfig } from './config.js';
import { ConfigError, describePath, describeValue, type Mistake } from './mistakes.js';
import type { ClusterOptions } from './options.js';
import { mistakesIn } from './validate.js';

/** Types only: the package that their module needs may not be installed. */
type YamlDocument = import('./yaml-document.js').YamlDocument;
type Place = import('./yaml-document.js').Place;

interface PlacedMistake {
  readonly message: string;
  readonly place?: Place | undefined;
}

/** Valid options: `resolveConfig` accepts them. */
export async function readConfigFile(path: string): Promise<ClusterOptions> {
  const document = await parse(await readSource(path));
  const { syntaxMistake } = document;
  if (syntaxMistake !== undefined) throw fileError(path, [syntaxMistake]);
  const { value } = document;
  const mistakes = mistakesIn(value);
  if (mistakes.length > 0) {
    const placed = mistakes.map((mistake) => placedMistake(mistake, value, document));
    // Several mistakes have no hint in common.
    throw fileError(path, placed, { hint: mistakes.length === 1 ? mistakes[0].hint : undefined });
  }
  const options = value as ClusterOptions;
  try {
    return { ...options, ...absolutePaths(options, dirname(resolve(path))) };
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    const { message, code, hint } = cause;
    const place = cause.path.length === 0 ? undefined : document.placeOf(cause.path);
    throw fileError(path, [{ place, message }], { code, hint, cause });
  }
}

async function readSource(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') {
      throw new TramError('TRAM_NOT_FOUND', `there is no file ${path}`, { cause });
    }
    throw new TramError('TRAM_SYSTEM', `${path} can't be read: ${message}`, { cause });
  }
}

async function parse(source: string): Promise<YamlDocument> {
  try {
    const { YamlDocument } = await import('./yaml-document.js');
    return new YamlDocument(source);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw new TramError(
      'TRAM_PACKAGE_MISSING',
      "configuration files need the package yaml, which can't be loaded",
      { hint: 'npm install yaml', cause },
    );
  }
}

/** What the validator says of a value, in terms of the file. */
function placedMistake(mistake: Mistake, value: unknown, document: YamlDocument): PlacedMistake {
  const { path, message, isInKey } = mistake;
  if (isInKey) return { place: document.placeOfKey(path), message };
  const place = document.placeOf(path);
  if (path.length === 0) {
    const found = value === null ? 'an empty file' : describeValue(value);
    return { place, message: `expected options such as "groups: 8", not ${found}` };
  }
  if (document.isEmptyAt(path)) {
    const name = describePath(path);
    return { place, message: `${name} has no value: give it one, or leave the line out` };
  }
  return { place, message };
}

function absolutePaths(options: ClusterOptions, directory: string): Partial<ClusterOptions> {
  const { service, trace, journal, secretFile } = resolveConfig(options, NO_SALT, directory);
  return {
    ...(service && { service }),
    ...(trace && { trace }),
    ...(journal && { journal }),
    ...(secretFile && { secret: secretFile }),
  };
}

/** One mistake a line, in the order of the file. */
function fileError(
  path: string,
  mistakes: readonly PlacedMistake[],
  {
    code = 'TRAM_INVALID_CONFIG',
    ...options
  }: TramErrorOptions & { readonly code?: ErrorCode } = {},
): TramError {
  const lines = mistakes
    .toSorted((one, other) => (one.place?.offset ?? 0) - (other.place?.offset ?? 0))
    .map(({ place, message }) =>
      place ? `${path}:${place.line}:${place.column}: ${message}` : `${path}: ${message}`,
    );
  return new TramError(code, lines.join('\n'), options);
}
