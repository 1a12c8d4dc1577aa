/** All replicas of a shard evict the same keys, also one that began with a snapshot. And what a shard refuses. */

import fc from 'fast-check';
import type { Deferred, ServiceContext } from 'tram-multicast';
import { describe, expect, test } from 'vitest';
import { ByteWriter } from '../../src/engine/bytes.js';
import { POLICIES } from '../../src/engine/eviction.js';
import {
  readPrepared,
  readReplies,
  writeCall,
  writePreparation,
} from '../../src/messages/contents.js';
import {
  KIND,
  type Kind,
  readReply,
  tellsShort,
  writeMessage,
} from '../../src/messages/message.js';
import { Shard } from '../../src/shard/shard.js';

const DEFERRED: Deferred = Symbol('deferred') as unknown as Deferred;

/** A message, or a tick if there is no payload. */
interface Delivery {
  readonly id: string;
  readonly payload?: Uint8Array;
  readonly nowMs: number;
}

class Replica {
  readonly shard = new Shard();
  /** Each with the id of its message. */
  readonly replies: string[] = [];

  deliver({ id, payload, nowMs }: Delivery): void {
    const context: ServiceContext = {
      group: 0,
      member: 0,
      nowMs,
      defer: () => DEFERRED,
      reply: (id, reply = new Uint8Array(0)) => this.#reply(id, reply),
    };
    if (payload === undefined) this.shard.tick(context);
    else {
      const message = { id, payload: Uint8Array.from(payload), destinations: [0] };
      const reply = this.shard.deliver(message, context);
      if (reply instanceof Uint8Array) this.#reply(id, reply);
    }
  }

  #reply(id: string, reply: Uint8Array): true {
    this.replies.push(`${id} ${Buffer.from(reply).toString('latin1')}`);
    return true;
  }

  get lastReply(): Buffer {
    const text = this.replies.at(-1)!;
    return Buffer.from(text.slice(text.indexOf(' ') + 1), 'latin1');
  }

  /** The keys with all that belongs to them. */
  keys(): string {
    const bytes = Buffer.concat([...this.shard.snapshot()]);
    return bytes.toString('latin1', 4 + bytes.readUInt32LE(0));
  }
}

/** Writes messages as a gateway does. */
class Writer {
  nowMs = 1_700_000_000_000;
  /** Transactions that have not ended, the oldest first. */
  readonly open: string[] = [];
  #last = 0;

  message(kind: Kind, subject: string, content: Uint8Array): Delivery {
    const seed = ++this.#last;
    const { nowMs } = this;
    const header = { kind, stampMs: nowMs, seed, shards: 1, sender: 'g', subject };
    const payload = writeMessage(new ByteWriter(), header, [{ group: 0, content }]);
    return { id: `m${seed}`, payload: Uint8Array.from(payload), nowMs };
  }

  run(lines: readonly string[], isPart = false): Delivery {
    const writer = new ByteWriter();
    for (const line of lines) {
      const [name, ...args] = line.split(' ');
      writeCall(writer, { name, args, resp: 2, blockedAs: 0, isPart });
    }
    return this.message(KIND.batch, '', writer.written());
  }

  prepare(id: string, keys: readonly string[], isWhole = false): Delivery {
    const writer = new ByteWriter();
    const claims = keys.map((key) => ({ key, need: 1 }));
    writePreparation(writer, { groups: [0], isWhole, keys: claims });
    return this.message(KIND.prepare, id, writer.written());
  }

  newId(): string {
    return `t${++this.#last}`;
  }

  abort(id: string): Delivery {
    return this.message(KIND.abort, id, new Uint8Array(0));
  }

  wait(ms: number): Delivery {
    this.nowMs += ms;
    return { id: '', nowMs: this.nowMs };
  }
}

