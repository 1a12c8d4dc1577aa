/** `memory/fabric` over the real libfabric: what is promised of connections, writes, reads and registrations. */
import { readdirSync, readSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type Connection,
  DELIVERY_COMPLETE,
  NO_COMPLETION,
  REPORT_COMPLETION,
} from '../../../src/memory/fabric/connection.js';
import { Fabric } from '../../../src/memory/fabric/fabric.js';
import { Sockets } from '../../../src/memory/fabric/sockets.js';
import { wake } from '../../../src/memory/fabric/waiting.js';
import { bytesOf, LOOPBACK, type Memory, memoryOf, NOTHING, Pair, Witness } from './pair.js';
import { needLibfabric } from './present.js';

let pair: Pair;

beforeEach((context) => {
  needLibfabric(context);
  pair = new Pair();
});
afterEach(() => pair?.close());

const descriptors = (): number => readdirSync('/proc/self/fd').length;

test('a worker can be the one that loads the library, and its environment reaches it', async () => {
  const script = `
    const { workerData, parentPort } = require('node:worker_threads');
    import(workerData).then(({ libfabric }) => {
      const { system } = libfabric();
      parentPort.postMessage(system.func('getenv', 'str', ['str'])('IPATH_NO_BACKTRACE'));
    });`;
  const built = new URL('../../../dist/memory/fabric/libfabric.js', import.meta.url).href;
  const worker = new Worker(script, { eval: true, workerData: built, env: {} });
  expect(await new Promise((resolve) => worker.once('message', resolve))).toBe('1');
  await worker.terminate();
});

test('another thread ends a wait, or the next one', () => {
  const { client } = pair;
  wake(client.wakeDescriptor);
  wake(client.wakeDescriptor);
  const FOREVER_US = 3600e6;
  client.wait(FOREVER_US);
  // Both were taken.
  expect(() => readSync(client.wakeDescriptor, new Uint8Array(8))).toThrow('EAGAIN');
});

describe('connecting', () => {
  test('carries data both ways', () => {
    pair.close();
    pair = new Pair((request) => request.accept(bytesOf('welcome')));
    pair.connect(bytesOf('hello'));
    pair.pollUntil(() => pair.clientWitness.heard.length > 0);
    expect(pair.serverWitness.heard).toEqual(['requested hello', 'connected']);
    expect(pair.clientWitness.heard).toEqual(['connected welcome']);
  });

  test('a rejection carries data, so a challenge needs no connection', () => {
    const proof = bytesOf('proof');
    pair.close();
    pair = new Pair((request) => {
      if (Buffer.compare(request.data, proof) === 0) return request.accept(bytesOf('welcome'));
      request.reject(bytesOf('challenge'));
      return undefined;
    });
    pair.connect(bytesOf('hello'));
    pair.pollUntil(() => pair.clientWitness.heard.length === 1);
    pair.connect(proof);
    pair.pollUntil(() => pair.clientWitness.heard.length === 2);
    expect(pair.clientWitness.heard).toEqual(['refused challenge', 'connected welcome']);
  });

  test('takes as much data as it says, and no more', () => {
    pair.connect(new Uint8Array(256).fill(65));
    pair.pollUntil(() => pair.clientWitness.heard.length > 0);
    expect(pair.serverWitness.heard[0]).toBe(`requested ${'A'.repeat(256)}`);
    expect(() => pair.connect(new Uint8Array(257))).toThrow('At most 256 bytes');
  });

  test('is refused where nobody listens', () => {
    const nowhere = Fabric.open({ address: LOOPBACK });
    const port = nowhere.listen(0);
    nowhere.close();
    const connection = pair.client.connect(LOOPBACK, port, NOTHING);
    pair.pollUntil(() => pair.clientWitness.heard.length > 0);
    expect(pair.clientWitness.heard).toEqual(['refused']);
    expect(connection.state).toBe('ended');
  });

  test('tells whose port is taken and which address is not ours', () => {
    const other = Fabric.open({ address: LOOPBACK });
    const elsewhere = Fabric.open({ address: '192.0.2.1' });
    const unavailable = { code: 'TRAM_ADDRESS_UNAVAILABLE' };
    try {
      expect(() => other.listen(pair.port)).toThrow(expect.objectContaining(unavailable));
      expect(() => elsewhere.listen(0)).toThrow(expect.objectContaining(unavailable));
      expect(() => elsewhere.connect(LOOPBACK, pair.port, NOTHING)).toThrow(
        expect.objectContaining(unavailable),
      );
      expect(() => Fabric.open({ address: 'localhost' })).toThrow('Expected an IPv4 address');
      expect(() => Fabric.open({ address: LOOPBACK, provider: 'none' })).toThrow(
        expect.objectContaining(unavailable),
      );
    } finally {
      other.close();
      elsewhere.close();
    }
  });

  test('leaves nothing behind, however often', () => {
    pair.connectFully().close();
    pair.pollUntil(() => pair.serverWitness.heard.includes('closed'));
    const before = descriptors();
    for (let i = 0; i < 500; i++) {
      const connection = pair.connectFully();
      if (i % 2 === 0) connection.close();
      else pair.serverWitness.accepted.at(-1)!.close();
      pair.pollUntil(() =>
        i % 2 === 0
          ? pair.serverWitness.accepted.at(-1)!.state === 'ended'
          : connection.state === 'ended',
      );
    }
    expect(descriptors()).toBe(before);
  });

  test('leaves nothing behind if it fails half-way', () => {
    const before = descriptors();
    const find = vi.spyOn(Sockets.prototype, 'find').mockImplementation(() => {
      throw new Error('too many open files');
    });
    try {
      expect(() => pair.connect()).toThrow('too many open files');
    } finally {
      find.mockRestore();
    }
    expect(descriptors()).toBe(before);
  });

  test('closing a fabric gives everything back', () => {
    const before = descriptors();
    const another = new Pair();
    const connection = another.connectFully();
    memoryOf(another.server, 4096, 'remote');
    another.close();
    another.close();
    expect(connection.state).toBe('ended');
    expect(descriptors()).toBe(before);
  });
});

