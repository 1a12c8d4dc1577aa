/**
 * Who has ever run its replicas. Hosts remember it of each other and tell it when they meet, so one that has lost its
 * memory learns that it had one (`hosting/machine.ts`). Called by `network.ts`.
 */
import { ARENA, ARENA_STATE, type ArenaMap, HOST } from '../arena.js';

/** What one host tells another when they meet. */
export const ACQUAINTANCE = {
  /** You have run your replicas before, as far as I know. */
  hasBegun: 1,
  /** I have. */
  haveBegun: 2,
} as const;

export class Acquaintances {
  /** By host, of those that we have met: do they know that we have run our replicas? */
  private readonly knownBy: (boolean | undefined)[] = [];

  constructor(
    private readonly words: Int32Array,
    private readonly map: ArenaMap,
  ) {}

  get haveBegun(): boolean {
    return this.words[ARENA.state] === ARENA_STATE.running;
  }

  /** Does one that we have met know that we have? */
  get isKnown(): boolean {
    return this.knownBy.includes(true);
  }

  /** Some of `ACQUAINTANCE`, for another host. */
  with(host: number): number {
    const { words, map } = this;
    const isKnown = host < map.hosts && words[map.host(host) + HOST.begun] === 1;
    return (isKnown ? ACQUAINTANCE.hasBegun : 0) | (this.haveBegun ? ACQUAINTANCE.haveBegun : 0);
  }

  /** Another host has told what it knows of us, and of itself. */
  meet(host: number, acquaintance: number, hasBegun: boolean): void {
    this.knownBy[host] = (acquaintance & ACQUAINTANCE.hasBegun) !== 0;
    if (hasBegun) this.words[this.map.host(host) + HOST.begun] = 1;
  }
}
