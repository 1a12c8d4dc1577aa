/**
 * The round trip of a word between two cores: two sides pass one word back and forth, spinning. It is the lower bound for every
 * request with an answer; `tram-lab bench order` prints it beside TRAM's latency.
 *
 * The word is a counter. One side makes it odd, the other even. If the first makes it even, both end.
 */
import { awaitChange, LINE_PAIR_WORDS, type RawMemory, runPair } from './pair.js';

export interface PingPongOptions {
  readonly memory: RawMemory;
  readonly seconds: number;
}

export interface PingPong {
  /** The median of blocks of round trips. */
  readonly roundTripNsP50: number;
  /** Over all round trips, including interruptions. */
  readonly roundTripNsMean: number;
}

export type PingPongJob = PingJob | PongJob;

interface PingJob {
  readonly role: 'ping';
  readonly seconds: number;
}

interface PongJob {
  readonly role: 'pong';
}

const WORD = 0;
/** The word has its cache lines to itself. */
const WORDS = LINE_PAIR_WORDS;
/** Round trips between two reads of the clock, which takes a tenth of a round trip. */
const BLOCK = 100;
const WARM_UP_MS = 100;

export async function measurePingPong({ memory, seconds }: PingPongOptions): Promise<PingPong> {
  const result = await runPair(memory, WORDS, [{ role: 'ping', seconds }, { role: 'pong' }]);
  return result as PingPong;
}

export function ping(words: Int32Array, { seconds }: PingJob): PingPong {
  const player = new Player(words);
  player.playFor(WARM_UP_MS);
  const blocksNs = player.playFor(seconds * 1000);
  player.stop();
  const totalNs = blocksNs.reduce((sum, blockNs) => sum + blockNs, 0);
  blocksNs.sort((a, b) => a - b);
  return {
    roundTripNsP50: blocksNs[Math.floor(blocksNs.length / 2)] / BLOCK,
    roundTripNsMean: totalNs / (blocksNs.length * BLOCK),
  };
}

export function pong(words: Int32Array): void {
  let returned = 0;
  for (;;) {
    const served = awaitChange(words, WORD, returned);
    if (served % 2 === 0) return;
    returned = (served + 1) | 0;
    Atomics.store(words, WORD, returned);
  }
}

class Player {
  private returned = 0;

  constructor(private readonly words: Int32Array) {}

  /** @returns the duration of each block */
  playFor(durationMs: number): number[] {
    const blocksNs: number[] = [];
    const startMs = performance.now();
    let beforeMs = startMs;
    do {
      this.playBlock();
      const nowMs = performance.now();
      blocksNs.push((nowMs - beforeMs) * 1e6);
      beforeMs = nowMs;
    } while (beforeMs - startMs < durationMs);
    return blocksNs;
  }

  stop(): void {
    Atomics.store(this.words, WORD, (this.returned + 2) | 0);
  }

  private playBlock(): void {
    const { words } = this;
    let { returned } = this;
    for (let i = 0; i < BLOCK; i++) {
      const served = (returned + 1) | 0;
      Atomics.store(words, WORD, served);
      returned = awaitChange(words, WORD, served);
    }
    this.returned = returned;
  }
}
