/**
 * Transactions over several shards in which one shard has to know what another one has. Two multicasts to the same shards: with the first,
 * the transaction claims its keys and learns what they hold; then the gateway runs the commands on a scratch store with these
 * values; with the second, the shards write the outcome and let the keys go.
 *
 * If this gateway dies in between, the shards tell the others after a deadline, and one of them aborts the transaction. All shards see the
 * decision and the abort in the same order, so they agree on which one counts.
 */

import { outOfMemory } from '../commands/arguments.js';
import { type Claim, claimOf } from '../commands/claims.js';
import type { Queued, Watched } from '../commands/internal.js';
import { needMemory } from '../commands/memory.js';
import { CommandRunner, type Wait } from '../commands/runner.js';
import { Scripts } from '../commands/scripting/scripts.js';
import { COMMANDS_BY_NAME, keyPositions } from '../commands/table.js';
import { ByteReader, ByteWriter } from '../engine/bytes.js';
import { Channels } from '../engine/channels.js';
import { decodeEntry, encodeEntry } from '../engine/codec.js';
import { Keyspace } from '../engine/keyspace.js';
import type { Transactions } from '../gateway/backend.js';
import { JoinedCalls } from '../gateway/joined-calls.js';
import type { ShardCall, Shards } from '../gateway/shards.js';
import type { Traffic } from '../gateway/traffic.js';
import {
  type Call,
  type Held,
  NEED,
  type Prepared,
  readDecided,
  readPrepared,
  type Write,
  writeDecision,
  writePreparation,
} from '../messages/contents.js';
import { KIND } from '../messages/message.js';
import { readReply } from '../resp/reader.js';
import { type Bytes, ErrorReply, NullArray, type Reply } from '../resp/reply.js';
import { type Protocol, ReplyWriter } from '../resp/writer.js';
import type { Postman } from './postman.js';

/** How often a transaction is tried that was aborted because it took too long. */
const ATTEMPTS = 5;

const WHOLE_SHARD =
  'ERR a command on the whole database can not be combined with a command or a script that moves data between shards';

/** How often a transaction is tried again because its scripts have used keys that it had not claimed. */
const DISCOVERIES = 50;

/** What a transaction claims of a shard. */
interface Share {
  readonly shard: number;
  readonly claim: { readonly isWhole: boolean; readonly keys: readonly Bytes[] };
}

/** What the shards of a transaction have replied, together: the latest time, and whether memory is short in one of them. */
interface AllHeld extends Omit<Prepared, 'held'> {
  readonly keys: ReadonlyMap<Bytes, Held>;
}

/** A transaction has to claim more. */
const AGAIN = Symbol('again');
const NOTHING_MORE: ReadonlySet<Bytes> = new Set();
const TOO_MANY_DISCOVERIES =
  'ERR it uses other keys that it does not declare each time it is tried';

interface Publication {
  /** The position of the command in the transaction. */
  readonly command: number;
  readonly channel: Bytes;
  readonly message: Bytes;
  readonly isSharded: boolean;
}

export class ShardTransactions implements Transactions {
  /** Those that transactions have run. */
  #scripts = new Scripts();

  constructor(
    private readonly shards: Shards,
    private readonly postman: Postman,
    private readonly shardOf: (key: Bytes) => number,
  ) {}

