/** Shows how far an import has come: in one line of a terminal, or now and then in a line of its own. */

import { duration, size } from './texts.js';

const TERMINAL_MS = 250;
const LINES_MS = 10_000;
const ERASE_LINE = '\r\x1b[K';

/** Such as standard error. */
export interface Screen {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export class Progress {
  readonly #timer: NodeJS.Timeout;

  /** @param line  returns the line to show now */
  constructor(
    private readonly screen: Screen,
    line: () => string,
  ) {
    const show = () => screen.write(screen.isTTY ? `${ERASE_LINE}${line()}` : `${line()}\n`);
    this.#timer = setInterval(show, screen.isTTY ? TERMINAL_MS : LINES_MS);
  }

  end(): void {
    clearInterval(this.#timer);
    if (this.screen.isTTY) this.screen.write(ERASE_LINE);
  }
}

/** How much there is so far, and how much there will be; infinite or undefined if that is not known. */
export interface Amounts {
  readonly keys: number;
  readonly keysMax?: number;
  readonly bytes?: number;
  readonly bytesMax?: number;
}

/** @param seconds  since the beginning */
export function progressLine(what: string, seconds: number, amounts: Amounts): string {
  const { keys, keysMax, bytes, bytesMax } = amounts;
  const of = (known: string, max: number | undefined, text: (max: number) => string): string =>
    isKnown(max) ? `${known} of ${text(max)}` : known;
  const parts = [
    ...(bytes === undefined ? [] : [of(size(bytes), bytesMax, size)]),
    `${of(keys.toLocaleString('en-US'), keysMax, (max) => max.toLocaleString('en-US'))} keys`,
    `${Math.round(keys / Math.max(seconds, 0.001)).toLocaleString('en-US')} keys/s`,
  ];
  const [part = 0, whole] = isKnown(bytesMax) ? [bytes, bytesMax] : [keys, keysMax];
  if (!isKnown(whole) || part === 0) return `${what}: ${parts.join(', ')}`;
  const done = Math.min(1, part / whole);
  const left = duration((seconds * (1 - done)) / done);
  return `${what}: ${Math.floor(done * 100)}%, ${parts.join(', ')}, ${left} left`;
}

function isKnown(amount: number | undefined): amount is number {
  return amount !== undefined && amount > 0 && amount < Infinity;
}

/** A clock that runs from its creation. */
export class Stopwatch {
  readonly #start = performance.now();

  get seconds(): number {
    return (performance.now() - this.#start) / 1000;
  }
}
