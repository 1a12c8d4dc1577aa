/**
 * The shard of a replica: messages in, replies out. Deterministic, so all replicas of a group stay alike.
 *
 * A call runs at its place in the order of the group, unless something before it is in line for one of its keys: then it runs as soon
 * as it is first (`line.ts`). Others may run before it, but they share no key with it, so the outcome is that of the order.
 */

import { deserialize, serialize } from 'node:v8';
import type { Deferred, Message, ServiceContext } from 'tram-multicast';
import { type Claim, claimOf } from '../commands/claims.js';
import { BLOCKED, CommandRunner } from '../commands/runner.js';
import { type ScriptState, Scripts } from '../commands/scripting/scripts.js';
import type { Reach } from '../commands/spec.js';
import { ByteReader, ByteWriter } from '../engine/bytes.js';
import { type ChannelState, Channels } from '../engine/channels.js';
import { decodeEntry, encodeEntry } from '../engine/codec.js';
import { Eviction, type EvictionState } from '../engine/eviction.js';
import { matchesGlob } from '../engine/glob.js';
import { Keyspace, type KeyspaceCounts } from '../engine/keyspace.js';
import { shardOfSlot, slotOf } from '../engine/slots.js';
import {
  type Call,
  type Held,
  NEED,
  readCall,
  readDecision,
  readPreparation,
  readReplies,
  writeDecided,
  writePrepared,
} from '../messages/contents.js';
import {
  GREETING,
  type Header,
  KIND,
  REPLY_BYTES_MAX,
  readMessage,
  writeInlineReply,
  writeStoredReply,
} from '../messages/message.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import { ReplyWriter } from '../resp/writer.js';
import { type BlockedCall, BlockedCalls } from './blocked.js';
import { HeldKeys } from './held-keys.js';
import type { Batch, CallInLine, InLine, Transaction } from './in-line.js';
import { Line } from './line.js';
import { Mailboxes } from './mailboxes.js';
import { type ParcelState, Parcels } from './parcels.js';

/** Stamps of gateways whose clocks run ahead count only so far beyond ordered time. */
const AHEAD_MS = 1000;

/** How long a transaction may be first before it is overdue: its gateway may have died. */
const CLAIMED_MS = 2000;

/** How often somebody is told of a transaction that is overdue: first its own gateway, then all. */
const OVERDUE_EVERY_MS = 1000;

/** An upload that belongs to no transaction is dropped if its gateway leaves it for so long. */
const KEPT_MS = 60_000;

/** To a call that would be blocked: its reply would never reach its client. */
const UNKNOWN_GATEWAY = new ErrorReply('TRYAGAIN the shard has lost contact to the gateway');

/** How many expired keys a tick removes. */
const EXPIRED_PER_TICK = 1000;

/** What a snapshot has besides the keys. */
interface State {
  readonly nowMs: number;
  readonly eviction: EvictionState;
  readonly counts: KeyspaceCounts;
  readonly line: readonly InLine[];
  readonly transactions: readonly Transaction[];
  readonly blocked: readonly BlockedCall[];
  readonly mail: Mailboxes['state'];
  readonly channels: ChannelState;
  readonly parcels: ParcelState;
  readonly scripts: ScriptState;
}

