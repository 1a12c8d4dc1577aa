/**
 * The part of a shard in transactions that gateways coordinate. A transaction claims keys. Once it is first on all of them, it *holds*
 * them: it learns what they have, and nothing else changes them until it is decided or aborted. If that takes too long, gateways are
 * told: its own may have died.
 */

import { ByteReader, ByteWriter } from '../engine/bytes.js';
import { decodeEntry, encodeEntry } from '../engine/codec.js';
import type { Keyspace } from '../engine/keyspace.js';
import {
  type Held,
  NEED,
  type Preparation,
  type Prepared,
  type Write,
} from '../messages/contents.js';
import type { Header } from '../messages/message.js';
import type { Bytes } from '../resp/reply.js';
import type { HeldKeys } from './held-keys.js';
import { claimInLine, type InLine, type Transaction } from './in-line.js';
import type { Line } from './line.js';
import type { Mailboxes } from './mailboxes.js';

/** How long a transaction may hold its keys before it is overdue: its gateway may have died. */
const HELD_MS = 2000;

/** How often gateways are told of an overdue transaction: first its own gateway, then all. */
const OVERDUE_EVERY_MS = 1000;

export class Transactions {
  readonly #open = new Map<Bytes, Transaction>();
  readonly #entry = new ByteWriter();

  constructor(
    private readonly keyspace: Keyspace,
    private readonly line: Line<InLine>,
    private readonly held: HeldKeys,
    private readonly mail: Mailboxes,
    state: readonly Transaction[] = [],
  ) {
    for (const transaction of state) {
      this.#open.set(transaction.id, transaction);
      if (isPrepared(transaction)) held.add(transaction);
    }
  }

  /** The transactions as snapshots store them. */
  get state(): readonly Transaction[] {
    return [...this.#open.values()];
  }

  has(id: Bytes): boolean {
    return this.#open.has(id);
  }

  get(id: Bytes): Transaction | undefined {
    return this.#open.get(id);
  }

  /** @param message  the message that prepares the transaction */
  open(
    { subject: id, sender: gateway }: Header,
    { groups, isWhole, keys }: Preparation,
    message: string,
    nowMs: number,
  ): Transaction {
    const transaction: Transaction = {
      type: 'transaction',
      id,
      gateway,
      keys,
      isWhole,
      groups,
      nowMs,
      message,
      tellMs: Infinity,
      isGatewayTold: false,
    };
    this.#open.set(id, transaction);
    return transaction;
  }

  /** @returns whether it is the first on all that it claims */
  claim(transaction: Transaction): boolean {
    // A transaction that is only for uploads claims nothing, and holds up no call.
    const claimsNothing = transaction.keys.length === 0 && !transaction.isWhole;
    return claimsNothing || this.line.join(transaction, claimInLine(transaction));
  }

  /** Whether something is before it in line. One that claims nothing is not in line. */
  isWaiting(transaction: Transaction): boolean {
    return this.line.has(transaction) && !this.line.isFirst(transaction);
  }

  /** The transaction is first on all that it claims: it holds its keys from now on. */
  hold(transaction: Transaction, nowMs: number): void {
    transaction.tellMs = nowMs + HELD_MS;
    this.held.add(transaction);
  }

  /** The values and versions of the keys that the transaction holds. */
  prepared({ keys, nowMs }: Transaction, isShort: boolean): Prepared {
    const { keyspace } = this;
    keyspace.nowMs = nowMs;
    keyspace.usage.begin();
    const held = keys.map(({ key, need }): Held => {
      const entry = need === NEED.version ? undefined : keyspace.find(key);
      const version = keyspace.versionOf(key);
      if (entry === undefined) return { version, entry };
      encodeEntry(entry, this.#entry.reset());
      return {
        version,
        entry: { bytes: this.#entry.copy(), staleness: keyspace.stalenessOf(key) },
      };
    });
    return { nowMs, isShort, countsFrequency: keyspace.usage.countsFrequency, held };
  }

  /** Changes keys that it holds. */
  write(transaction: Transaction, writes: readonly Write[]): void {
    if (this.isWaiting(transaction)) throw new Error('decided before it was prepared');
    const { keyspace } = this;
    keyspace.nowMs = transaction.nowMs;
    keyspace.usage.begin();
    for (const { key, entry } of writes) {
      if (entry === undefined) keyspace.delete(key);
      else {
        const { value, expiresAtMs } = decodeEntry(new ByteReader(entry.bytes));
        keyspace.set(key, value, expiresAtMs);
        keyspace.setStaleness(key, entry.staleness);
      }
    }
  }

  /** @returns what is first in line now */
  end(transaction: Transaction): readonly InLine[] {
    this.#open.delete(transaction.id);
    if (isPrepared(transaction)) this.held.delete(transaction);
    return this.line.leave(transaction);
  }

  /** Ends a transaction that was for uploads only. */
  forget(id: Bytes): void {
    this.#open.delete(id);
  }

  /** The gateway of the transaction has replied that it continues. */
  keep(id: Bytes, nowMs: number): void {
    const transaction = this.#open.get(id);
    if (!transaction?.isGatewayTold) return;
    transaction.isGatewayTold = false;
    transaction.tellMs = nowMs + HELD_MS;
  }

  tellOverdue(nowMs: number): void {
    for (const transaction of this.#open.values()) {
      if (transaction.tellMs <= nowMs) this.#tell(transaction, nowMs);
    }
  }

  #tell(transaction: Transaction, nowMs: number): void {
    transaction.tellMs = nowMs + OVERDUE_EVERY_MS;
    const { id, groups, gateway: own, isGatewayTold } = transaction;
    transaction.isGatewayTold = true;
    const isOwnEnough = !isGatewayTold && this.mail.has(own);
    for (const gateway of isOwnEnough ? [own] : this.mail.gateways()) {
      this.mail.post(gateway, { type: 'overdue', transaction: id, groups }, nowMs);
    }
  }
}

/** Whether it holds its keys, and its gateway knows what they have. */
function isPrepared({ tellMs }: Transaction): boolean {
  return tellMs !== Infinity;
}
