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
import { Eviction, type EvictionState } from '../engine/eviction.js';
import { matchesGlob } from '../engine/glob.js';
import { Keyspace, type KeyspaceCounts } from '../engine/keyspace.js';
import { shardOfSlot, slotOf } from '../engine/slots.js';
import {
  type Call,
  readCalls,
  readDecision,
  readPreparation,
  readReplies,
  storeLongReplies,
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
import {
  type Batch,
  type CallInLine,
  claimInLine,
  type InLine,
  type Transaction,
} from './in-line.js';
import { Line } from './line.js';
import { Mailboxes } from './mailboxes.js';
import { KEPT_MS, type ParcelState, Parcels, uploadOf, uploadOfTransaction } from './parcels.js';
import { Prefetch } from './prefetch.js';
import { Transactions } from './transactions.js';

/** Stamps of gateways whose clocks run ahead count only so far beyond ordered time. */
const AHEAD_MS = 1000;

/** To a call that would be blocked: its reply would never reach its client. */
const UNKNOWN_GATEWAY = new ErrorReply('TRYAGAIN the shard has lost contact to the gateway');

/** How many expired keys a tick removes. */
const EXPIRED_PER_TICK = 1000;

/** Before each piece of an upload: its number, the position of the piece, the length of the whole. */
const UPLOAD_HEAD_BYTES = 16;

const NOTHING = new Uint8Array(0);

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
  readonly #prefetch = new Prefetch(this.#keyspace);
  readonly #eviction = new Eviction(this.#keyspace, (key) => this.#held.has(key));
  #line = new Line<InLine>();
  #held = new HeldKeys();
  #blocked = new BlockedCalls();
  #mail = new Mailboxes((id, content) => this.#replyLater(id, content));
  #transactions = new Transactions(this.#keyspace, this.#line, this.#held, this.#mail);
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
    if (whole === undefined) return this.#reply(NOTHING);
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
    if (kind === KIND.keep) {
      this.#transactions.keep(subject, this.#nowMs);
      return NOTHING;
    }
    if (kind === KIND.hello) return Buffer.from(GREETING, 'latin1');
    const reader = new ByteReader(content);
    if (kind === KIND.listen) {
      return this.#mail.listen(sender, reader.float64(), this.#nowMs, () => message.id);
    }
    if (kind === KIND.unblock) return this.#unblock(sender, reader.float64());
    if (kind === KIND.fetch) {
      const [number, from, to] = [reader.float64(), reader.uint32(), reader.uint32()];
      return this.#parcels.fetch(number, from, to, this.#nowMs);
    }
    return this.#upload(header, content);
  }

  #upload(header: Header, content: Uint8Array): Uint8Array {
    // What a transaction uploads is kept until it ends: all its shards have it then, or none.
    const isOwned = header.subject !== '';
    if (isOwned && !this.#transactions.has(header.subject)) return NOTHING;
    const reader = new ByteReader(content);
    const id = uploadOf(header, reader.float64());
    const [at, length] = [reader.uint32(), reader.uint32()];
    const piece = reader.raw(content.length - UPLOAD_HEAD_BYTES);
    this.#parcels.upload(id, at, length, piece, isOwned ? Infinity : this.#nowMs + KEPT_MS);
    return NOTHING;
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
    this.#transactions.tellOverdue(this.#nowMs);
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
        transactions: this.#transactions.state,
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
    for (const item of state.line) this.#line.join(item, claimInLine(item));
    this.#held = new HeldKeys();
    this.#blocked = new BlockedCalls(state.blocked);
    this.#mail = new Mailboxes((id, content) => this.#replyLater(id, content), state.mail);
    this.#transactions = new Transactions(
      this.#keyspace,
      this.#line,
      this.#held,
      this.#mail,
      state.transactions,
    );
    this.#channels = new Channels(state.channels);
    this.#parcels = new Parcels(state.parcels);
    this.#scripts = new Scripts(state.scripts);
    this.#runner = this.#newRunner();
  }

  // --- calls ---------------------------------------------------------------------------------

  #runBatch(header: Header, content: Uint8Array, message: Message): Uint8Array | undefined {
    const { sender, subject, seed } = header;
    this.#transactions.forget(subject);
    const calls = readCalls(content);
    const out = this.#content.reset();
    let batch: Batch | undefined;
    let prefetched = 0;
    for (let index = 0; index < calls.length; index++) {
      const call = calls[index];
      if (index === prefetched) prefetched = this.#prefetch.run(calls, index);
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
      this.#run(call, sender, seed + index, this.#nowMs);
      const { buffer, length } = this.#replyWriter;
      if (batch === undefined) out.uint32(length).raw(buffer, length);
      else batch.replies.push(this.#replyWriter.copy());
      this.#serveReady();
    }
    return batch === undefined ? this.#repliesOf(out) : undefined;
  }

  /** Whether nothing in line is before a newcomer with this claim. */
  #mayPass(claim: Claim): boolean {
    if (this.#line.isEmpty) return true;
    return claim !== undefined && !claim.some((key) => this.#line.isClaimed(key));
  }

  /** The reply is in `#replyWriter`, until the next call. It is empty if the call is blocked. */
  #run(call: Call, sender: Bytes, seed: number, nowMs: number): void {
    this.#makeRoom();
    this.#keyspace.nowMs = nowMs;
    const { name, args, resp, blockedAs, isPart } = call;
    const isShort = this.#isShort && !isPart;
    const reply = this.#runner.start(name, args, seed, blockedAs !== 0, isShort);
    if (reply !== BLOCKED) this.#encode(reply, resp);
    else if (!this.#mail.has(sender)) this.#encode(UNKNOWN_GATEWAY, resp);
    else this.#block(call, sender, nowMs);
  }

  #encode(reply: Reply, resp: 2 | 3): void {
    this.#replyWriter.clear();
    this.#replyWriter.write(reply, resp);
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
    this.#run(call, sender, seed + index, nowMs);
    batch.replies[index] = this.#replyWriter.copy();
    if (--batch.missing > 0) return;
    const out = this.#content.reset();
    for (const reply of batch.replies) out.uint32(reply!.length).raw(reply!);
    this.#replyLater(batch.id, this.#repliesOf(out));
  }

  /** To the calls of a message. */
  #repliesOf(out: ByteWriter): Uint8Array {
    const content = out.written();
    if (content.length < REPLY_BYTES_MAX) return content;
    return storeLongReplies(content, (reply) =>
      this.#parcels.store(Buffer.from(reply), this.#nowMs),
    );
  }

  // --- blocked calls -------------------------------------------------------------------------

  /** The call has found nothing: its reply comes by mail. */
  #block(call: Call, gateway: Bytes, nowMs: number): void {
    const { keys, timeoutMs, timedOut, args = call.args } = this.#runner.wait!;
    this.#encode(timedOut, call.resp);
    this.#blocked.add({
      gateway,
      call: args === call.args ? call : { ...call, args },
      keys,
      deadlineMs: timeoutMs === 0 ? Infinity : nowMs + timeoutMs,
      timedOut: this.#replyWriter.copy(),
    });
    this.#replyWriter.clear();
  }

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
    if (reply === BLOCKED) return;
    this.#encode(reply, resp);
    this.#unblocked(blocked, this.#replyWriter.written());
  }

  #unblocked(blocked: BlockedCall, reply: Uint8Array): void {
    this.#blocked.remove(blocked);
    const { blockedAs } = blocked.call;
    this.#mail.post(blocked.gateway, { type: 'unblocked', blockedAs, reply }, this.#nowMs);
  }

  /** @returns the reply of a call that has timed out; empty if the call was not blocked */
  #unblock(gateway: Bytes, blockedAs: number): Uint8Array {
    const blocked = this.#blocked.get(gateway, blockedAs);
    if (blocked === undefined) return NOTHING;
    this.#blocked.remove(blocked);
    return blocked.timedOut;
  }

  // --- transactions --------------------------------------------------------------------------

  #prepare(header: Header, content: Uint8Array, message: Message): Uint8Array | undefined {
    const preparation = readPreparation(content);
    const transaction = this.#transactions.open(header, preparation, message.id, this.#nowMs);
    const isFirst = this.#transactions.claim(transaction);
    return isFirst ? this.#prepared(transaction) : undefined;
  }

  /** The reply once the transaction is first on all its keys. */
  #prepared(transaction: Transaction): Uint8Array {
    this.#transactions.hold(transaction, this.#nowMs);
    this.#makeRoom();
    const prepared = this.#transactions.prepared(transaction, this.#isShort);
    writePrepared(this.#content.reset(), prepared);
    return this.#content.written();
  }

  #decide({ subject, sender, seed }: Header, content: Uint8Array): Uint8Array {
    const transaction = this.#transactions.get(subject);
    let replies: Uint8Array[] | undefined;
    if (transaction !== undefined) {
      const { writes, calls } = readDecision(content);
      this.#transactions.write(transaction, writes);
      replies = calls.map((call, index) => {
        this.#run(call, sender, seed + index, transaction.nowMs);
        return this.#replyWriter.copy();
      });
      this.#end(transaction);
    }
    writeDecided(this.#content.reset(), replies);
    return this.#content.copy();
  }

  #abort(id: Bytes): Uint8Array {
    const transaction = this.#transactions.get(id);
    if (transaction === undefined) return NOTHING;
    // Then its prepare has no reply yet.
    if (this.#transactions.isWaiting(transaction)) {
      writePrepared(this.#content.reset(), undefined);
      this.#replyLater(transaction.message, this.#content.written());
    }
    this.#end(transaction);
    return NOTHING;
  }

  #end(transaction: Transaction): void {
    this.#parcels.take(uploadOfTransaction(transaction.id));
    this.#goOn(this.#transactions.end(transaction));
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
      discovers: false,
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
