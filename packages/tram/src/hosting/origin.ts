/** What was thrown, and where: in the user's code or in TRAM's, by its stack. A service may throw anything. */

import { TramError } from '../errors.js';
import { InvariantError } from '../protocol/assert.js';

/** The folder of TRAM's modules. */
const OWN = new URL('..', import.meta.url).href;
/** `at f (file:///service.js?replica=0.1.2:3:4)` and `at file:///service.js:3:4` */
const FRAME = /^ +at (?:.* \()?((?:file|data):[^)\n]*:\d+:\d+)\)?$/;

/** The innermost frame that is not of Node itself: a URL with line and column. */
export function placeOf(error: Error): string | undefined {
  return placesOf(error)[0];
}

/** The frames that are not of Node itself, the innermost first. */
function placesOf(error: Error): string[] {
  const places = describeThrown(error)
    .split('\n')
    .map((line) => FRAME.exec(line)?.[1]);
  return places.filter((place) => place !== undefined);
}

/** Is the place in TRAM's own modules? */
export function isOwnPlace(place: string | undefined): boolean {
  return place?.startsWith(OWN) ?? false;
}

/** Is this a bug of TRAM? If other code has called TRAM, and has not caught the error, it is a mistake of that code. */
export function isOwnBug(error: unknown): boolean {
  if (error instanceof InvariantError) return true;
  if (!(error instanceof Error) || error instanceof TramError) return false;
  const places = placesOf(error);
  return places.length > 0 && places.every(isOwnPlace);
}

/** What a function of the service has thrown, with the frames of the service: without those of TRAM, which has called it. */
export function describeThrownByService(error: unknown): string {
  const lines = describeThrown(error).split('\n');
  const end = lines.findIndex((line) => isOwnPlace(FRAME.exec(line)?.[1]));
  return lines.slice(0, end === -1 ? undefined : end).join('\n');
}

/** With its stack. Does not throw, whatever was thrown. */
export function describeThrown(error: unknown): string {
  try {
    return error instanceof Error ? String(error.stack) : String(error);
  } catch {
    return `${typeof error} that can't be converted to text`;
  }
}
