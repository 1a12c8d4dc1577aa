/** The wall clock of a host: microseconds since 1970. */
export function wallClockUs(): number {
  return Date.now() * 1000;
}

/** A monotonic clock: whole microseconds since an arbitrary moment. */
export function nowUs(): number {
  return Math.floor(performance.now() * 1000);
}
