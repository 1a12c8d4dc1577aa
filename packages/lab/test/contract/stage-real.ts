/** The base of stages with real threads and processes: actors that execute jobs, sent over a line. */
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  ARENA,
  ARENA_MAGIC,
  ARENA_VERSION,
  ArenaMap,
} from 'tram-multicast/internal/memory/arena.js';
import type { ParticipantId } from 'tram-multicast/internal/memory/contract.js';
import { Layout, NO_SALT, type Sizes } from 'tram-multicast/internal/protocol/layout.js';
import { Random } from '../../src/sim/random.js';
import type { Puppet } from './play.mjs';
import type { Actor, Playing, Remote, Stage } from './stage.js';

export const COUNTERPART = fileURLToPath(new URL('./counterpart.mjs', import.meta.url));
const DEADLINE_MS = 40_000;

/** Six replicas on three hosts. Only those of group 0 act, one on each host. */
export const SIZES: Sizes = {
  groups: 2,
  replicas: 3,
  clients: 1,
  payloadBytesMax: 1024,
  replyBytesMax: 64,
  logBytes: 256 * 1024,
  inboxBytes: 4096,
  feedBytes: 256 * 1024,
  callsMax: 4,
  snapshotChunkBytes: 1024,
  firstIndex: 0,
  salt: NO_SALT,
};
/** Every participant has scratch here; in TRAM only clients have. */
export const SHAPE = {
  sizes: SIZES,
  hosts: 3,
  placement: [0, 1, 2, 0, 1, 2],
  scratchWords: 64 * 1024,
  /** So small that many batches do not fit: those go without a parcel. */
  parcelWords: 256,
};

export function newMap(): ArenaMap {
  const scratchWords = () => SHAPE.scratchWords;
  const layout = Object.assign(new Layout(SIZES), { scratchWords });
  return new ArenaMap(layout, SHAPE.hosts, 0, 0, SHAPE.placement, 0, SHAPE.parcelWords);
}

interface Message {
  readonly call: number;
  readonly value?: unknown;
  readonly error?: unknown;
}

/** The connection to a thread or a process that runs counterpart.mjs. */
export interface Line {
  send(message: object): void;
  onMessage(listener: (message: unknown) => void): void;
  onEnd(listener: (why: string) => void): void;
  kill(): void;
  signal(name: NodeJS.Signals): void;
  readonly pid: number;
}

export class RealActor implements Actor {
  readonly puppet: Remote<Puppet>;
  incarnation = 0;
  private calls = 0;
  private readonly waiting = new Map<number, (message: Message) => void>();
  /** Why it has ended, if it has. */
  ended: string | undefined;
  isPaused = false;
  private onChange: () => void = () => undefined;

  constructor(private readonly line: Line) {
    line.onMessage((message) => this.take(message as Message & { incarnation?: number }));
    line.onEnd((why) => {
      this.ended = why;
      for (const call of [...this.waiting.keys()]) this.take({ call, error: new Error(why) });
      this.onChange();
    });
    this.puppet = new Proxy({} as Remote<Puppet>, {
      get: (_, name: string) =>
        name === 'then' ? undefined : (...args: unknown[]) => this.ask(name, args),
    });
  }

  private take(message: Message & { incarnation?: number }): void {
    if (message.incarnation !== undefined) {
      this.incarnation = message.incarnation;
      this.onChange();
      return;
    }
    const resolve = this.waiting.get(message.call);
    this.waiting.delete(message.call);
    resolve?.(message);
  }

  private until(isSo: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.onChange = () => {
        if (isSo()) resolve();
      };
      this.onChange();
    });
  }

  async begun(): Promise<this> {
    await this.until(() => this.incarnation > 0 || this.ended !== undefined);
    if (this.incarnation === 0) throw new Error(`the actor ended before it began: ${this.ended}`);
    return this;
  }

  private ask<T>(job: string, args: unknown[]): Promise<T> {
    const call = ++this.calls;
    return new Promise<T>((resolve, reject) => {
      if (this.ended !== undefined) {
        reject(new Error(this.ended));
        return;
      }
      this.waiting.set(call, ({ value, error }) => {
        if (error === undefined) resolve(value as T);
        else reject(error);
      });
      this.line.send({ call, job, args });
    });
  }

  play(name: string, options: object): Playing {
    const asked = this.ask('play', [name, options]);
    // If the actor is killed, nobody may be waiting for the result.
    asked.catch(() => undefined);
    return {
      result: async <T>() => {
        const late = wait(DEADLINE_MS, undefined, { ref: false }).then(() => {
          throw new Error(`${name} did not finish within ${DEADLINE_MS} ms`);
        });
        late.catch(() => undefined);
        return (await Promise.race([asked, late])) as T;
      },
    };
  }

  async kill(): Promise<void> {
    this.line.kill();
    await this.until(() => this.ended !== undefined);
  }

  async pause(): Promise<void> {
    this.isPaused = true;
    this.line.signal('SIGSTOP');
    while (!readFileSync(`/proc/${this.line.pid}/stat`, 'utf8').includes(') T ')) await turn();
  }

  goOn(): void {
    this.isPaused = false;
    this.line.signal('SIGCONT');
  }
}

export abstract class RealStage implements Stage {
  readonly map = newMap();
  readonly random: Random;
  protected readonly actors: RealActor[] = [];

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  protected abstract call(participant: ParticipantId, resumes: boolean): Line;
  abstract word(participant: ParticipantId, at: number): number;

  async begin(participant: ParticipantId, resumes = false): Promise<Actor> {
    return this.start(participant, resumes).begun();
  }

  protected start(participant: ParticipantId, resumes: boolean): RealActor {
    const actor = new RealActor(this.call(participant, resumes));
    this.actors.push(actor);
    return actor;
  }

  async aWhile(): Promise<void> {
    await wait(this.random.below(4));
    // And a fraction of a millisecond.
    const until = performance.now() + this.random.below(1000) / 1000;
    while (performance.now() < until);
  }

  async until(participant: ParticipantId, at: number, value: number): Promise<void> {
    while (this.word(participant, at) < value) await turn();
  }

  async close(): Promise<void> {
    await Promise.all(this.actors.map((actor) => actor.kill()));
  }
}

/** Which Node runs the processes: for example one of another architecture, in an emulator (docs/memory-model.md). */
const COUNTERPART_NODE = process.env.COUNTERPART_NODE ?? process.execPath;

/** Starts a counterpart in a process. @param data  for counterpart.mjs */
export function forkCounterpart(data: object): Line {
  const child = fork(COUNTERPART, [JSON.stringify(data)], {
    execPath: COUNTERPART_NODE,
    serialization: 'advanced',
  });
  return {
    send: (message) => child.send(message),
    onMessage: (listener) => child.on('message', listener),
    onEnd: (listener) =>
      child.on('exit', (code, signal) => listener(`the process ended: ${signal ?? code}`)),
    kill: () => child.kill('SIGKILL'),
    signal: (name) => child.kill(name),
    pid: child.pid!,
  };
}

/** Writes the header that `openArenaFile` checks. */
export function writeArenaHeader(words: Int32Array): void {
  words[ARENA.version] = ARENA_VERSION;
  words[ARENA.words] = words.length;
  Atomics.store(words, ARENA.magic, ARENA_MAGIC);
}
