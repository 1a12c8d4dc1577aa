/**
 * Gateways and shards under random schedules: messages that are late, gateways that die between any two of them, transactions that are
 * aborted although their gateway lives, replicas that go on from snapshots, clocks that jump, gateways that shards take for dead. What
 * the clients see is checked, and that the replicas of each shard stay alike.
 */

import type { ShardBackend } from '../../src/backend/backend.js';
import type { Sent, Wire } from '../../src/backend/wire.js';
import {
  check,
  type Operation,
  type Transaction,
  type Violation,
} from '../../src/check/history.js';
import type { Queued, Watched } from '../../src/commands/internal.js';
import type { CommandSpec } from '../../src/commands/spec.js';
import type { JoinedCalls } from '../../src/gateway/joined-calls.js';
import type { Router } from '../../src/gateway/router.js';
import type { ScriptRunner } from '../../src/gateway/scripts.js';
import type { ShardCall } from '../../src/gateway/shards.js';
import type { ErrorReply, NullArray, Reply } from '../../src/resp/reply.js';
import type { Shard } from '../../src/shard/shard.js';
import { SimulatedWire } from '../simulated-wire.js';
import { Queues } from './queues.js';

const SHARDS = 3;
const GATEWAYS = 3;
const CLIENTS = 6;
const TRANSACTIONS = 10;
const LISTS = ['a', 'b', 'c', 'd', 'e'];
const REGISTERS = ['r', 's', 't'];
const EXPIRING = ['x', 'y', 'z'];
const STEPS_MAX = 100_000;

/**
 * Reads a list, swaps a register, and appends to one of two lists: to which one depends on what it has read. It writes last, so that it
 * can run as a transaction if its keys turn out to be in several shards.
 */
const SCRIPT = `
  local read = redis.call('LRANGE', ARGV[1], 0, -1)
  local target = ARGV[3 + #read % 2]
  redis.call('LLEN', target)
  local before = redis.call('GETSET', ARGV[2], ARGV[5])
  redis.call('RPUSH', target, ARGV[6])
  return {target, read, before}`;

/** The classes of a build, with or without a planted error. */
export interface Build {
  readonly Shard: new () => Shard;
  readonly ShardBackend: typeof ShardBackend;
  readonly JoinedCalls: typeof JoinedCalls;
  readonly Router: typeof Router;
  readonly ScriptRunner: typeof ScriptRunner;
  readonly COMMANDS_BY_NAME: ReadonlyMap<string, CommandSpec>;
  readonly readReply: (bytes: Uint8Array) => Reply;
  readonly slotOf: (key: string) => number;
  readonly shardOfSlot: (slot: number, shards: number) => number;
  readonly NullArray: typeof NullArray;
  readonly ErrorReply: typeof ErrorReply;
}

/** @param folder  of the compiled modules, with a slash at its end */
export async function loadBuild(folder: URL): Promise<Build> {
  const names = [
    'shard/shard',
    'backend/backend',
    'gateway/joined-calls',
    'gateway/router',
    'gateway/scripts',
    'commands/table',
    'resp/reader',
    'engine/slots',
    'resp/reply',
  ];
  const modules = await Promise.all(
    names.map((name) => import(new URL(`${name}.js`, folder).href)),
  );
  return Object.assign({}, ...modules) as Build;
}

/** A wire that can be cut: its gateway has died. */
class GatewayWire implements Wire {
  isCut = false;

  constructor(private readonly wire: SimulatedWire) {}

  multicast(groups: readonly number[], payload: Uint8Array, sent: Sent): void {
    if (this.isCut) return;
    this.wire.multicast(groups, payload, {
      replied: (group, reply) => {
        if (!this.isCut) sent.replied(group, reply);
      },
      answered: () => {
        if (!this.isCut) sent.answered();
      },
      failed: (error) => sent.failed(error),
    });
  }
}

export class Gateway {
  readonly wire: GatewayWire;
  readonly backend: ShardBackend;
  readonly #scripts: ScriptRunner;

