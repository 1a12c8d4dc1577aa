/**
 * Errors of the service that nobody catches: a promise that it has started and that rejects, a timer or another callback
 * that throws. They would end the host, and with the same messages the hosts of all other replicas. No function of the
 * service was running, so its state is as they left it: the host reports the error and continues.
 *
 * A bug of TRAM itself still ends the host.
 */
import { describeThrown, isOwnBug } from './origin.js';
import { rateLimited } from './rate-limit.js';

/** @param report  is told the error with its stack. Returns a function that ends it. */
export function catchStrayErrors(report: (error: string) => void): () => void {
  const tell = rateLimited(report);
  const onError = (error: unknown): void => {
    if (isOwnBug(error)) {
      stop();
      // Thrown here, it ends the host as if there were no listener.
      throw error;
    }
    tell(describeThrown(error));
  };
  const stop = (): void => {
    process.off('uncaughtException', onError);
    process.off('unhandledRejection', onError);
  };
  process.on('uncaughtException', onError);
  process.on('unhandledRejection', onError);
  return stop;
}
