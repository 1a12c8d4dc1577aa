/**
 * One call of `client.multicast`, until its promise settles: the limits of its time, its replies, and its errors.
 *
 * A request *waits* for room until its message is sent. From then on it has a `call`, and the message can't be taken back:
 * an error then says that the message may still be delivered.
 */
import { ReplyError, TramError, type TramErrorOptions } from './errors.js';
import { groupsOf } from './hosting/service.js';
import type { Missing, Stall } from './hosting/stall.js';
import type { Call, ReplyOutcome } from './protocol/data-path/client.js';

export interface MulticastOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long to wait for room and for all replies. Default 30 seconds; `Infinity` is allowed. */
  readonly timeoutMs?: number | undefined;
}

/** @internal Why a request is given up. */
export type GivenUp = 'timeout' | 'abort';

type Replies = Map<number, Uint8Array>;

const DEFAULT_TIMEOUT_MS = 30_000;
/** The longest delay of a timer in Node. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

const ASK_FIRST = 'Before you send the message again, ask the service whether it took effect.';

/** @internal */
export class Request {
  /** Once the message is sent. */
  call: Call | undefined;
  /** Since when it waits for room, or for its replies. */
  sinceUs = 0;
  isSettled = false;
  /** Of a mark, once it is sent. */
  markId = '';
  private readonly replies: Replies = new Map();
  /** The groups that have failed, and why. */
  private failedGroups: Map<number, string> | undefined;
  private hasServiceFailed = false;

  constructor(
    readonly low: number,
    readonly high: number,
    /** The caller may change it after the call of `multicast`. */
    public payload: Uint8Array,
    private readonly resolve: (replies: Replies) => void,
    private readonly reject: (error: TramError) => void,
    readonly isMark: boolean = false,
  ) {}

  /** Stops its timer, and listens to its signal no longer. */
  private release: () => void = () => undefined;

  private finish(): void {
    this.isSettled = true;
    this.release();
  }

  /** The groups that it waits for. */
  get missing(): Missing {
    return this.call ?? { pendingLow: this.low, pendingHigh: this.high };
  }

  /** Have all groups that it waits for deferred their replies? */
  get isDeferred(): boolean {
    return this.call !== undefined && (this.call.unheardLow | this.call.unheardHigh) === 0;
  }

  /** Is given up after its time, or when its signal aborts. @throws TRAM_INVALID_ARGUMENT, TRAM_ABORTED */
  limit(
    { signal, timeoutMs = DEFAULT_TIMEOUT_MS }: MulticastOptions,
    giveUp: (why: GivenUp, cause: unknown) => void,
  ): void {
    checkTimeout(timeoutMs);
    if (signal?.aborted) throw abortedEarly(signal);
    const timer =
      timeoutMs === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(() => giveUp('timeout', undefined), Math.min(timeoutMs, TIMEOUT_MS_MAX));
    const onAbort = (): void => giveUp('abort', signal!.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    this.release = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
  }

  /** @param bytes  the size of a reply that is too large */
  replied(
    group: number,
    reply: Uint8Array,
    outcome: ReplyOutcome,
    bytes: number,
    replyBytesMax: number,
  ): void {
    if (outcome === 'ok') {
      this.replies.set(group, reply.slice());
      return;
    }
    this.failedGroups ??= new Map();
    if (outcome === 'failed') {
      this.hasServiceFailed = true;
      this.failedGroups.set(group, new TextDecoder().decode(reply));
    } else {
      const why = `a reply of ${bytes} bytes exceeds replyBytesMax (${replyBytesMax})`;
      this.failedGroups.set(group, why);
    }
  }

  /** All groups have replied. @returns the error, if there is one */
  settle(): ReplyError | undefined {
    this.finish();
    const { replies, failedGroups } = this;
    if (failedGroups === undefined) {
      this.resolve(replies);
      return undefined;
    }
    const code = this.hasServiceFailed ? 'TRAM_SERVICE_FAILED' : 'TRAM_REPLY_TOO_LARGE';
    const error = ReplyError.delivered(code, replies, failedGroups);
    this.reject(error);
    return error;
  }

  /**
   * While it waits for room, that is, for the answers to other messages.
   * @param stall  why there is no room
   */
  giveUpWaiting(why: GivenUp, cause: unknown, { reason, hint }: Stall): void {
    this.finish();
    const code = why === 'timeout' ? 'TRAM_TIMEOUT' : 'TRAM_ABORTED';
    const message = `${why} while waiting for room: nothing was sent`;
    this.reject(new TramError(code, withReason(message, reason), { cause, hint }));
  }

  /** After its message was sent. Later replies change nothing. */
  giveUpSent(why: GivenUp, cause: unknown, { reason, hint }: Stall): void {
    const { pendingLow, pendingHigh, unheardLow, unheardHigh } = this.call!;
    const unheard = namesOf(unheardLow, unheardHigh);
    const deferred = namesOf(pendingLow & ~unheardLow, pendingHigh & ~unheardHigh);
    const sentences = [`${why} after the message was sent: it may still be delivered`];
    if (unheard !== '') sentences.push(`No reply from ${unheard}`);
    if (deferred !== '') sentences.push(`The reply was deferred by ${deferred}`);
    const message = sentences.join('. ');
    const advice = hint === undefined ? undefined : `${hint} ${ASK_FIRST}`;
    this.rejectSent('TRAM_OUTCOME_UNKNOWN', withReason(message, reason), { cause, hint: advice });
  }

  /** Groups have lost their state, so it can never be answered. */
  giveUpLost(loss: string, hint?: string): void {
    if (this.call !== undefined) {
      const message = `the message was sent, and other groups may deliver it, but ${loss}`;
      this.rejectSent('TRAM_STATE_LOST', message, { retry: 'unsafe' });
      return;
    }
    this.finish();
    this.reject(new TramError('TRAM_STATE_LOST', `nothing was sent: ${loss}`, { hint }));
  }

  /** The client ends. */
  abandon(why: string): void {
    if (this.call !== undefined) {
      this.rejectSent('TRAM_OUTCOME_UNKNOWN', `${why}: the message may still be delivered`);
      return;
    }
    this.finish();
    this.reject(new TramError('TRAM_CLOSED', `${why}: nothing was sent`));
  }

  private rejectSent(
    code: 'TRAM_OUTCOME_UNKNOWN' | 'TRAM_STATE_LOST',
    message: string,
    options: TramErrorOptions = {},
  ): void {
    this.finish();
    const { replies, failedGroups = new Map() } = this;
    const missingGroups = groupsOf(this.call!.pendingLow, this.call!.pendingHigh);
    const known = { replies, failedGroups, missingGroups };
    this.reject(new ReplyError(code, message, known, options));
  }
}

function namesOf(low: number, high: number): string {
  return groupsOf(low, high)
    .map((group) => `g${group}`)
    .join(', ');
}

function checkTimeout(timeoutMs: number): void {
  if (typeof timeoutMs === 'number' && timeoutMs > 0) return;
  throw new TramError(
    'TRAM_INVALID_ARGUMENT',
    `timeoutMs must be a positive number, not ${timeoutMs}`,
  );
}

function abortedEarly(signal: AbortSignal): TramError {
  return new TramError('TRAM_ABORTED', 'aborted before the message was sent', {
    cause: signal.reason,
  });
}

function withReason(message: string, reason: string): string {
  return reason === '' ? message : `${message}. ${reason}`;
}
