/** Microseconds since some moment, whole, never going back. */
export function nowUs(): number {
  return Math.floor(performance.now() * 1000);
}