  /**
   * Runs the commands as one, if no watched key has changed.
   * @returns their replies, as bytes; a null array if a watched key has changed
   */
  async transact(
    commands: readonly Queued[],
    watched: readonly Watched[],
    resp: Protocol,
  ): Promise<readonly Uint8Array[] | NullArray> {
    await this.#fetchScripts(commands);
    // Scripts make the same random choices each time, so that they use the same keys.
    const seed = Math.floor(Math.random() * 2 ** 32);
    const discovered = new Set<Bytes>();
    return this.#repeat(async (id) => {
      const shares = this.#sharesOf(commands, watched, discovered);
      const held = await this.#prepare(id, shares, NEED.value);
      if (held === undefined) return undefined;
      if (held.isShort && needMemory(commands)) return this.#refuse(id, shares);
      if (isChanged(watched, held.keys)) return this.#abort(id, shares);
      const scratch = new Scratch(held, this.#scripts);
      const writer = new ReplyWriter();
      // A reply may be a view of a value that the next command changes.
      const replies = commands.map(({ name, args }, i): Uint8Array => {
        writer.write(scratch.run(name, args, seed + i), resp);
        return writer.take();
      });
      if (scratch.missing.size > 0) {
        for (const key of scratch.missing) discovered.add(key);
        await this.#abort(id, shares);
        return AGAIN;
      }
      const calls = scratch.published.map((publication) => this.#publishing(publication));
      const decided = await this.#decide(id, shares, scratch.writes(), calls);
      if (decided === undefined) return undefined;
      // Only the shard of a channel knows how many clients get the message.
      for (const [i, { command }] of scratch.published.entries()) {
        const isPublish = commands[command].name.endsWith('publish');
        if (isPublish) replies[command] = decided.get(calls[i])!;
      }
      return replies;
    });
  }

  /**
   * Runs a command that may find nothing, and would wait then.
   * @param isResumed  it has waited
   * @returns its reply; or what it would wait for, with the versions that the keys have
   */
  tryToRun(queued: Queued, isResumed: boolean): Promise<Reply | Waiting> {
    const shares = this.#sharesOf([queued], [], NOTHING_MORE);
    return this.#repeat(async (id) => {
      const held = await this.#prepare(id, shares, NEED.value);
      if (held === undefined) return undefined;
      const scratch = new Scratch(held, this.#scripts);
      const seed = Math.floor(Math.random() * 2 ** 32);
      const reply = scratch.run(queued.name, queued.args, seed, isResumed);
      const { wait } = scratch;
      if (wait !== undefined) {
        await this.#abort(id, shares);
        return new Waiting(
          wait,
          wait.keys.map((key) => [key, held.keys.get(key)!.version]),
        );
      }
      return (await this.#decide(id, shares, scratch.writes(), [])) && reply;
    });
  }