const key = fc.integer({ min: 0, max: 60 }).map((i) => `k${i}`);
const pair = fc.tuple(key, fc.nat(300));
const policy = fc.constantFrom(...POLICIES);
const command = fc.oneof(
  { weight: 8, arbitrary: key.map((one) => `get ${one}`) },
  { weight: 8, arbitrary: pair.map(([one, n]) => `set ${one} ${'x'.repeat(n)}`) },
  { weight: 8, arbitrary: pair.map(([one, n]) => `set ${one} value EX ${n + 1}`) },
  { weight: 2, arbitrary: key.map((one) => `append ${one} more`) },
  { weight: 1, arbitrary: key.map((one) => `persist ${one}`) },
  { weight: 1, arbitrary: key.map((one) => `del ${one}`) },
  { weight: 1, arbitrary: fc.tuple(key, key).map(([a, b]) => `rename ${a} ${b}`) },
  { weight: 1, arbitrary: key.map((one) => `object idletime ${one}`) },
  { weight: 1, arbitrary: key.map((one) => `object freq ${one}`) },
);

/** What happens next, as a function of the writer. */
const step: fc.Arbitrary<(writer: Writer) => Delivery> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .array(command, { minLength: 1, maxLength: 8 })
      .map((lines) => (writer: Writer) => writer.run(lines)),
  },
  { weight: 3, arbitrary: fc.nat(90_000).map((ms) => (writer: Writer) => writer.wait(ms)) },
  {
    weight: 1,
    arbitrary: policy.map(
      (one) => (writer: Writer) => writer.run([`.configure 1 maxmemory-policy ${one}`]),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.array(key, { minLength: 1, maxLength: 4 }).map((keys) => (writer: Writer) => {
      const id = writer.newId();
      writer.open.push(id);
      return writer.prepare(id, keys);
    }),
  },
  {
    weight: 2,
    arbitrary: fc.constant((writer: Writer) => writer.abort(writer.open.shift() ?? 'none')),
  },
);

describe('replicas of a shard', () => {
  test('evict the same keys, from the beginning or from a snapshot', () => {
    let evicted = 0;
    let afterSnapshots = 0;
    const steps = fc.array(step, { minLength: 20, maxLength: 80 });
    const property = fc.property(policy, steps, fc.nat(), fc.nat(30), (first, all, at, later) => {
      const writer = new Writer();
      const deliveries = [
        writer.run([`.configure 1 maxmemory 6000 maxmemory-policy ${first}`]),
        ...all.map((next) => next(writer)),
      ];
      const takenAt = 1 + (at % all.length);
      const count = (replica: Replica): number => {
        replica.deliver(writer.run(['.info']));
        return Number(replica.lastReply.toString().match(/:(\d+)\r\n$/)![1]);
      };

      const [replica, other] = [new Replica(), new Replica()];
      for (const delivery of deliveries) other.deliver(delivery);
      for (const delivery of deliveries.slice(0, takenAt)) replica.deliver(delivery);
      const before = replica.replies.length;
      // The snapshot begins here, and most of it is written later.
      const pieces = replica.shard.snapshot();
      const snapshot = [pieces.next().value as Uint8Array];
      for (const delivery of deliveries.slice(takenAt, takenAt + later)) replica.deliver(delivery);
      snapshot.push(...pieces);
      for (const delivery of deliveries.slice(takenAt + later)) replica.deliver(delivery);

      const restored = new Replica();
      restored.shard.restore(Buffer.concat(snapshot));
      for (const delivery of deliveries.slice(takenAt)) restored.deliver(delivery);

      expect(replica.replies).toEqual(other.replies);
      expect(restored.replies).toEqual(replica.replies.slice(before));
      expect(other.keys()).toBe(replica.keys());
      expect(restored.keys()).toBe(replica.keys());
      const total = count(replica);
      expect(count(restored)).toBe(total);
      evicted += total;
      if (later < deliveries.length - takenAt) afterSnapshots++;
    });
    fc.assert(property, { numRuns: 150, endOnFailure: true });
    // It is not all for nothing.
    expect(evicted).toBeGreaterThan(500);
    expect(afterSnapshots).toBeGreaterThan(15);
  });
});

