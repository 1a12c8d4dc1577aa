/**
 * A child process that executes one order after the other. The parent has a `ForkedProcess`; the child calls `serveOrders`.
 * Used by raw measurements and by message-passing systems.
 *
 * Every order has a time limit, and the error for a child that ends contains its name. The child exits when its parent does.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { endWithParent } from './end-with-parent.js';

interface Order {
  readonly kind: string;
  readonly argument: unknown;
}

type Answer = { readonly result: unknown } | { readonly failure: string };

export class ForkedProcess {
  /** Rejects when the process ends before `end` is called. Never resolves. */
  readonly death: Promise<never>;
  private readonly child: ChildProcess;
  private readonly exited: Promise<void>;
  private isEnding = false;
  private onAnswer: ((answer: Answer) => void) | undefined;

  /** @param name  for error messages: `group 3 of Skeen` */
  constructor(
    private readonly name: string,
    script: URL,
  ) {
    this.child = fork(fileURLToPath(script), {
      execArgv: [],
      serialization: 'advanced',
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.child.on('message', (answer: Answer) => this.onAnswer?.(answer));
    this.exited = new Promise((resolve) => {
      this.child.once('exit', () => resolve());
      if (this.child.pid === undefined) resolve();
    });
    this.death = new Promise((_, reject) => {
      this.child.on('error', ({ message }) => this.fail(reject, `failed: ${message}`));
      this.child.once('exit', (code, signal) =>
        this.fail(reject, `ended with ${signal ?? `exit code ${code}`}`),
      );
    });
    // The error is reported to the caller of `ask`.
    this.death.catch(() => undefined);
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** One order at a time. */
  ask<Result>(kind: string, argument: unknown, limitMs: number): Promise<Result> {
    const answer = new Promise<Result>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`${this.name} did not ${kind} within ${limitMs} ms`)),
        limitMs,
      );
      this.onAnswer = (answer) => {
        clearTimeout(timer);
        if ('result' in answer) resolve(answer.result as Result);
        else reject(new Error(`${this.name} failed to ${kind}: ${answer.failure}`));
      };
      void this.exited.then(() => clearTimeout(timer));
    });
    const order: Order = { kind, argument };
    // If sending fails, the process has ended, and `death` reports that.
    this.child.send(order, () => undefined);
    return Promise.race([answer, this.death]);
  }

  async end(): Promise<void> {
    this.isEnding = true;
    this.child.kill('SIGKILL');
    await this.exited;
  }

  private fail(reject: (error: Error) => void, what: string): void {
    if (!this.isEnding) reject(new Error(`${this.name} ${what}`));
  }
}

/** Called by the child. @param handlers  by kind of order */
export function serveOrders(
  handlers: Readonly<Record<string, (argument: never) => unknown>>,
): void {
  endWithParent();
  process.on('message', async ({ kind, argument }: Order) => {
    let answer: Answer;
    try {
      answer = { result: await handlers[kind](argument as never) };
    } catch (error) {
      answer = { failure: error instanceof Error ? error.message : String(error) };
    }
    process.send!(answer, undefined, undefined, () => undefined);
  });
}
