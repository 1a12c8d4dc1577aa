/** Finds the name that a user probably meant: for "did you mean …?" in error messages. */
import { TramError } from '../errors.js';
import { describeValue, quote } from './mistakes.js';

/** For the options of a call. @throws TRAM_INVALID_ARGUMENT if they are no object, or have one that is not known */
export function requireKnown(options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    const message = `the options must be an object, not ${describeValue(options)}`;
    throw new TramError('TRAM_INVALID_ARGUMENT', message);
  }
  for (const name in options) {
    if (known.includes(name)) continue;
    const nearest = nearestName(name, known);
    const remedy =
      nearest === undefined ? `known: ${known.join(', ')}` : `did you mean ${nearest}?`;
    throw new TramError('TRAM_INVALID_ARGUMENT', `unknown option ${quote(name)}: ${remedy}`);
  }
}

/** The known name that `name` resembles most, or undefined if it resembles none. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const asked = normalized(name);
  let nearest: string | undefined;
  let nearestEdits = Math.floor(asked.length / 3) + 1;
  for (const candidate of known) {
    const edits = editDistance(asked, normalized(candidate));
    if (edits < nearestEdits) {
      nearest = candidate;
      nearestEdits = edits;
    }
  }
  const isPrefix = (candidate: string): boolean =>
    asked.length >= 3 && normalized(candidate).startsWith(asked);
  return nearest ?? known.find(isPrefix);
}

/** `payload_bytes_max` and `Payload-Bytes-Max` differ from `payloadBytesMax` in spelling only. */
function normalized(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}

/** The Levenshtein distance: how many letters to insert, delete or replace. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = previous[column - 1] + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[column] + 1, current[column - 1] + 1));
    }
    previous = current;
  }
  return previous[to.length];
}
