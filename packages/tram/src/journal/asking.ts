/** How the parts of a recovery ask hosts: they yield asks, which the driver has done side by side, and get the answers. */
import { TramError } from '../errors.js';
import type { AnswerTo, Ask } from './recovery-asks.js';
import type { ClusterShape } from './shape.js';

/** @internal A part of a recovery. The driver gives it as many answers as it has yielded asks. */
export type Recovering<Result> = Generator<readonly Ask[], Result, readonly unknown[]>;

/** @internal */
export function* askAll<A extends Ask>(
  asks: readonly A[],
): Recovering<readonly (AnswerTo<A> | undefined)[]> {
  return (yield asks) as readonly (AnswerTo<A> | undefined)[];
}

/** @internal Ask a host whose answer can't be done without. @throws TRAM_UNAVAILABLE */
export function* askOne<A extends Ask>(shape: ClusterShape, ask: A): Recovering<AnswerTo<A>> {
  const [answer] = yield* askAll([ask]);
  if (answer !== undefined) return answer;
  throw interrupted(`${shape.nameOf(ask.host)} has ended, or another recovery has begun`);
}

/** @internal */
export function interrupted(why: string): TramError {
  return new TramError('TRAM_UNAVAILABLE', `the recovery was interrupted: ${why}`, {
    hint: 'Nothing is lost by this. Start again.',
  });
}
