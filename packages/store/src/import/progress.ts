/** Shows how far an import has come: in one line of a terminal, or now and then in a line of its own. */

import { count, duration, size } from './texts.js';

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

  /** @param line  what there is to tell now */
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

export interface Amounts {
  readonly keys: number;
  readonly keysMax?: number;
  readonly bytes?: number;
  readonly bytesMax?: number;
}

/** @param seconds  since the beginning */
export function progressLine(what: string, seconds: number, amounts: Amounts): string {
  const { keys, keysMax, bytes, bytesMax } = amounts;
  const done = share(bytes, bytesMax) ?? share(keys, keysMax);
  const parts = [
    ...(done === undefined ? [] : [`${Math.floor(done * 100)}%`]),
    ...(bytes === undefined
      ? []
      : [size(bytes) + (bytesMax === undefined ? '' : ` of ${size(bytesMax)}`)]),
    keysMax === undefined
      ? count(keys, 'key')
      : `${keys.toLocaleString('en-US')} of ${count(keysMax, 'key')}`,
    `${count(Math.round(keys / Math.max(seconds, 0.001)), 'key')}/s`,
    ...(done === undefined || done === 0
      ? []
      : [`${duration((seconds * (1 - done)) / done)} left`]),
  ];
  return `${what}: ${parts.join(', ')}`;
}

/** @returns undefined if it is not known */
function share(part: number | undefined, whole: number | undefined): number | undefined {
  if (part === undefined || whole === undefined || whole === 0) return undefined;
  return Math.min(1, part / whole);
}

/** A clock that runs from its creation. */
export class Stopwatch {
  readonly #start = performance.now();

  get seconds(): number {
    return (performance.now() - this.#start) / 1000;
  }
}
