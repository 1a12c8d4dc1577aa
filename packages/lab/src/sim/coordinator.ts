/**
 * Drives one recovery of a simulated cluster: passes what the production code asks to the hosts, and the answers back, each
 * after a drawn time. Hosts may end in between, other recoveries may run at the same time, and the coordinator itself may
 * end. Then what it has asked still reaches the hosts. Called by `power.ts`.
 */
import { TramError } from 'tram-multicast/internal/errors.js';
import { type Recovered, recoverCluster } from 'tram-multicast/internal/journal/recovery.js';
import type { Ask } from 'tram-multicast/internal/journal/recovery-asks.js';
import type { ClusterShape } from 'tram-multicast/internal/journal/shape.js';

export const CLUSTER_ID = '0123456789abcdef0123456789abcdef';

/** How a recovery may fail: too few hosts are there, or some have ended meanwhile. */
const EXPECTED: readonly string[] = ['TRAM_RECOVERY_REFUSED', 'TRAM_UNAVAILABLE'];

/** What a coordinator needs of its cluster. */
export interface Hosts {
  readonly shape: ClusterShape;
  /** Do this after a drawn time. */
  later(act: () => void): void;
  /** The answer of a host; undefined if it is down or refuses; `busy` if it must be asked again later. */
  answer(ask: Ask): unknown;
  /** It has opened an era, or it has failed and may be tried again. */
  ended(coordinator: Coordinator, outcome: Recovered | Error): void;
}

/** The host is in the middle of a step. */
export const BUSY = Symbol('busy');

export class Coordinator {
  private hasEnded = false;
  private readonly recovery: ReturnType<typeof recoverCluster>;

  constructor(private readonly hosts: Hosts) {
    this.recovery = recoverCluster(hosts.shape, {
      newClusterId: CLUSTER_ID,
      acceptLoss: false,
      onLoss: () => undefined,
    });
  }

  begin(): void {
    this.goOn([]);
  }

  /** The process that coordinates has ended. */
  end(): void {
    this.hasEnded = true;
  }

  private goOn(answers: readonly unknown[]): void {
    if (this.hasEnded) return;
    let step: ReturnType<typeof this.recovery.next>;
    try {
      step = this.recovery.next(answers);
    } catch (error) {
      if (!(error instanceof TramError) || !EXPECTED.includes(error.code)) throw error;
      this.hasEnded = true;
      this.hosts.ended(this, error);
      return;
    }
    if (step.done) {
      this.hasEnded = true;
      this.hosts.ended(this, step.value);
    } else {
      this.ask(step.value);
    }
  }

  private ask(asks: readonly Ask[]): void {
    const answers: unknown[] = new Array(asks.length).fill(undefined);
    let left = asks.length;
    const got = (place: number, answer: unknown): void => {
      answers[place] = answer;
      if (--left === 0) this.goOn(answers);
    };
    const reach = (place: number): void => {
      const answer = this.hosts.answer(asks[place]);
      if (answer === BUSY) this.hosts.later(() => reach(place));
      else this.hosts.later(() => got(place, answer));
    };
    for (const place of asks.keys()) this.hosts.later(() => reach(place));
    if (asks.length === 0) this.hosts.later(() => this.goOn(answers));
  }
}
