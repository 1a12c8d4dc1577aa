import type { Deferred, ServiceContext } from 'tram-multicast';
import { describe, expect, test } from 'vitest';
import { ByteWriter } from '../../src/engine/bytes.js';
import { Random } from '../../src/engine/random.js';
import {
  readReplies,
  writeCall,
  writeDecision,
  writePreparation,
} from '../../src/messages/contents.js';
import { readMail } from '../../src/messages/mail.js';
import { KIND, type Kind, readReply, writeMessage } from '../../src/messages/message.js';
import { Shard } from '../../src/shard/shard.js';

const DEFERRED: Deferred = Symbol('deferred') as unknown as Deferred;

/** One shard, which gets messages of gateways. */
class Script {
  nowMs = 1_700_000_000_000;
  /** By the id of the message. */
  readonly replies = new Map<string, Uint8Array>();
  #shard = new Shard();
  #last = 0;

  /** @returns the id of the message */
  send(gateway: string, kind: Kind, subject: string, content: Uint8Array | number): string {
    const id = `m${++this.#last}`;
    const header = { kind, stampMs: this.nowMs, seed: 1, shards: 1, sender: gateway, subject };
    const payload = writeMessage(new ByteWriter(), header, [{ group: 0, content }]);
    const reply = this.#shard.deliver({ id, payload, destinations: [0] }, this.#context());
    if (reply instanceof Uint8Array) this.replies.set(id, reply);
    return id;
  }

  /** The content of the reply; undefined if the message waits. */
  contentOf(id: string): Buffer | undefined {
    const reply = this.replies.get(id);
    return reply && (readReply(reply) as Buffer);
  }

  /** @returns the reply of a client's command, as text */
  run(gateway: string, line: string, blockedAs = 0): string {
    return this.runTogether(gateway, [line], blockedAs)[0];
  }

  /** By one message. */
  runTogether(gateway: string, lines: readonly string[], blockedAs = 0): string[] {
    const writer = new ByteWriter();
    for (const line of lines) {
      const [name, ...args] = line.split(' ');
      writeCall(writer, { name, args, resp: 2, blockedAs });
    }
    const id = this.send(gateway, KIND.batch, '', writer.written());
    return readReplies(this.contentOf(id)!).map(String);
  }

  listen(gateway: string, acknowledged: number): string {
    return this.send(gateway, KIND.listen, '', new ByteWriter().float64(acknowledged).written());
  }

  mailOf(id: string) {
    const content = this.contentOf(id);
    return content && readMail(content);
  }

  prepare(gateway: string, id: string, ...keys: string[]): string {
    const writer = new ByteWriter();
    const claims = keys.map((key) => ({ key, need: 1 }));
    writePreparation(writer, { groups: [0], isWhole: false, keys: claims });
    return this.send(gateway, KIND.prepare, id, writer.written());
  }

  upload(gateway: string, transaction: string, number: number, bytes: Uint8Array): void {
    const content = new ByteWriter().float64(number).uint32(0).uint32(bytes.length).raw(bytes);
    this.send(gateway, KIND.upload, transaction, content.written());
  }

  wait(ms: number): void {
    this.nowMs += ms;
    this.#shard.tick(this.#context());
  }