export class Shard {
  readonly #keyspace = new Keyspace({
    changed: (key) => this.#noteChanged(key),
  });
  readonly #eviction = new Eviction(this.#keyspace, (key) => this.#held.has(key));
  #line = new Line<InLine>();
  readonly #transactions = new Map<Bytes, Transaction>();
  #held = new HeldKeys();
  #blocked = new BlockedCalls();
  #mail = new Mailboxes((id, content) => this.#replyLater(id, content));
  #channels = new Channels();
  #parcels = new Parcels();
  #scripts = new Scripts();
  /** How many shards there are. */
  #shards = 1;
  #runner = this.#newRunner();
  /** The time of the shard: the greatest stamp so far. */
  #nowMs = 0;
  /** Whether its memory is short, as of the last command. Each message begins with finding out. */
  #isShort = false;
  /** Keys that blocked calls wait for, and that have changed. Empty between calls of the service, so no snapshot has it. */
  readonly #ready = new Set<Bytes>();
  readonly #replyWriter = new ReplyWriter();
  readonly #content = new ByteWriter();
  readonly #envelope = new ByteWriter();
  /** Valid during a call of the service. */
  #context!: ServiceContext;

  deliver(message: Message, context: ServiceContext): Uint8Array | Deferred {
    this.#context = context;
    const { header, content } = readMessage(message.payload, context.group);
    this.#shards = header.shards;
    this.#advance(Math.min(header.stampMs, context.nowMs + AHEAD_MS));
    const whole =
      typeof content === 'number' ? this.#parcels.take(uploadOf(header, content)) : content;
    // Its transaction was aborted; or it has none, and was left for too long.
    if (whole === undefined) return this.#reply(new Uint8Array(0));
    this.#makeRoom();
    const reply = this.#handle(header, whole, message);
    this.#makeRoom();
    this.#serveReady();
    return reply === undefined ? context.defer() : this.#reply(reply);
  }

  /** @returns the content of the reply; undefined if the message waits */
  #handle(header: Header, content: Uint8Array, message: Message): Uint8Array | undefined {
    const { kind, sender, subject } = header;
    if (kind === KIND.batch) return this.#runBatch(header, content, message);
    if (kind === KIND.prepare) return this.#prepare(header, content, message);
    if (kind === KIND.decide) return this.#decide(header, content);
    if (kind === KIND.abort) return this.#abort(subject);
    if (kind === KIND.keep) return this.#keep(subject);
    if (kind === KIND.hello) return Buffer.from(GREETING, 'latin1');
    const reader = new ByteReader(content);
    if (kind === KIND.listen) {
      return this.#mail.listen(sender, reader.float64(), this.#nowMs, () => message.id);
    }
    if (kind === KIND.unblock) return this.#unblock(sender, reader.float64());
    if (kind === KIND.fetch) {
      return this.#parcels.fetch(reader.float64(), reader.uint32(), reader.uint32());
    }
    // What a transaction uploads is kept until it ends: all its shards have it then, or none.
    const isOwned = subject !== '';
    if (isOwned && !this.#transactions.has(subject)) return new Uint8Array(0);
    const id = uploadOf(header, reader.float64());
    const [at, length] = [reader.uint32(), reader.uint32()];
    const piece = reader.raw(content.length - 16);
    this.#parcels.upload(id, at, length, piece, isOwned ? Infinity : this.#nowMs + KEPT_MS);
    return new Uint8Array(0);
  }

  tick(context: ServiceContext): void {
    this.#context = context;
    this.#advance(context.nowMs);
    this.#keyspace.nowMs = this.#nowMs;
    this.#keyspace.expireSome(EXPIRED_PER_TICK, (key) => this.#line.isClaimed(key));
    this.#makeRoom();
    for (const blocked of this.#blocked.pastDeadline(this.#nowMs)) {
      this.#unblocked(blocked, blocked.timedOut);
    }
    for (const transaction of this.#transactions.values()) this.#tellIfOverdue(transaction);
    for (const gateway of this.#mail.dropSilent(this.#nowMs)) {
      this.#channels.drop(gateway);
      this.#blocked.dropGateway(gateway);
    }
    this.#parcels.dropOld(this.#nowMs);
    this.#serveReady();
  }

  /** A message waits no longer for its reply. Its calls stay in line all the same: they were ordered. */
  abandoned(id: string): void {
    this.#mail.abandoned(id);
  }

  #advance(nowMs: number): void {
    if (nowMs <= this.#nowMs) return;
    this.#nowMs = nowMs;
    this.#keyspace.usage.advance(nowMs);
  }

  #makeRoom(): void {
    this.#isShort = !this.#eviction.makeRoom(!this.#held.areAll);
  }

  /** Wraps the content of a reply, or stores it if it is too long. */
  #reply(content: Uint8Array): Uint8Array {
    const { length } = content;
    const isShort = this.#isShort;
    if (length < REPLY_BYTES_MAX) return writeInlineReply(this.#envelope, content, isShort);
    const number = this.#parcels.store(Buffer.from(content), this.#nowMs);
    return writeStoredReply(this.#envelope, { number, length }, isShort);
  }

  #replyLater(id: string, content: Uint8Array): void {
    this.#context.reply(id, this.#reply(content));
  }

  // --- snapshots -----------------------------------------------------------------------------

  /** First everything but the keys, then the keys. */
  *snapshot(): Generator<Uint8Array> {
    const keys = this.#keyspace.snapshot();
    try {
      const state: State = {
        nowMs: this.#nowMs,
        eviction: this.#eviction.state,
        counts: this.#keyspace.counts,
        line: [...this.#line.items()],
        transactions: [...this.#transactions.values()],
        blocked: this.#blocked.state,
        mail: this.#mail.state,
        channels: this.#channels.state,
        parcels: this.#parcels.state,
        scripts: this.#scripts.state,
      };
      const bytes = serialize(state);
      yield new ByteWriter().uint32(bytes.length).raw(bytes).written();
      yield* keys;
    } finally {
      keys.return?.();
    }
  }

  restore(snapshot: Uint8Array): void {
    const reader = new ByteReader(snapshot);
    const length = reader.uint32();
    // A copy: arrays of bytes are views of what they are read from.
    const state = deserialize(Buffer.from(reader.raw(length))) as State;
    this.#keyspace.restore(reader.raw(snapshot.length - 4 - length));
    this.#nowMs = state.nowMs;
    this.#keyspace.usage.advance(state.nowMs);
    this.#eviction.restore(state.eviction);
    Object.assign(this.#keyspace.counts, state.counts);
    this.#line = new Line();
    this.#transactions.clear();
    for (const item of state.line) this.#line.join(item, this.#claimInLine(item));
    this.#held = new HeldKeys();
    for (const transaction of state.transactions) {
      this.#transactions.set(transaction.id, transaction);
      if (isPrepared(transaction)) this.#held.add(transaction);
    }
    this.#blocked = new BlockedCalls(state.blocked);
    this.#mail = new Mailboxes((id, content) => this.#replyLater(id, content), state.mail);
    this.#channels = new Channels(state.channels);
    this.#parcels = new Parcels(state.parcels);
    this.#scripts = new Scripts(state.scripts);
    this.#runner = this.#newRunner();
  }

  // --- calls ---------------------------------------------------------------------------------

  #runBatch(header: Header, content: Uint8Array, message: Message): Uint8Array | undefined {
    const { sender, subject, seed } = header;
    // It was for uploads only.
    this.#transactions.delete(subject);
    const reader = new ByteReader(content);
    const out = this.#content.reset();
    let batch: Batch | undefined;
    let call: Call | undefined;
    for (let index = 0; !reader.isAtEnd; index++) {
      call = readCall(reader, call?.name);
      const claim = this.#line.isEmpty ? [] : claimOf(call.name, call.args);
      if (!this.#mayPass(claim)) {
        batch ??= { id: message.id, replies: readReplies(out.copy()), missing: 0 };
        batch.missing++;
        batch.replies.push(undefined);
        this.#line.join(
          { type: 'call', call, sender, seed, nowMs: this.#nowMs, batch, index },
          claim,
        );
        continue;
      }
      const reply = this.#run(call, sender, seed + index, this.#nowMs);
      if (batch === undefined) out.uint32(reply.length).raw(reply);
      else batch.replies.push(Buffer.from(reply));
      this.#serveReady();
    }
    return batch === undefined ? out.written() : undefined;
  }

  /** Whether nothing in line is before a newcomer with this claim. */
  #mayPass(claim: Claim): boolean {
    if (this.#line.isEmpty) return true;
    return claim !== undefined && !claim.some((key) => this.#line.isClaimed(key));
  }

  /** @returns the reply as bytes, valid until the next call; empty if the call is blocked */
  #run(call: Call, sender: Bytes, seed: number, nowMs: number): Uint8Array {
    this.#makeRoom();
    this.#keyspace.nowMs = nowMs;
    const { name, args, resp, blockedAs, isPart } = call;
    const isShort = this.#isShort && !isPart;
    const reply = this.#runner.start(name, args, seed, blockedAs !== 0, isShort);
    if (reply !== BLOCKED) return this.#encode(reply, resp);
    if (!this.#mail.has(sender)) return this.#encode(UNKNOWN_GATEWAY, resp);
    const { keys, timeoutMs, timedOut, args: again = args } = this.#runner.wait!;
    this.#blocked.add({
      gateway: sender,
      call: again === args ? call : { ...call, args: again },
      keys,
      deadlineMs: timeoutMs === 0 ? Infinity : nowMs + timeoutMs,
      timedOut: Buffer.from(this.#encode(timedOut, resp)),
    });
    return new Uint8Array(0);
  }

  #encode(reply: Reply, resp: 2 | 3): Uint8Array {
    this.#replyWriter.clear();
    this.#replyWriter.write(reply, resp);
    return this.#replyWriter.written();
  }

  /** What was in line has left, and these are first now. */
  #goOn(first: readonly InLine[]): void {
    const queue = [...first];
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      if (item.type === 'transaction') {
        this.#replyLater(item.message, this.#prepared(item));
        continue;
      }
      if (item.type === 'call') this.#runFromLine(item);
      else this.#retry(item.blocked);
      for (const next of this.#line.leave(item)) queue.push(next);
    }
  }

  #runFromLine({ call, sender, seed, nowMs, batch, index }: CallInLine): void {
    batch.replies[index] = Buffer.from(this.#run(call, sender, seed + index, nowMs));
    if (--batch.missing > 0) return;
    const out = this.#content.reset();
    for (const reply of batch.replies) out.uint32(reply!.length).raw(reply!);
    this.#replyLater(batch.id, out.written());
  }

  // --- blocked calls -------------------------------------------------------------------------

  #noteChanged(key: Bytes): void {
    if (this.#blocked.isAwaited(key)) this.#ready.add(key);
  }

  /** Runs the blocked calls whose keys have changed again. They may change others. */
  #serveReady(): void {
    for (const key of this.#ready) {
      this.#ready.delete(key);
      for (const blocked of this.#blocked.waitingFor(key)) {
        const claim = claimOf(blocked.call.name, blocked.call.args);
        if (this.#mayPass(claim)) this.#retry(blocked);
        else this.#line.join({ type: 'retry', blocked }, claim);
      }
    }
  }

  #retry(blocked: BlockedCall): void {
    // It may have got its reply, or have been given up, while it was in line.
    if (!this.#blocked.has(blocked)) return;
    this.#keyspace.nowMs = this.#nowMs;
    const { name, args, resp } = blocked.call;
    const reply = this.#runner.resume(name, args);
    if (reply !== BLOCKED) this.#unblocked(blocked, this.#encode(reply, resp));
  }

  #unblocked(blocked: BlockedCall, reply: Uint8Array): void {
    this.#blocked.remove(blocked);
    const { blockedAs } = blocked.call;
    this.#mail.post(blocked.gateway, { type: 'unblocked', blockedAs, reply }, this.#nowMs);
  }

  /** @returns the reply of a call that has timed out; empty if the call was not blocked */
  #unblock(gateway: Bytes, blockedAs: number): Uint8Array {
    const blocked = this.#blocked.get(gateway, blockedAs);
    if (blocked === undefined) return new Uint8Array(0);
    this.#blocked.remove(blocked);
    return blocked.timedOut;
  }

  // --- transactions --------------------------------------------------------------------------

  #prepare(
    { subject: id, sender }: Header,
    content: Uint8Array,
    message: Message,
  ): Uint8Array | undefined {
    const { groups, isWhole, keys } = readPreparation(content);
    const transaction: Transaction = {
      type: 'transaction',
      id,
      gateway: sender,
      keys,
      isWhole,
      groups,
      nowMs: this.#nowMs,
      message: message.id,
      tellMs: Infinity,
      isGatewayTold: false,
    };
    this.#transactions.set(id, transaction);
    // One that only uploads claims nothing, and is in nobody's way.
    const isFirst =
      (keys.length === 0 && !isWhole) ||
      this.#line.join(transaction, this.#claimInLine(transaction));
    return isFirst ? this.#prepared(transaction) : undefined;
  }

  /** The reply once the transaction is first on all its keys. */
  #prepared(transaction: Transaction): Uint8Array {
    const { keys, nowMs } = transaction;
    transaction.tellMs = this.#nowMs + CLAIMED_MS;
    const keyspace = this.#keyspace;
    this.#held.add(transaction);
    this.#makeRoom();
    keyspace.nowMs = nowMs;
    keyspace.usage.begin();
    const held = keys.map(({ key, need }): Held => {
      const entry = need === NEED.version ? undefined : keyspace.find(key);
      const version = keyspace.versionOf(key);
      if (entry === undefined) return { version, entry };
      encodeEntry(entry, this.#content.reset());
      const bytes = this.#content.copy();
      return { version, entry: { bytes, staleness: keyspace.stalenessOf(key) } };
    });
    const { countsFrequency } = keyspace.usage;
    const prepared = { nowMs, isShort: this.#isShort, countsFrequency, held };
    writePrepared(this.#content.reset(), prepared);
    return this.#content.written();
  }

  #decide({ subject, sender, seed }: Header, content: Uint8Array): Uint8Array {
    const transaction = this.#transactions.get(subject);
    if (transaction === undefined) {
      writeDecided(this.#content.reset(), undefined);
      return this.#content.copy();
    }
    if (this.#isWaiting(transaction)) throw new Error('decided before it was prepared');
    const { writes, calls } = readDecision(content);
    this.#keyspace.nowMs = transaction.nowMs;
    this.#keyspace.usage.begin();
    for (const { key, entry } of writes) {
      if (entry === undefined) this.#keyspace.delete(key);
      else {
        const { value, expiresAtMs } = decodeEntry(new ByteReader(entry.bytes));
        this.#keyspace.set(key, value, expiresAtMs);
        this.#keyspace.setStaleness(key, entry.staleness);
      }
    }
    const replies = calls.map((call, index) =>
      Buffer.from(this.#run(call, sender, seed + index, transaction.nowMs)),
    );
    this.#end(transaction);
    writeDecided(this.#content.reset(), replies);
    return this.#content.copy();
  }

  #abort(id: Bytes): Uint8Array {
    const transaction = this.#transactions.get(id);
    if (transaction === undefined) return new Uint8Array(0);
    // Then its prepare has no reply yet.
    if (this.#isWaiting(transaction)) {
      writePrepared(this.#content.reset(), undefined);
      this.#replyLater(transaction.message, this.#content.written());
    }
    this.#end(transaction);
    return new Uint8Array(0);
  }

  /** Whether something is before it in line. One that claims nothing is not in line. */
  #isWaiting(transaction: Transaction): boolean {
    return this.#line.has(transaction) && !this.#line.isFirst(transaction);
  }

  #end(transaction: Transaction): void {
    this.#transactions.delete(transaction.id);
    if (isPrepared(transaction)) this.#held.delete(transaction);
    this.#parcels.take(uploadOfTransaction(transaction.id));
    this.#goOn(this.#line.leave(transaction));
  }

  /** Its gateway says that it goes on. */
  #keep(id: Bytes): Uint8Array {
    const transaction = this.#transactions.get(id);
    if (transaction?.isGatewayTold) {
      transaction.isGatewayTold = false;
      transaction.tellMs = this.#nowMs + CLAIMED_MS;
    }
    return new Uint8Array(0);
  }

  #tellIfOverdue(transaction: Transaction): void {
    if (transaction.tellMs > this.#nowMs) return;
    transaction.tellMs = this.#nowMs + OVERDUE_EVERY_MS;
    const { id, groups, gateway: own, isGatewayTold } = transaction;
    transaction.isGatewayTold = true;
    const isOwnEnough = !isGatewayTold && this.#mail.has(own);
    for (const gateway of isOwnEnough ? [own] : this.#mail.gateways()) {
      this.#mail.post(gateway, { type: 'overdue', transaction: id, groups }, this.#nowMs);
    }
  }

  /** What it claims, for one that is in line. */
  #claimInLine(item: InLine): Claim {
    if (item.type === 'transaction')
      return item.isWhole ? undefined : item.keys.map(({ key }) => key);
    const { name, args } = item.type === 'call' ? item.call : item.blocked.call;
    return claimOf(name, args);
  }

  // --- channels ------------------------------------------------------------------------------

  #newRunner(): CommandRunner {
    const publish = (channel: Bytes, message: Bytes, isSharded: boolean): number =>
      this.#publish(channel, message, isSharded);
    return new CommandRunner(
      this.#keyspace,
      this.#channels,
      publish,
      this.#scripts,
      this.#newReach(),
      this.#eviction,
    );
  }

  /** Scripts claim the whole shard, so they can use all keys that it has. */
  #newReach(): Reach {
    const isAll = (): boolean => this.#shards === 1;
    return {
      get isAll() {
        return isAll();
      },
      has: (key) => shardOfSlot(slotOf(key), this.#shards) === this.#context.group,
    };
  }

  #publish(channel: Bytes, message: Bytes, isSharded: boolean): number {
    const kind = isSharded ? 'shard' : 'channel';
    const { gateways, clients } = this.#channels.receivers(kind, channel, matchesGlob);
    for (const gateway of gateways) {
      this.#mail.post(gateway, { type: 'published', isSharded, channel, message }, this.#nowMs);
    }
    return clients;
  }
}

/** Whether it has got its reply. */
function isPrepared({ tellMs }: Transaction): boolean {
  return tellMs !== Infinity;
}

/** The name of an upload that a message refers to. */
function uploadOf({ kind, sender, subject }: Header, number: number): string {
  // What prepares a transaction comes before it.
  return subject === '' || kind === KIND.prepare
    ? `${sender} ${number}`
    : uploadOfTransaction(subject);
}

/** A transaction has one upload at a shard at most. */
function uploadOfTransaction(id: Bytes): string {
  return `transaction ${id}`;
}
