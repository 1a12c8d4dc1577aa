/** The built page: a few files, which the package has beside its modules. */
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TramError } from '../errors.js';

export interface PageFile {
  readonly type: string;
  readonly bytes: Uint8Array;
}

const FOLDER = fileURLToPath(new URL('./built/', import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/** By path. @throws TRAM_NOT_FOUND */
export function pageFiles(): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>();
  for (const name of namesIn(FOLDER)) {
    const file = { type: TYPES[extname(name)], bytes: readFileSync(join(FOLDER, name)) };
    files.set(name === 'index.html' ? '/' : `/${name}`, file);
  }
  return files;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => extname(name) in TYPES);
  } catch (cause) {
    throw new TramError('TRAM_NOT_FOUND', `the page is not in ${folder}`, {
      hint: 'In a checkout, build it with `npm run build`. Otherwise install the package again.',
      cause,
    });
  }
}
