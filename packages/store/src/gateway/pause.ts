/** CLIENT PAUSE: holds back commands of all clients of this gateway for some time. */

import type { CommandSpec } from '../commands/spec.js';
import type { Transaction } from './session.js';

export class Pause {
  #holds: 'nothing' | 'writes' | 'all' = 'nothing';
  #timer: NodeJS.Timeout | undefined;
  #untilMs = 0;
  #waiting: (() => void)[] = [];

  /** As in Redis, a second pause only makes the first one longer and stricter. */
  start(holds: 'writes' | 'all', ms: number, nowMs: number): void {
    if (this.#holds !== 'all') this.#holds = holds;
    this.#untilMs = Math.max(this.#untilMs, nowMs + ms);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.end(), Math.min(this.#untilMs - nowMs, 2 ** 31 - 1));
    this.#timer.unref();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#holds = 'nothing';
    this.#untilMs = 0;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const goOn of waiting) goOn();
  }

  holdsBack(command: CommandSpec, transaction: Transaction | undefined): boolean {
    if (this.#holds === 'nothing') return false;
    if (this.#holds === 'all' || isWrite(command)) return true;
    return command.name === 'exec' && transaction !== undefined
      ? transaction.commands.some((queued) => isWrite(queued.command))
      : false;
  }

  over(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }
}

function isWrite({ flags, name, reaches }: CommandSpec): boolean {
  if (reaches) return !flags.includes('readonly');
  return flags.includes('write') || name === 'publish' || name === 'spublish';
}
