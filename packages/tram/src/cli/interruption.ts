/** Ctrl-C and SIGTERM as an `AbortSignal`. */
import { setMaxListeners } from 'node:events';

export interface Interruption {
  /** Its reason is the name of the signal: `SIGINT` or `SIGTERM`. */
  readonly signal: AbortSignal;
  /** From now on these signals end the process again. */
  release(): void;
}

export function catchInterruption(): Interruption {
  const controller = new AbortController();
  // Each message under way has a listener. That is not a leak.
  setMaxListeners(0, controller.signal);
  const interrupt = (name: NodeJS.Signals): void => controller.abort(name);
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  return {
    signal: controller.signal,
    release: () => {
      process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
    },
  };
}

/** Resolves after the time, or at once when interrupted. */
export function pauseUnless(signal: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const wake = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal.addEventListener('abort', wake);
  });
}