  restart(): void {
    const snapshot = Buffer.concat([...this.#shard.snapshot()].map((piece) => Buffer.from(piece)));
    this.#shard = new Shard();
    this.#shard.restore(snapshot);
  }

  abandon(id: string): void {
    this.#shard.abandoned(id);
  }

  #context(): ServiceContext {
    return {
      group: 0,
      member: 0,
      nowMs: this.nowMs,
      defer: () => DEFERRED,
      reply: (id, reply = new Uint8Array(0)) => {
        this.replies.set(id, Buffer.from(reply));
        return true;
      },
    };
  }
}

const DECISION = (() => {
  const writer = new ByteWriter();
  const call = { name: 'set', args: ['k', 'decided'], resp: 2, blockedAs: 0 } as const;
  writeDecision(writer, { writes: [], calls: [call] });
  return writer.copy();
})();

describe('a shard', () => {
  test('replies to many calls of one message as it does to one at a time', () => {
    const random = new Random(1);
    const key = (): string => `k${Math.floor(random.next() * 50)}`;
    // Keys come, go and take the places of others in between.
    const commands = [
      () => `set ${key()} ${random.next()}`,
      () => `get ${key()}`,
      () => `del ${key()} ${key()}`,
      () => `mget ${key()} ${key()} ${key()}`,
      () => 'dbsize',
    ];
    const lines = Array.from({ length: 1000 }, (_, i) => commands[i % commands.length]());
    const alone = new Script();
    const expected = lines.map((line) => alone.run('g', line));
    expect(new Script().runTogether('g', lines)).toEqual(expected);
  });

  test('tells who waits that a key has expired, although a transaction has noticed it', () => {
    const script = new Script();
    const hello = script.mailOf(script.listen('g', 0))!;
    const listener = script.listen('g', hello.upTo);
    script.run('g', 'psetex k 10 x');
    const version = script.run('g', '.versions k').match(/:(\d+)/)![1];
    expect(script.run('g', `.await k ${version}`, 1)).toBe('');
    script.nowMs += 20;
    script.prepare('g', 't', 'k');
    script.restart();
    script.send('g', KIND.abort, 't', new Uint8Array(0));
    expect(script.mailOf(listener)).toMatchObject({ notices: [{ type: 'unblocked' }] });
  });

  test('lets no call wait whose gateway it does not know', () => {
    const script = new Script();
    expect(script.run('g', 'blpop l 0', 1)).toMatch(/^-TRYAGAIN/);
    expect(script.run('g', 'rpush l x')).toBe(':1\r\n');
    expect(script.run('g', 'llen l')).toBe(':1\r\n');
  });

  test('tells a gateway that it was forgotten, although it has never had mail', () => {
    const script = new Script();
    const hello = script.mailOf(script.listen('g', 0))!;
    expect(hello.notices).toEqual([]);
    const listener = script.listen('g', hello.upTo);
    expect(script.run('g', 'blpop l 0', 1)).toBe('');
    script.abandon(listener);
    script.wait(11_000);
    expect(script.run('g', 'rpush l x')).toBe(':1\r\n');
    const again = script.listen('g', hello.upTo);
    expect(script.contentOf(again)).toEqual(Buffer.from([0]));
    expect(script.run('g', 'llen l')).toBe(':1\r\n');
  });

  test('keeps what a transaction has uploaded until it ends', () => {
    const script = new Script();
    script.prepare('g', 't', 'k');
    script.upload('g', 't', 1, DECISION);
    script.wait(120_000);
    script.restart();
    script.send('g', KIND.decide, 't', 1);
    expect(script.run('g', 'get k')).toBe('$7\r\ndecided\r\n');
  });

  test('carries out a transaction that claims none of its keys', () => {
    const script = new Script();
    script.prepare('g', 't');
    const decided = script.send('g', KIND.decide, 't', DECISION);
    expect(script.contentOf(decided)![0]).toBe(1);
    expect(script.run('g', 'get k')).toBe('$7\r\ndecided\r\n');
  });

  test('drops what a transaction has uploaded when it is aborted', () => {
    const script = new Script();
    script.prepare('g', 't', 'k');
    script.upload('g', 't', 1, DECISION);
    script.send('h', KIND.abort, 't', new Uint8Array(0));
    script.upload('g', 't', 1, DECISION);
    expect(script.contentOf(script.send('g', KIND.decide, 't', 1))).toHaveLength(0);
    expect(script.run('g', 'get k')).toBe('$-1\r\n');
  });

  test('asks the gateway of a transaction that takes long, and only then the others', () => {
    const script = new Script();
    const listen = (gateway: string): string =>
      script.listen(gateway, script.mailOf(script.listen(gateway, 0))!.upTo);
    let own = listen('g');
    const other = listen('h');
    script.prepare('g', 't', 'k');
    script.wait(2500);
    expect(script.mailOf(own)).toMatchObject({ notices: [{ type: 'overdue', transaction: 't' }] });
    own = script.listen('g', script.mailOf(own)!.upTo);
    script.send('g', KIND.keep, 't', new Uint8Array(0));
    script.wait(1500);
    expect(script.mailOf(own)).toBeUndefined();
    script.wait(1000);
    expect(script.mailOf(own)).toBeDefined();
    expect(script.mailOf(other)).toBeUndefined();
    script.wait(1500);
    expect(script.mailOf(other)).toMatchObject({ notices: [{ type: 'overdue' }] });
  });
});
