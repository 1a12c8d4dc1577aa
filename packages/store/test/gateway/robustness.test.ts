/** Clients that send anything at all: nobody else notices, and memory stays level. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Conversation } from '../../src/gateway/conversation.js';
import type { Line } from '../../src/gateway/line.js';
import { OK } from '../../src/resp/reply.js';
import { ReplyWriter } from '../../src/resp/writer.js';
import { PlainClient, type Started, startGateway } from './started.js';

let started: Started;
let witness: PlainClient;

beforeAll(async () => {
  started = await startGateway();
  witness = await PlainClient.connect(started.port);
});

afterAll(() => started.close());

/** Mulberry32. */
function randomBytes(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return (x ^ (x >>> 14)) >>> 0;
  };
}

async function expectUnharmed(): Promise<void> {
  expect(await witness.ask('set witness 1')).toEqual(OK);
  expect(await witness.ask('get witness')).toBe('1');
}

describe('malformed requests', () => {
  it('random bytes', async () => {
    const random = randomBytes(7);
    for (let i = 0; i < 200; i++) {
      const client = await PlainClient.connect(started.port);
      const length = random() % 2000;
      const alphabet = i % 2 === 0 ? undefined : '*$123\r\n -"\'GETgeto\\';
      let text = '';
      while (text.length < length) {
        const byte = random();
        text += alphabet ? alphabet[byte % alphabet.length] : String.fromCharCode(byte & 255);
      }
      client.sendRaw(text);
      if (i % 3 === 0) client.close();
      else {
        client.socket.end();
        await client.readAll();
      }
    }
    await expectUnharmed();
  });

  it('every command, with arguments that make no sense', async () => {
    const random = randomBytes(11);
    const names = (await witness.ask('command list')) as string[];
    const words = [
      '',
      '-1',
      '0',
      'x',
      '9223372036854775808',
      '(',
      'LEFT',
      '{a}',
      'WITHSCORES',
      '\xff',
    ];
    // They end the connection or hold others back, or wait.
    const left = new Set([
      'quit',
      'client',
      'config',
      'subscribe',
      'psubscribe',
      'ssubscribe',
      'reset',
    ]);
    const client = await PlainClient.connect(started.port);
    for (let round = 0; round < 5; round++) {
      for (const name of names) {
        if (left.has(name) || /^b[lrz]|^hello|^multi|^xread/.test(name)) continue;
        const args = Array.from({ length: random() % 6 }, () => words[random() % words.length]);
        client.send([name, ...args]);
        await client.read();
      }
    }
    client.close();
    await expectUnharmed();
  });

  it('half requests and huge lengths hold no memory', async () => {
    const clients: PlainClient[] = [];
    const before = process.memoryUsage().rss;
    for (let i = 0; i < 300; i++) {
      const client = await PlainClient.connect(started.port);
      client.sendRaw(
        ['*1000000\r\n', '*2\r\n$3\r\nGET\r\n$536870912\r\nx', '*2147483647\r\n$1\r\n'][i % 3],
      );
      clients.push(client);
    }
    await expectUnharmed();
    expect(process.memoryUsage().rss - before).toBeLessThan(200e6);
    for (const client of clients) client.close();
  });

  it('deep nesting is refused', async () => {
    const client = await PlainClient.connect(started.port);
    client.sendRaw('*1\r\n'.repeat(100_000));
    expect(await client.readAll()).toBe("-ERR Protocol error: expected '$', got '*'\r\n");
    await expectUnharmed();
  });

  it('what a browser posts is not carried out', async () => {
    for (const [lines, replies] of [
      ['POST / HTTP/1.1\r\n', ''],
      ['host: localhost\r\n', ''],
      ['PING\r\nHost: localhost\r\n', '+PONG\r\n'],
    ]) {
      const client = await PlainClient.connect(started.port);
      client.sendRaw(`${lines}SET posted 1\r\n`);
      expect(await client.readAll()).toBe(replies);
    }
    expect(await witness.ask('get posted')).toBeNull();
  });

  it('an endless line is refused', async () => {
    for (const start of ['', '*', '*1\r\n$']) {
      const client = await PlainClient.connect(started.port);
      client.sendRaw(start + '1'.repeat(200_000));
      expect(await client.readAll()).toMatch(/^-ERR Protocol error: too big/);
    }
    await expectUnharmed();
  });

  it('many of them at a time let others have their turns', async () => {
    let output = '';
    let isEnded = false;
    const writer = new ReplyWriter();
    const line: Line = {
      client: [...started.gateway.clients.values()][0],
      output: () => writer,
      flushSoon: () => {
        output += writer.written().toString();
        writer.clear();
      },
      isFull: () => false,
      end: () => {
        isEnded = true;
      },
      pauseReading: () => undefined,
      resumeReading: () => undefined,
    };
    const conversation = new Conversation(started.gateway, line);
    const replies = (): number => output.split('\r\n').length - 1;
    conversation.receive(Buffer.from('nonsense\r\n'.repeat(20_000)));
    expect(replies()).toBeLessThan(2000);
    conversation.receiveEnd();
    while (!isEnded) await new Promise((resolve) => setImmediate(resolve));
    expect(replies()).toBe(20_000);
  });

  it('a pipeline whose replies nobody reads holds little memory', async () => {
    const client = await PlainClient.connect(started.port);
    client.socket.pause();
    client.send(['set', 'large', 'x'.repeat(100_000)]);
    for (let i = 0; i < 1000; i++) client.send(['get', 'large']);
    const heldBytes = (): number =>
      Math.max(...[...started.gateway.clients.values()].map(({ outputBytes }) => outputBytes));
    while (heldBytes() < 1e6) await expectUnharmed();
    for (let i = 0; i < 10; i++) await expectUnharmed();
    expect(heldBytes()).toBeLessThan(10e6);
    client.close();
  });

  it('a pipeline goes on in pieces that fit its replies', async () => {
    const client = await PlainClient.connect(started.port);
    const value = 'x'.repeat(100_000);
    client.send(['set', 'large', value]);
    for (let i = 0; i < 200; i++) client.send(['get', i % 2 === 0 ? 'large' : 'small']);
    expect(await client.read()).toEqual(OK);
    for (let i = 0; i < 200; i++) expect(await client.read()).toBe(i % 2 === 0 ? value : null);
    client.close();
  });

  it('one byte at a time', async () => {
    const client = await PlainClient.connect(started.port);
    client.socket.setNoDelay(true);
    for (const byte of '*3\r\n$3\r\nSET\r\n$4\r\nslow\r\n$2\r\nok\r\n') {
      client.sendRaw(byte);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await client.read()).toEqual(OK);
    client.close();
  });
});

