/** What was thrown, and where: in the user's code or in TRAM's, by its stack. A service may throw anything. */

import { TramError } from '../errors.js';
import { InvariantError } from '../protocol/assert.js';

/** The folder of TRAM's modules. */
const OWN = new URL('..', import.meta.url).href;
/** `at f (file:///service.js?replica=0.1.2:3:4)` and `at file:///service.js:3:4` */
const FRAME = /^ +at (?:.* \()?((?:file|data):[^)\n]*:\d+:\d+)\)?$/m;

/** The innermost frame that is not of Node itself: a URL with line and column. */
export function placeOf(error: Error): string | undefined {
  return FRAME.exec(error.stack ?? '')?.[1];
}

/** Is the place in TRAM's own modules? */
export function isOwnPlace(place: string | undefined): boolean {
  return place?.startsWith(OWN) ?? false;
}

/** Is this a bug of TRAM? A `TramError` that is not caught is a mistake of the code that has called TRAM. */
export function isOwnBug(error: unknown): boolean {
  if (error instanceof InvariantError) return true;
  if (!(error instanceof Error) || error instanceof TramError) return false;
  return isOwnPlace(placeOf(error));
}

/** With its stack. Does not throw, whatever was thrown. */
export function describeThrown(error: unknown): string {
  try {
    return error instanceof Error ? String(error.stack) : String(error);
  } catch {
    return `${typeof error} that can't be converted to text`;
  }
}
