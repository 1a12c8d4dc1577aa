/**
 * The way to one host that we dial: saying who we are, answering its challenge, and trying again. Called by `network.ts`.
 *
 *   waiting → hello → answer → open        hello, answer: we have called, and have not heard what becomes of it
 *      ↑────────┴────────┴───────┘
 *
 * As long as nothing comes of it the waits become longer. What is wrong is said when it is another thing than before.
 */
import type { Connection } from '../fabric/connection.js';
import { type Handshake, type Hello, REFUSALS, type Welcome } from './handshake.js';

/** What a dialing needs of its network. */
export interface DialingEdges {
  readonly handshake: Handshake;
  /** May throw: then it is tried again. */
  readonly connect: (data: Uint8Array) => Connection;
  readonly complain: (why: string) => void;
  readonly nowUs: () => number;
}

const RETRY_US = 20_000;
const RETRY_US_MAX = 1_000_000;

export class Dialing {
  /** The call that is under way, or open. */
  connection: Connection | undefined;
  /** Our last answer to a challenge. */
  answer: Uint8Array = new Uint8Array(0);
  /** Why the last attempt failed; empty if it did not, or if there was none. */
  complaint = '';
  /** One of `REFUSAL` if the host has heard us and does not let us in, else 0. */
  refusal = 0;
  private stage: 'waiting' | 'hello' | 'answer' | 'open' = 'waiting';
  private hello: Hello | undefined;
  private startedUs = 0;
  private dialsAtUs = 0;
  private delayUs = RETRY_US;

  constructor(
    readonly host: number,
    private readonly edges: DialingEdges,
  ) {}

  get isWaiting(): boolean {
    return this.stage === 'waiting';
  }

  isDue(nowUs: number): boolean {
    return this.isWaiting && nowUs >= this.dialsAtUs;
  }

  /** Has the host not answered for so long? */
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

  /** We have been sent away: with a challenge, or for good. */
  onRefused(data: Uint8Array, reason: string): void {
    const { handshake } = this.edges;
    const answer = this.stage === 'hello' ? handshake.answer(this.hello!, data) : undefined;
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

  /** We have been let in. @returns nothing if that was not by one who knows the secret: then we do not go in */
  onConnected(data: Uint8Array): Welcome | undefined {
    const { handshake } = this.edges;
    const welcome = this.stage === 'answer' ? handshake.enter(this.answer, data) : undefined;
    if (welcome === undefined) {
      this.giveUp('it could not prove that it knows the secret');
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

  /** End the call, and try again later. */
  giveUp(why: string): void {
    this.connection!.close();
    this.retry(why);
  }

  /** What we were refused for is over: try again at once. */
  hurry(): void {
    this.refusal = 0;
    this.dialsAtUs = 0;
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
    this.delayUs = Math.min(this.delayUs * 2, RETRY_US_MAX);
    this.refusal = refusal;
    if (why === this.complaint) return;
    this.complaint = why;
    this.edges.complain(why);
  }

  private wait(delayUs: number): void {
    this.stage = 'waiting';
    this.connection = undefined;
    this.dialsAtUs = this.edges.nowUs() + delayUs;
  }
}

/** Our address is gone, or there are no descriptors left: that can pass. A bug has no code. */
export function isSystemError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error;
}