describe('many clients', () => {
  it('that say nothing cost little', async () => {
    const clients = await connectMany(2000);
    const before = process.memoryUsage();
    const more = await connectMany(2000);
    const after = process.memoryUsage();
    // Both ends are in this process.
    const bytes = after.heapUsed + after.external - before.heapUsed - before.external;
    expect(bytes / 2000).toBeLessThan(30_000);
    await expectUnharmed();
    for (const client of [...clients, ...more]) client.close();
    while (started.gateway.clients.size > 1)
      await new Promise((resolve) => setTimeout(resolve, 10));
  });

  it('that come and go leave nothing behind', async () => {
    const round = async (): Promise<void> => {
      const clients = await connectMany(200);
      await Promise.all(
        clients.map(async (client, i) => {
          await client.ask(`subscribe channel${i}`);
          client.send(['unsubscribe', `channel${i}`]);
          client.send(['multi']);
          client.send(['set', `come${i}`, 'x'.repeat(1000)]);
          if (i % 2 === 0) client.send(['blpop', 'nothing', '0']);
          client.close();
        }),
      );
      while (started.gateway.clients.size > 1)
        await new Promise((resolve) => setTimeout(resolve, 5));
    };
    for (let i = 0; i < 3; i++) await round();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 10; i++) await round();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50e6);
    expect(await witness.ask('pubsub channels')).toEqual([]);
    expect(started.gateway.pubsub.subscriptions.count('channel')).toBe(0);
    await expectUnharmed();
  });
});

async function connectMany(count: number): Promise<PlainClient[]> {
  const clients: PlainClient[] = [];
  for (let i = 0; i < count; i += 100) {
    const some = Array.from({ length: 100 }, () => PlainClient.connect(started.port));
    clients.push(...(await Promise.all(some)));
  }
  return clients;
}
