/**
 * A message-passing network in virtual time, for the systems in `baselines/`. Links are FIFO, delays are arbitrary, and
 * nothing is lost. A message is encoded, split at any byte, and arrives in pieces, as from a socket. Called by
 * `passing.ts`.
 */
import { FrameReader } from '../baselines/passing/frame-reader.js';
import { encode, frameWords } from '../baselines/passing/frames.js';
import type { Message } from '../baselines/passing/message.js';
import type { Network } from '../baselines/passing/network.js';
import type { Random } from './random.js';

/** Called for every message that arrives. */
export type Arrival = (from: number, to: number, message: Message) => void;

interface Piece {
  readonly bytes: Uint8Array;
  readonly atUs: number;
}

interface Link {
  readonly reader: FrameReader;
  readonly delayUsMax: number;
  readonly inFlight: Piece[];
  lastAtUs: number;
}

const SLOW_LINK_PERCENT = 20;
const DELAY_US_MAX = 100;
const SLOW_DELAY_US_MAX = 3000;

export class FifoNetwork {
  private readonly links = new Map<number, Link>();
  private nowUs = 0;

  /** @param addresses  the number of participants; their addresses count from 0 */
  constructor(
    private readonly addresses: number,
    private readonly random: Random,
    private readonly arrival: Arrival,
  ) {}

  /** The network as the participant at this address uses it. */
  from(address: number): Network {
    return { send: (to, message) => this.send(this.link(address, to), message) };
  }

  /** Let the next piece arrive. @returns false if nothing is in flight */
  step(): boolean {
    let next: Link | undefined;
    let nextAtUs = Number.POSITIVE_INFINITY;
    for (const link of this.links.values()) {
      const first = link.inFlight[0];
      if (first === undefined || first.atUs >= nextAtUs) continue;
      next = link;
      nextAtUs = first.atUs;
    }
    if (next === undefined) return false;
    this.nowUs = nextAtUs;
    next.reader.push(next.inFlight.shift()!.bytes);
    return true;
  }

  private send(link: Link, message: Message): void {
    const words = new Int32Array(frameWords(message));
    encode(message, words, 0);
    const bytes = new Uint8Array(words.buffer);
    const cut = this.random.below(bytes.length);
    for (const piece of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
      const atUs = this.nowUs + this.random.between(1, link.delayUsMax);
      link.lastAtUs = Math.max(link.lastAtUs, atUs);
      link.inFlight.push({ bytes: piece, atUs: link.lastAtUs });
    }
  }

  private link(from: number, to: number): Link {
    const key = from * this.addresses + to;
    const known = this.links.get(key);
    if (known !== undefined) return known;
    const isSlow = this.random.percent(SLOW_LINK_PERCENT);
    const link: Link = {
      reader: new FrameReader((message) => this.arrival(from, to, message)),
      delayUsMax: isSlow ? SLOW_DELAY_US_MAX : DELAY_US_MAX,
      inFlight: [],
      lastAtUs: 0,
    };
    this.links.set(key, link);
    return link;
  }
}