describe('operations', () => {
  let source: Memory;
  let target: Memory;

  beforeEach(() => {
    source = memoryOf(pair.client, 1 << 16, 'local');
    target = memoryOf(pair.server, 1 << 16, 'remote');
    source.bytes.forEach((_, i) => {
      source.bytes[i] = i % 251;
    });
  });

  test('what is posted while a connection is corked goes when it is uncorked, and nothing else waits', () => {
    const corked = pair.connectFully();
    const other = pair.connectFully();
    const extents = pair.client.createExtents();
    const write = (connection: Connection, at: number): void => {
      extents.clear();
      extents.add(source.registration, 100, target.registration, at, 4);
      connection.write(extents, NO_COMPLETION, 0);
    };
    const hasLanded = (at: number): boolean => target.bytes[at] === source.bytes[100];
    corked.cork();
    write(corked, 0);
    write(corked, 4);
    write(other, 8);
    pair.pollUntil(() => hasLanded(8));
    pair.pollFor(100);
    expect(hasLanded(0)).toBe(false);
    corked.uncork();
    pair.pollUntil(() => hasLanded(0) && hasLanded(4));
  });

  test('one write lands in as many places as are allowed', () => {
    const connection = pair.connectFully();
    const extents = pair.client.createExtents();
    const { extentsMax } = pair.client;
    expect(extentsMax).toBe(4);
    for (let i = 0; i < extentsMax; i++) {
      extents.add(source.registration, i * 100, target.registration, i * 5000, 10 + i);
    }
    expect(() => extents.add(source.registration, 0, target.registration, 0, 1)).toThrow('at most');
    expect(connection.write(extents, REPORT_COMPLETION | DELIVERY_COMPLETE, 7)).toBe(true);
    pair.pollUntil(() => pair.clientWitness.heard.includes('completed 7'));
    const expected = new Uint8Array(1 << 16);
    for (let i = 0; i < extentsMax; i++) {
      expected.set(source.bytes.subarray(i * 100, i * 100 + 10 + i), i * 5000);
    }
    expect(Buffer.compare(target.bytes, expected)).toBe(0);
  });

  test('a read returns what is there', () => {
    const connection = pair.connectFully();
    target.bytes.set(bytesOf('there'), 1234);
    const extents = pair.client.createExtents();
    extents.add(source.registration, 8, target.registration, 1234, 5);
    connection.read(extents, REPORT_COMPLETION, 0xffffffff);
    pair.pollUntil(() => pair.clientWitness.heard.includes(`completed ${0xffffffff}`));
    expect(Buffer.from(source.bytes.subarray(8, 13)).toString()).toBe('there');
  });

  test('what is not to be told is not', () => {
    const connection = pair.connectFully();
    const extents = pair.client.createExtents();
    extents.add(source.registration, 0, target.registration, 0, 64);
    connection.write(extents, 0, 1);
    connection.write(extents, REPORT_COMPLETION | DELIVERY_COMPLETE, 2);
    pair.pollUntil(() => pair.clientWitness.heard.includes('completed 2'));
    expect(pair.clientWitness.heard).not.toContain('completed 1');
  });

  test('completions come in the order of posting', () => {
    const connection = pair.connectFully();
    const posted = 1000;
    const extents = pair.client.createExtents();
    for (let i = 0; i < posted; i++) {
      extents.clear();
      extents.add(source.registration, 0, target.registration, 0, i % 3 === 0 ? 1 << 16 : 64);
      if (i % 5 === 0) connection.read(extents, REPORT_COMPLETION, i);
      else connection.write(extents, REPORT_COMPLETION | DELIVERY_COMPLETE, i);
    }
    const heard = (): string[] => pair.clientWitness.heard.slice(1);
    pair.pollUntil(() => heard().length === posted);
    expect(heard()).toEqual(Array.from({ length: posted }, (_, i) => `completed ${i}`));
  });

  test.each([
    ['with a key that nobody has', (key: number) => key ^ 1, 0],
    ['beyond the end', (key: number) => key, 1 << 16],
  ])('a write %s is refused and lands nowhere', (_, keyOf, at) => {
    const connection = pair.connectFully();
    const { base, keyLow, keyHigh } = target.registration;
    const extents = pair.client.createExtents();
    extents.add(source.registration, 8, { base, keyLow: keyOf(keyLow), keyHigh }, at, 8);
    connection.write(extents, REPORT_COMPLETION | DELIVERY_COMPLETE, 1);
    pair.pollUntil(() => connection.state === 'ended');
    expect(pair.clientWitness.heard).toEqual(['connected', 'failed']);
    expect(target.bytes.every((byte) => byte === 0)).toBe(true);
  });

  test('a key opens nothing after its registration has ended', () => {
    const connection = pair.connectFully();
    const extents = pair.client.createExtents();
    extents.add(source.registration, 8, target.registration, 0, 8);
    target.registration.close();
    connection.write(extents, REPORT_COMPLETION | DELIVERY_COMPLETE, 1);
    pair.pollUntil(() => connection.state === 'ended');
    expect(target.bytes.every((byte) => byte === 0)).toBe(true);
  });

  test('what is outstanding when a connection is closed is not told of', () => {
    const connection = pair.connectFully();
    const extents = pair.client.createExtents();
    extents.add(source.registration, 0, target.registration, 0, 1 << 16);
    for (let i = 0; i < 50; i++)
      connection.write(extents, REPORT_COMPLETION | DELIVERY_COMPLETE, i);
    connection.close();
    pair.pollUntil(() => pair.serverWitness.heard.includes('closed'));
    pair.pollFor(200);
    expect(pair.clientWitness.heard).toEqual(['connected']);
    expect(() => connection.write(extents, REPORT_COMPLETION, 0)).toThrow("is ended can't be used");
  });

  test('every registration has another key', () => {
    const keys = Array.from({ length: 100 }, () => {
      const registration = pair.server.register(target.registration.address, 4096, 'remote');
      return `${registration.keyHigh}:${registration.keyLow}`;
    });
    expect(new Set(keys).size).toBe(100);
  });
});

describe('waiting', () => {
  const A_MINUTE_US = 60e6;

  test('ends with a request, and with what a peer writes', () => {
    const connection = pair.connect();
    pair.client.poll(pair.clientWitness);
    while (connection.state === 'connecting') {
      pair.server.wait(A_MINUTE_US);
      pair.server.poll(pair.serverWitness);
      for (let i = 0; i < 10; i++) pair.client.poll(pair.clientWitness);
    }
    expect(connection.state).toBe('open');
  });

  test('ends when the time is over', () => {
    const witness = new Witness();
    for (let i = 0; i < 10; i++) {
      pair.server.wait(1000);
      pair.server.poll(witness);
    }
    expect(witness.heard).toEqual([]);
  });
});
