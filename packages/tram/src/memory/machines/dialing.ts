/**
 * Dials one host: sends a hello, answers the host's challenge (`handshake.ts`), and tries again after a failure or when
 * the connection has ended. Called by `dialer.ts`.
 *
 *   waiting → hello → answer → open        hello, answer: a call is under way, with that message
 *      ↑────────┴────────┴───────┘
 *
 * Delays between attempts double until one succeeds. A host that does not know us is called again rarely: all sessions of
 * clients end with a recovery, and clients that outlive it are never let in again. A complaint is logged only if it differs
 * from the last one.
 */
import type { Connection } from '../fabric/connection.js';
import { type Handshake, type Hello, REFUSAL, REFUSALS, type Welcome } from './handshake.js';

/** What a dialing needs of its caller. */
export interface DialingEdges {
  readonly handshake: Handshake;
  /** May throw a system error: the call is then tried again later. */
  readonly connect: (data: Uint8Array) => Connection;
  /** @param isRefused  the host has answered, and does not let us in */
  readonly complain: (why: string, isRefused: boolean) => void;
  readonly nowUs: () => number;
}

const RETRY_US = 20_000;
const RETRY_US_MAX = 1_000_000;
/** As long as the host does not know us. */
const UNKNOWN_RETRY_US_MAX = 60_000_000;

export class Dialing {
  /** Of the call that is under way, or open; undefined while waiting. */
  connection: Connection | undefined;
  /** Our answer to the last challenge. */
  answer: Uint8Array = new Uint8Array(0);
  /** Why the last attempt failed; empty if it did not fail or there was none. */
  complaint = '';
  /** One of `REFUSAL` if the host has refused us by the last attempt, else 0. */
  refusal = 0;
  private stage: 'waiting' | 'hello' | 'answer' | 'open' = 'waiting';
  private hello: Hello | undefined;
  private startedUs = 0;
  /** The next attempt is not before this, and after the next failure it waits for so long. */
  private nextAttemptUs = 0;
  private delayUs = RETRY_US;

  constructor(
    readonly host: number,
    private readonly edges: DialingEdges,
  ) {}

  get isWaiting(): boolean {
    return this.stage === 'waiting';
  }

  isDue(nowUs: number): boolean {
    return this.isWaiting && nowUs >= this.nextAttemptUs;
  }

  /** Is a call under way that the host has not answered for longer than `patienceUs`? */
  isUnanswered(nowUs: number, patienceUs: number): boolean {
    const isAsking = this.stage === 'hello' || this.stage === 'answer';
    return isAsking && nowUs - this.startedUs > patienceUs;
  }

  dial(hello: Hello, nowUs: number): void {
    this.hello = hello;
    this.startedUs = nowUs;
    this.stage = 'hello';
    this.call(this.edges.handshake.hello(hello));
  }

  /** The host has refused the call: with a challenge, or for good. */
  onRefused(data: Uint8Array, reason: string): void {
    const { handshake } = this.edges;
    const answer =
      this.stage === 'hello' ? handshake.answer(this.hello!, data, this.host) : undefined;
    if (answer === undefined) {
      const [refusal = 0] = data;
      const why = REFUSALS[refusal];
      this.retry(why ?? reason, why === undefined ? 0 : refusal);
      return;
    }
    this.answer = answer;
    this.stage = 'answer';
    this.call(answer);
  }

  /** The call was accepted. @returns undefined if it has not proved that it is the host: the call is ended */
  onConnected(data: Uint8Array): Welcome | undefined {
    const { handshake } = this.edges;
    const welcome =
      this.stage === 'answer' ? handshake.enter(this.answer, data, this.host) : undefined;
    if (welcome === undefined) {
      this.giveUp('it could not prove that it knows the secret and is this host');
      return undefined;
    }
    this.stage = 'open';
    this.delayUs = RETRY_US;
    this.complaint = '';
    this.refusal = 0;
    return welcome;
  }

  /** The connection has ended. */
  onEnd(): void {
    this.wait(RETRY_US);
  }

  /** End the call that is under way and try again later. */
  giveUp(why: string): void {
    this.connection!.close();
    this.retry(why);
  }

  /** The reason of the last refusal is gone: try again at once. */
  retryNow(): void {
    this.refusal = 0;
    this.nextAttemptUs = 0;
  }

  private call(data: Uint8Array): void {
    try {
      this.connection = this.edges.connect(data);
    } catch (error) {
      if (!isSystemError(error)) throw error;
      this.retry(error.message);
    }
  }

  private retry(why: string, refusal = 0): void {
    this.wait(this.delayUs);
    const mostUs = refusal === REFUSAL.unknownCaller ? UNKNOWN_RETRY_US_MAX : RETRY_US_MAX;
    this.delayUs = Math.min(this.delayUs * 2, mostUs);
    this.refusal = refusal;
    if (why === this.complaint) return;
    this.complaint = why;
    this.edges.complain(why, refusal > 0);
  }

  private wait(delayUs: number): void {
    this.stage = 'waiting';
    this.connection = undefined;
    this.nextAttemptUs = this.edges.nowUs() + delayUs;
  }
}

/** Only system errors have a code: our address is gone, or no descriptors are left. These can pass; a bug does not. */
export function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error;
}