  /**
   * Runs calls at the shards that are theirs, if no watched key has changed.
   * @returns their replies, as bytes; a null array if a watched key has changed
   */
  async runIf(
    watched: readonly Watched[],
    calls: readonly ShardCall[],
  ): Promise<readonly Uint8Array[] | NullArray> {
    const shard = this.#onlyShardOf(watched, calls);
    if (shard !== undefined) return this.#runAtShard(shard, watched, calls);
    const joined = new JoinedCalls(calls);
    const commands = calls.map(({ command: { name }, args }) => ({ name, args }));
    const shares = this.#sharesOfCalls(watched, joined.calls);
    return this.#repeat(async (id) => {
      const held = await this.#prepare(id, shares, NEED.version);
      if (held === undefined) return undefined;
      if (held.isShort && needMemory(commands)) return this.#refuse(id, shares);
      if (isChanged(watched, held.keys)) return this.#abort(id, shares);
      const replies = await this.#decide(id, shares, [], joined.calls);
      const split = replies && joined.split(joined.calls.map((call) => replies.get(call)!));
      if (split instanceof ErrorReply) throw split;
      return split;
    });
  }

  forgetScripts(): void {
    this.#scripts.clear();
  }

  /** The scripts and functions that these commands name. All shards know the same. */
  async #fetchScripts(commands: readonly Queued[]): Promise<void> {
    for (const { name, args } of commands) {
      if (name.startsWith('evalsha')) await this.#fetchScript(args[0].toLowerCase());
      else if (name.startsWith('fcall')) await this.#fetchLibraries();
    }
  }

  async #fetchScript(sha: string): Promise<void> {
    if (this.#scripts.bodies.has(sha)) return;
    const body = await this.#askShard('.script', [sha]);
    if (typeof body === 'string') this.#scripts.addEvaluated(body);
  }

  async #fetchLibraries(): Promise<void> {
    const codes = (await this.#askShard('.libraries', [])) as readonly Bytes[];
    this.#scripts.libraries.clear();
    for (const [i, code] of codes.entries()) this.#scripts.libraries.set(String(i), code);
  }

  #askShard(name: string, args: readonly Bytes[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const call: ShardCall = { shard: 0, command: { name }, args, resp: 3 };
      this.shards.run([call], ([reply]) => resolve(readReply(reply)), reject);
    });
  }

  /** One shard has all keys: it compares the versions itself. */
  #runAtShard(
    shard: number,
    watched: readonly Watched[],
    calls: readonly ShardCall[],
  ): Promise<readonly Uint8Array[] | NullArray> {
    const joined = new JoinedCalls(calls, watched, shard);
    return new Promise((resolve, reject) => {
      this.shards.run(
        joined.calls,
        (replies) => {
          const split = joined.split(replies) ?? NullArray.instance;
          if (split instanceof ErrorReply) reject(split);
          else resolve(split);
        },
        reject,
      );
    });
  }

  /** @returns undefined if there are several */
  #onlyShardOf(watched: readonly Watched[], calls: readonly ShardCall[]): number | undefined {
    const shards = new Set([
      ...watched.map(([key]) => this.shardOf(key)),
      ...calls.map(({ shard }) => shard),
    ]);
    return shards.size === 1 ? [...shards][0] : undefined;
  }

  /** @param attempt  returns undefined if the transaction was aborted by somebody else: then it had no effect */
  async #repeat<T>(attempt: (id: Bytes) => Promise<T | typeof AGAIN | undefined>): Promise<T> {
    const { traffic } = this.postman;
    traffic.begunTransactions++;
    let ending: keyof Traffic['transactions'] = 'failed';
    try {
      const outcome = await this.#attempts(attempt);
      if (outcome === undefined) ending = 'gaveUp';
      else if (outcome instanceof NullArray) ending = 'changed';
      else ending = outcome instanceof Waiting ? 'waiting' : 'committed';
      if (outcome !== undefined) return outcome;
    } finally {
      traffic.transactions[ending]++;
    }
    throw new ErrorReply('TRYAGAIN the transaction was aborted because it took too long');
  }

  /** @returns undefined if somebody else has aborted each attempt */
  async #attempts<T>(
    attempt: (id: Bytes) => Promise<T | typeof AGAIN | undefined>,
  ): Promise<T | undefined> {
    let discoveries = 0;
    for (let left = ATTEMPTS; left > 0; left--) {
      const id = this.postman.open();
      const outcome = await attempt(id).finally(() => this.postman.ended(id));
      if (outcome === AGAIN) {
        if (++discoveries > DISCOVERIES) throw new ErrorReply(TOO_MANY_DISCOVERIES);
        left++;
      } else if (outcome !== undefined) return outcome;
      if (left > 1) this.postman.traffic.retriedTransactions++;
    }
    return undefined;
  }

  /** @returns what the keys hold; undefined if the transaction was aborted */
  async #prepare(id: Bytes, shares: readonly Share[], need: number): Promise<AllHeld | undefined> {
    // A script without keys may need none.
    if (shares.length === 0) {
      const nowMs = this.postman.nowMs();
      return { nowMs, isShort: false, countsFrequency: false, keys: new Map() };
    }
    const groups = shares.map(({ shard }) => shard);
    const letters = shares.map(({ shard, claim }) => {
      const writer = new ByteWriter();
      const keys = claim.keys.map((key) => ({ key, need }));
      writePreparation(writer, { groups, isWhole: claim.isWhole, keys });
      return { group: shard, content: writer.written() };
    });
    const contents = await this.postman.ask(KIND.prepare, id, letters);
    const keys = new Map<Bytes, Held>();
    let nowMs = 0;
    let isShort = false;
    let countsFrequency = false;
    for (const [i, content] of contents.entries()) {
      const part = readPrepared(content);
      if (part === undefined) return undefined;
      nowMs = Math.max(nowMs, part.nowMs);
      isShort ||= part.isShort;
      countsFrequency = part.countsFrequency;
      for (const [k, key] of shares[i].claim.keys.entries()) keys.set(key, part.held[k]);
    }
    return { nowMs, isShort, countsFrequency, keys };
  }

  /** @returns the replies to the calls; undefined if the transaction was aborted */
  async #decide(
    id: Bytes,
    shares: readonly Share[],
    writes: readonly Write[],
    calls: readonly ShardCall[],
  ): Promise<ReadonlyMap<ShardCall, Uint8Array> | undefined> {
    if (shares.length === 0) return new Map();
    const callsOf = (shard: number): ShardCall[] => calls.filter((call) => call.shard === shard);
    const letters = shares.map(({ shard }) => {
      const writer = new ByteWriter();
      writeDecision(writer, {
        writes: writes.filter(({ key }) => this.shardOf(key) === shard),
        calls: callsOf(shard).map(({ command: { name }, args, resp }): Call => {
          return { name, args, resp, blockedAs: 0, isPart: true };
        }),
      });
      return { group: shard, content: writer.written() };
    });
    const contents = await this.postman.ask(KIND.decide, id, letters);
    const all = new Map<ShardCall, Uint8Array>();
    for (const [i, content] of contents.entries()) {
      const replies = readDecided(content);
      if (replies === undefined) return undefined;
      for (const [k, call] of callsOf(shares[i].shard).entries()) all.set(call, replies[k]);
    }
    return all;
  }

  async #abort(id: Bytes, shares: readonly Share[]): Promise<NullArray> {
    if (shares.length === 0) return NullArray.instance;
    const letters = shares.map(({ shard }) => ({ group: shard, content: new Uint8Array(0) }));
    await this.postman.ask(KIND.abort, id, letters);
    return NullArray.instance;
  }

  /** A shard has no memory for it, so no shard does its part. */
  async #refuse(id: Bytes, shares: readonly Share[]): Promise<never> {
    await this.#abort(id, shares);
    throw outOfMemory('');
  }

  /** @throws an `ErrorReply` if a command concerns the whole database: that does not fit into a scratch store */
  #sharesOf(
    commands: readonly Queued[],
    watched: readonly Watched[],
    discovered: ReadonlySet<Bytes>,
  ): readonly Share[] {
    const shares = new Shares(this.shardOf);
    for (const [key] of watched) shares.addKey(key);
    for (const key of discovered) shares.addKey(key);
    for (const { name, args } of commands) {
      const claim = claimInScratch(name, args);
      if (claim === undefined) throw new ErrorReply(WHOLE_SHARD);
      for (const key of claim) shares.addKey(key);
      const { routedBy } = COMMANDS_BY_NAME.get(name) ?? {};
      if (routedBy !== undefined) shares.addShard(this.shardOf(args[routedBy]), []);
    }
    return shares.all();
  }

  #sharesOfCalls(watched: readonly Watched[], calls: readonly ShardCall[]): readonly Share[] {
    const shares = new Shares(this.shardOf);
    for (const [key] of watched) shares.addKey(key);
    for (const { shard, command, args } of calls)
      shares.addShard(shard, claimOf(command.name, args));
    return shares.all();
  }

  #publishing({ channel, message, isSharded }: Publication): ShardCall {
    const command = { name: isSharded ? 'spublish' : 'publish' };
    return { shard: this.shardOf(channel), command, args: [channel, message], resp: 2 };
  }
}