test('a replica that was restored counts the uses of transactions as the others do', () => {
  const writer = new Writer();
  const replica = new Replica();
  replica.deliver(writer.run(['.configure 1 maxmemory-policy allkeys-lfu', 'set k x']));
  const restored = new Replica();
  restored.shard.restore(Buffer.concat([...replica.shard.snapshot()]));
  const prepare = writer.prepare('t', ['k']);
  for (const each of [replica, restored]) each.deliver(prepare);
  expect(restored.replies).toEqual(replica.replies.slice(1));
  expect(restored.keys()).toBe(replica.keys());
});

/** A shard that has a limit, and one gateway. */
function limited(policy: string) {
  const writer = new Writer();
  const replica = new Replica();
  const run = (line: string, isPart = false): string => {
    replica.deliver(writer.run([line], isPart));
    return readReplies(readReply(replica.lastReply) as Buffer)[0].toString();
  };
  run(`.configure 1 maxmemory 3000 maxmemory-policy ${policy}`);
  const fill = (): void => {
    for (let i = 0; i < 30; i++) run(`set key:${i} ${'x'.repeat(200)}`);
  };
  return { writer, replica, run, fill };
}

const OOM = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

describe('a shard whose memory is short', () => {
  test('refuses what needs more, but no part of what several shards do, and says so with each reply', () => {
    const { run, fill, replica } = limited('noeviction');
    expect(run('set a x')).toBe('+OK\r\n');
    expect(tellsShort(replica.lastReply)).toBe(false);
    fill();
    expect(tellsShort(replica.lastReply)).toBe(true);
    expect(run('set b x')).toBe(OOM);
    expect(run('get a')).toBe('$1\r\nx\r\n');
    expect(tellsShort(replica.lastReply)).toBe(true);
    expect(run('set b x', true)).toBe('+OK\r\n');
    expect(run('flushall')).toBe('+OK\r\n');
    expect(tellsShort(replica.lastReply)).toBe(false);
    expect(run('set b x')).toBe('+OK\r\n');
  });

  test('does not evict keys that a transaction holds until it ends', () => {
    const { run, fill, replica, writer } = limited('allkeys-lru');
    run('set held x');
    writer.wait(10_000);
    replica.deliver(writer.prepare('t', ['held']));
    replica.deliver(writer.prepare('u', ['held']));
    fill();
    // A replica that is restored knows of them too.
    replica.shard.restore(Buffer.concat([...replica.shard.snapshot()]));
    fill();
    replica.deliver(writer.abort('t'));
    fill();
    expect(replica.keys()).toContain('held');
    replica.deliver(writer.abort('u'));
    fill();
    expect(run('exists held')).toBe(':0\r\n');
  });

  test('evicts nothing while a transaction holds everything', () => {
    const { run, fill, replica, writer } = limited('allkeys-lru');
    fill();
    replica.deliver(writer.prepare('t', [], true));
    replica.deliver(writer.run(['.configure 1 maxmemory 1000']));
    expect(tellsShort(replica.lastReply)).toBe(true);
    replica.deliver(writer.abort('t'));
    expect(tellsShort(replica.lastReply)).toBe(false);
    expect(run('dbsize')).toBe(':2\r\n');
  });

  test('tells a transaction', () => {
    const { fill, replica, writer } = limited('volatile-lru');
    const isShort = (id: string): boolean => {
      replica.deliver(writer.prepare(id, ['a']));
      const prepared = readPrepared(readReply(replica.lastReply) as Buffer)!;
      replica.deliver(writer.abort(id));
      return prepared.isShort;
    };
    expect(isShort('t')).toBe(false);
    fill();
    expect(isShort('u')).toBe(true);
  });
});
