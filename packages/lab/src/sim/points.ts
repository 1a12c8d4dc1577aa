/**
 * What instrumented code of the library calls at its loads and stores (`mutations/instrument.ts`). Each call is a
 * *point* at which other participants may run. Called by `interruptions.ts`, which decides where they do.
 *
 * Without a handler a point does nothing, and a bulk copy is the engine's own.
 */

let handler: (() => void) | undefined;
let isInstrumented = false;

/** Every instrumented file calls this when it is loaded. */
export function markInstrumented(): void {
  isInstrumented = true;
}

export function libraryIsInstrumented(): boolean {
  return isInstrumented;
}

/** From now on, every point calls this. */
export function handlePoints(atPoint: (() => void) | undefined): void {
  handler = atPoint;
}

/** A point before an access to `place`. */
export function at<Place>(place: Place): Place {
  if (handler !== undefined) handler();
  return place;
}

/** A point between the loads that gave `value` and the store of it. */
export function stored<Value>(value: Value): Value {
  if (handler !== undefined) handler();
  return value;
}

interface Settable {
  set(...values: unknown[]): unknown;
}

/** `target.set(…)`. If both are words, they are copied one by one, with a point before each. */
export function set(target: Settable | Int32Array, ...values: unknown[]): unknown {
  const [source, offset = 0] = values as [unknown, number?];
  const areWords = target instanceof Int32Array && source instanceof Int32Array;
  if (handler === undefined || !areWords) return (target as Settable).set(...values);
  for (let i = 0; i < source.length; i++) {
    const value = at(source)[i];
    at(target)[offset + i] = value;
  }
  return undefined;
}

/** `words.fill(value, from, to)`, with a point before each word. */
export function fill<Words extends { fill(value: never, from?: number, to?: number): Words }>(
  words: Words,
  value: never,
  from?: number,
  to?: number,
): Words {
  if (handler === undefined || !(words instanceof Int32Array)) return words.fill(value, from, to);
  for (let i = from ?? 0; i < (to ?? words.length); i++) at(words)[i] = value;
  return words;
}

/** `words.copyWithin(to, from, end)`, with points between the words. */
export function copyWithin(words: Int32Array, to: number, from: number, end: number): Int32Array {
  if (handler === undefined) return words.copyWithin(to, from, end);
  const count = end - from;
  for (let done = 0; done < count; done++) {
    const i = to > from ? count - 1 - done : done;
    const value = at(words)[from + i];
    at(words)[to + i] = value;
  }
  return words;
}