/** A script or SORT claims the keys that it declares, and then those that it has turned out to use. */
function claimInScratch(name: string, args: readonly Bytes[]): Claim {
  const command = COMMANDS_BY_NAME.get(name);
  if (!command?.reaches && !command?.patterns) return claimOf(name, args);
  return keyPositions(command, args).map((position) => args[position]);
}

/** Collects what a transaction claims, by shard. */
class Shares {
  readonly #shares = new Map<number, { isWhole: boolean; keys: Set<Bytes> }>();

  constructor(private readonly shardOf: (key: Bytes) => number) {}

  addKey(key: Bytes): void {
    this.addShard(this.shardOf(key), [key]);
  }

  addShard(shard: number, claim: Claim): void {
    const share = this.#shares.get(shard) ?? { isWhole: false, keys: new Set() };
    this.#shares.set(shard, share);
    if (claim === undefined) share.isWhole = true;
    for (const key of claim ?? []) share.keys.add(key);
  }

  all(): readonly Share[] {
    return [...this.#shares].map(([shard, { isWhole, keys }]) => ({
      shard,
      claim: { isWhole, keys: [...keys] },
    }));
  }
}

function isChanged(watched: readonly Watched[], keys: ReadonlyMap<Bytes, Held>): boolean {
  return watched.some(([key, version]) => keys.get(key)!.version !== version);
}

