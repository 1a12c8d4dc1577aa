/** Where the module of the replicated service is: a URL, or a path. */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Scalar } from './kinds.js';
import { listed } from './mistakes.js';

/** At least two letters: `C:\service.js` is a path. */
const SCHEME = /^[a-z][a-z0-9+.-]+:/i;
const SCHEMES = ['file:', 'data:'];

export const SERVICE: Scalar = {
  expected: `a path or a URL with ${listed(SCHEMES)}`,
  accepts(value) {
    const text = value instanceof URL ? value.href : value;
    if (typeof text !== 'string' || text === '') return false;
    if (!SCHEME.test(text)) return true;
    return URL.canParse(text) && SCHEMES.includes(new URL(text).protocol);
  },
};

/** @param directory  the one that paths are relative to */
export function serviceUrl(service: URL | string, directory: string): string {
  const text = service instanceof URL ? service.href : service;
  return SCHEME.test(text) ? new URL(text).href : pathToFileURL(resolve(directory, text)).href;
}
