/** A monotonic clock: whole microseconds since an arbitrary moment. */
export function nowUs(): number {
  return Math.floor(performance.now() * 1000);
}