/** What a command would wait for. */
export class Waiting {
  constructor(
    readonly wait: Wait,
    /** The versions that its keys had when it found nothing. */
    readonly versions: readonly Watched[],
  ) {}
}

/** The keys of a transaction, as a store of their own. */
class Scratch {
  readonly published: Publication[] = [];
  /** Keys and channels that scripts and SORT have used, and that the transaction has not claimed. */
  readonly missing = new Set<Bytes>();
  /** How many commands were started. */
  #commands = 0;
  readonly #changed = new Set<Bytes>();
  readonly #keyspace = new Keyspace({ changed: (key) => this.#changed.add(key) });
  readonly #runner: CommandRunner;
  readonly #isShort: boolean;

  constructor({ nowMs, isShort, countsFrequency, keys }: AllHeld, scripts: Scripts) {
    this.#isShort = isShort;
    const publish = (channel: Bytes, message: Bytes, isSharded: boolean): number => {
      this.published.push({ command: this.#commands - 1, channel, message, isSharded });
      return 0;
    };
    // A script or SORT goes on as if the key did not exist: so it may find more of them at once.
    const has = (key: Bytes): boolean => {
      if (!keys.has(key)) this.missing.add(key);
      return true;
    };
    const reach = { isAll: false, discovers: true, has };
    this.#runner = new CommandRunner(this.#keyspace, new Channels(), publish, scripts, reach);
    const keyspace = this.#keyspace;
    keyspace.nowMs = nowMs;
    keyspace.usage.advance(nowMs);
    const policy = countsFrequency ? 'allkeys-lfu' : 'noeviction';
    this.#runner.eviction.configure({ 'maxmemory-policy': policy }, 1);
    for (const [key, { entry }] of keys) {
      if (entry === undefined) continue;
      const { value, expiresAtMs } = decodeEntry(new ByteReader(entry.bytes));
      keyspace.set(key, value, expiresAtMs);
      keyspace.setStaleness(key, entry.staleness);
    }
    this.#changed.clear();
  }

  /** What the last command would wait for. */
  get wait(): Wait | undefined {
    return this.#runner.wait;
  }

  run(name: string, args: readonly Bytes[], seed: number, isResumed = false): Reply {
    this.#commands++;
    if (isResumed) return this.#runner.resume(name, args, false);
    return this.#runner.start(name, args, seed, false, this.#isShort);
  }

  writes(): Write[] {
    const writer = new ByteWriter();
    return [...this.#changed].map((key) => {
      const entry = this.#keyspace.entries.get(key);
      if (entry === undefined) return { key, entry: undefined };
      encodeEntry(entry, writer.reset());
      const staleness = this.#keyspace.stalenessOf(key);
      return { key, entry: { bytes: writer.copy(), staleness } };
    });
  }
}
