/**
 * Which hosts have ever run their replicas. Hosts remember it of each other and exchange it when they connect, so a host
 * that has lost its memory learns that it had one (`hosting/machines/machine.ts`). Called by `dialer.ts` and
 * `admission.ts`.
 */
import { ARENA, ARENA_STATE, type ArenaMap, HOST } from '../arena.js';

/** Bits of what one host tells another when they connect. */
export const HAS_RUN = {
  /** The sender remembers that the receiver has run its replicas. */
  receiver: 1,
  /** The sender has run its replicas. */
  sender: 2,
} as const;

export class KnownHosts {
  /** By host, undefined until it has connected: does it remember that we have run our replicas? */
  private readonly remembersUs: (boolean | undefined)[] = [];

  constructor(
    private readonly words: Int32Array,
    private readonly map: ArenaMap,
  ) {}

  /** Have we run our replicas, as far as our own memory tells? */
  get haveRun(): boolean {
    return this.words[ARENA.state] === ARENA_STATE.running;
  }

  /** Does a host that has connected remember that we have run our replicas? */
  get areRemembered(): boolean {
    return this.remembersUs.includes(true);
  }

  /** What to tell another host or a client: bits of `HAS_RUN`. */
  bitsFor(host: number): number {
    const { words, map } = this;
    const hasReceiver = host < map.hosts && words[map.host(host) + HOST.begun] === 1;
    return (hasReceiver ? HAS_RUN.receiver : 0) | (this.haveRun ? HAS_RUN.sender : 0);
  }

  /** Another host has told what it remembers of us (bits of `HAS_RUN`), and whether it has run its own replicas. */
  learn(host: number, bits: number, hasRun: boolean): void {
    this.remembersUs[host] = (bits & HAS_RUN.receiver) !== 0;
    if (hasRun) this.words[this.map.host(host) + HOST.begun] = 1;
  }
}