  constructor(
    private readonly build: Build,
    world: SimulatedWire,
    readonly shardOf: (key: string) => number,
  ) {
    this.wire = new GatewayWire(world);
    const ignore = (): void => undefined;
    const listener = { published: ignore, forgotten: ignore };
    this.backend = new build.ShardBackend(
      SHARDS,
      this.wire,
      this.wire,
      listener,
      () => world.nowMs,
    );
    this.#scripts = new build.ScriptRunner(this.backend, new build.Router(SHARDS));
  }

  /** At one place of the order. @returns the replies, in the order of the commands */
  async runIndependently(commands: readonly Queued[]): Promise<Reply[]> {
    const joined = new this.build.JoinedCalls(this.callsOf(commands));
    return new Promise<Reply[]>((resolve, reject) => {
      this.backend.shards.run(
        joined.calls,
        (raw) => {
          const replies = joined.split(raw) as readonly Uint8Array[];
          resolve(replies.map((bytes) => this.build.readReply(bytes)));
        },
        reject,
      );
    });
  }

  async transact(commands: readonly Queued[]): Promise<readonly Reply[]> {
    const replies = await this.backend.transactions.transact(commands, [], 3);
    return (replies as readonly Uint8Array[]).map((bytes) => this.build.readReply(bytes));
  }

  /** At one shard if it can, else as a transaction. @param args  of EVAL */
  runScript(args: readonly string[]): Promise<Reply> {
    const queued = { name: 'eval', args };
    return new Promise((resolve, reject) => {
      this.#scripts.run(
        { command: this.build.COMMANDS_BY_NAME.get('eval')!, args },
        3,
        (reply) => resolve(this.build.readReply(reply)),
        () => this.transact([queued]).then(([reply]) => resolve(reply), reject),
        reject,
      );
    });
  }

  /** Takes from one of these lists, once one has something. */
  async take(queues: readonly string[]): Promise<Reply> {
    const queued = { name: 'blpop', args: [...queues, '0'] };
    return new Promise((resolve, reject) => {
      this.backend.waits.block(
        queued,
        3,
        (reply) => resolve(this.build.readReply(reply)),
        (error) => reject(error),
      );
    });
  }

  callsOf(commands: readonly Queued[]): ShardCall[] {
    return commands.map(({ name, args }) => {
      const shard = this.shardOf(args[0]);
      return { shard, command: { name }, args, resp: 3 };
    });
  }
}

export class Simulation {
  readonly #history: Transaction[] = [];
  readonly #world: SimulatedWire;
  readonly #gateways: Gateway[] = [];
  readonly #random: () => number;
  readonly #queues: Queues;
  #step = 0;
  #values = 0;
  /** Of a script. */
  #failure: Violation | undefined;

  constructor(
    private readonly build: Build,
    seed: number,
  ) {
    this.#random = mulberry32(seed);
    this.#world = new SimulatedWire(SHARDS, this.#random, () => new build.Shard());
    this.#queues = new Queues(this.#random, build.ErrorReply);
  }

