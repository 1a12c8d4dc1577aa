/** The service of `threads.ts`: each message keeps the thread busy, as a service does that computes. */

export const BUSY_US = 20;

export function deliver(): void {
  const untilMs = performance.now() + BUSY_US / 1000;
  while (performance.now() < untilMs);
}