  async run(): Promise<Violation | undefined> {
    const shardOf = (key: string): number => this.build.shardOfSlot(this.build.slotOf(key), SHARDS);
    for (let i = 0; i < GATEWAYS; i++) {
      this.#gateways.push(new Gateway(this.build, this.#world, shardOf));
    }
    const finished = new Set<number>();
    const gatewayOf = (client: number): Gateway => this.#gateways[client % GATEWAYS];
    for (let i = 0; i < CLIENTS; i++) {
      this.#client(gatewayOf(i), i).then(() => finished.add(i));
    }
    for (const gateway of this.#gateways) this.#queues.takeFrom(gateway);
    // Those of a gateway that has died wait for ever.
    const isWaiting = (client: number): boolean =>
      !finished.has(client) && !gatewayOf(client).wire.isCut;
    let victim = this.#chance(0.7) ? 1 + this.#pick(400) : Infinity;
    const areClientsWaiting = (): boolean => [...Array(CLIENTS).keys()].some(isWaiting);
    while (areClientsWaiting() || this.#queues.areWaiting) {
      if (!areClientsWaiting() && this.#step % 50 === 0) this.#queues.stop(this.#gateways.at(-1)!);
      if (++this.#step > STEPS_MAX) return 'clients wait for ever';
      if (this.#step === victim) {
        // The last gateway lives.
        this.#gateways[this.#pick(GATEWAYS - 1)].wire.isCut = true;
        victim = this.#chance(0.5) ? this.#step + 1 + this.#pick(200) : Infinity;
      }
      const shard = this.#world.shards[this.#pick(SHARDS)];
      if (this.#chance(0.01)) shard.restart();
      // Its next leader may have another clock.
      if (this.#chance(0.001)) shard.aheadMs += 70_000;
      if (this.#chance(0.003)) shard.loseListener();
      // Long enough now and then for transactions to be overdue.
      if (this.#chance(0.05)) this.#world.tick(this.#chance(0.3) ? 2500 : 10);
      if (!this.#world.step()) this.#world.tick(200);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const last = await this.#finalRead();
    return (
      last ??
      this.#failure ??
      this.#queues.check() ??
      this.#compareReplicas() ??
      check(this.#history)
    );
  }

  #compareReplicas(): Violation | undefined {
    for (const shard of this.#world.shards) {
      const violation = shard.compareReplicas();
      if (violation !== undefined) return violation;
    }
    return undefined;
  }

  async #client(gateway: Gateway, number: number): Promise<void> {
    for (let i = 0; i < TRANSACTIONS; i++) {
      const invoked = this.#step;
      const name = `c${number}.${i}`;
      const unknown = (operations: readonly Operation[]): number =>
        this.#history.push({
          name,
          operations,
          invoked,
          completed: Infinity,
          outcome: 'unknown',
        }) - 1;
      if (this.#chance(0.2)) await this.#queues.put(gateway);
      const draw = this.#random();
      const done = (at: number, operations: readonly Operation[], outcome: 'ok' | 'failed') => {
        this.#history[at] = { name, operations, invoked, completed: this.#step, outcome };
      };
      if (this.#chance(0.2)) {
        await this.#runScript(gateway, unknown, done);
      } else if (draw < 0.75) {
        const commands = this.#drawCommands(1 + this.#pick(4));
        const at = unknown(commands.flatMap(toOperation));
        try {
          const replies = await (draw < 0.25
            ? gateway.runIndependently(commands)
            : gateway.transact(commands));
          done(
            at,
            commands.flatMap((command, k) => withReply(command, replies[k])),
            'ok',
          );
        } catch (error) {
          // Any other error leaves open what has happened.
          if (this.#isRefusal(error)) done(at, commands.flatMap(toOperation), 'failed');
        }
      } else {
        await this.#watchAndAppend(gateway, unknown, done).catch(() => undefined);
      }
    }
  }

  /** Some of its keys are declared. */
  async #runScript(
    gateway: Gateway,
    unknown: (operations: readonly Operation[]) => number,
    done: (at: number, operations: readonly Operation[], outcome: 'ok' | 'failed') => void,
  ): Promise<void> {
    const [list, ...targets] = this.#shuffled(LISTS).slice(0, 3);
    const register = REGISTERS[this.#pick(REGISTERS.length)];
    const names = [list, register, ...targets];
    const keys = names.slice(0, this.#pick(names.length + 1));
    const [swapped, appended] = [this.#newValue(), this.#newValue()];
    const swap = { type: 'swap', key: register, value: swapped } as const;
    const appendTo = (key: string) => ({ type: 'append', key, value: appended }) as const;
    const possible = [swap, ...targets.map(appendTo)];
    const at = unknown(possible);
    const args = [SCRIPT, String(keys.length), ...keys, ...names, swapped, appended];
    try {
      const reply = await gateway.runScript(args);
      if (this.#isRefusal(reply)) throw new Error(`a script failed: ${reply}`);
      const [target, values, before] = reply as [string, readonly string[], string | null];
      const read = { type: 'read', key: list, values } as const;
      done(at, [read, { ...swap, before }, appendTo(target)], 'ok');
    } catch (error) {
      if (this.#isRefusal(error)) done(at, possible, 'failed');
      else if (String(error).includes('a script failed')) this.#failure ??= String(error);
    }
  }

  /** Reads two lists and their versions, then appends to two, if the first two have not changed. */
  async #watchAndAppend(
    gateway: Gateway,
    unknown: (operations: readonly Operation[]) => number,
    done: (at: number, operations: readonly Operation[], outcome: 'ok' | 'failed') => void,
  ): Promise<void> {
    const lists = this.#shuffled(LISTS).slice(0, 2);
    const versions = await gateway.runIndependently(
      lists.map((key) => ({ name: '.versions', args: [key] })),
    );
    const reads = lists.map((key): Queued => ({ name: 'lrange', args: [key, '0', '-1'] }));
    const values = await gateway.runIndependently(reads);
    const appends = this.#shuffled(LISTS)
      .slice(0, 2)
      .map((key): Queued => ({ name: 'rpush', args: [key, this.#newValue()] }));
    const watched = lists.map((key, i): Watched => [key, (versions[i] as number[])[0]]);
    const operations = reads.flatMap((command, i) => withReply(command, values[i]));
    const written = appends.flatMap(toOperation);
    const at = unknown(written);
    const isDone = await gateway.backend.transactions.runIf(watched, gateway.callsOf(appends)).then(
      (outcome) => !(outcome instanceof this.build.NullArray),
      (error) => {
        if (this.#isRefusal(error)) return false;
        throw error;
      },
    );
    done(at, isDone ? [...operations, ...written] : written, isDone ? 'ok' : 'failed');
  }

  /** Whether this error says that nothing was done. */
  #isRefusal(error: unknown): boolean {
    return error instanceof this.build.ErrorReply;
  }

  #drawCommands(count: number): Queued[] {
    return Array.from({ length: count }, (): Queued => {
      const draw = this.#random();
      const list = LISTS[this.#pick(LISTS.length)];
      if (draw < 0.4) return { name: 'rpush', args: [list, this.#newValue()] };
      if (draw < 0.8) return { name: 'lrange', args: [list, '0', '-1'] };
      if (draw < 0.85) return this.#drawExpiring();
      const register = REGISTERS[this.#pick(REGISTERS.length)];
      return { name: 'getset', args: [register, this.#newValue()] };
    });
  }

  /** Of keys that expire: only the replicas are compared. */
  #drawExpiring(): Queued {
    const key = EXPIRING[this.#pick(EXPIRING.length)];
    if (this.#chance(0.5)) return { name: 'get', args: [key] };
    return { name: 'psetex', args: [key, String(1 + this.#pick(100)), this.#newValue()] };
  }

  async #finalRead(): Promise<Violation | undefined> {
    const invoked = this.#step;
    const gateway = this.#gateways[GATEWAYS - 1];
    const commands = LISTS.map((key): Queued => ({ name: 'lrange', args: [key, '0', '-1'] }));
    let operations: Operation[] | undefined;
    const read = async (): Promise<void> => {
      await this.#queues.readLeft(gateway);
      const replies = await gateway.runIndependently(commands);
      operations = commands.flatMap((command, i) => withReply(command, replies[i]));
    };
    const reading = read().catch(read);
    for (let steps = 0; operations === undefined; steps++) {
      if (steps > 5000) return 'a read at the end waits for ever: a transaction is stuck';
      if (!this.#world.step()) this.#world.tick(500);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await reading;
    this.#history.push({
      name: 'the last read',
      operations,
      invoked: invoked + 1,
      completed: Infinity,
      outcome: 'ok',
    });
    return undefined;
  }

  #newValue(): string {
    return `v${++this.#values}`;
  }

  #pick(count: number): number {
    return Math.floor(this.#random() * count);
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }

  #shuffled<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, at: this.#random() }))
      .sort((a, b) => a.at - b.at)
      .map(({ item }) => item);
  }
}

/** None for a command that the checker does not know. */
function toOperation({ name, args }: Queued): Operation[] {
  const [key, value] = args;
  if (name === 'rpush') return [{ type: 'append', key, value }];
  if (name === 'getset') return [{ type: 'swap', key, value }];
  return name === 'lrange' ? [{ type: 'read', key }] : [];
}

function withReply(command: Queued, reply: Reply): Operation[] {
  return toOperation(command).map((operation) => {
    if (operation.type === 'read') return { ...operation, values: reply as readonly string[] };
    if (operation.type === 'swap') return { ...operation, before: reply as string | null };
    return operation;
  });
}

function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}
