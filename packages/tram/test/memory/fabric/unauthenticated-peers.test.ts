/** Unauthenticated peers may send anything to the port, or nothing. Other peers must not notice. */
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bytesOf, LOOPBACK, Pair } from './pair.js';
import { needLibfabric } from './present.js';

/** A request as the provider `tcp` makes it, that announces eleven bytes of data. */
const HEAD = Buffer.from('0300000b00000000000000000000000000000000000000000100000000000000', 'hex');
const DATA = bytesOf('hello world');

let pair: Pair;
let peers: UnauthenticatedPeer[] = [];

beforeEach((context) => {
  needLibfabric(context);
  pair = new Pair();
});
afterEach(() => {
  for (const { socket } of peers) socket.destroy();
  peers = [];
  pair?.close();
});

class UnauthenticatedPeer {
  readonly socket: Socket;
  hasEnded = false;

  constructor(sends?: Uint8Array) {
    this.socket = connect(pair.port, LOOPBACK).resume();
    // It does not matter which side closes the connection first.
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.hasEnded = true;
    });
    if (sends !== undefined) this.socket.write(sends);
    peers.push(this);
  }
}

const descriptors = (): number => readdirSync('/proc/self/fd').length;

/** Poll, and let the unauthenticated peers act. */
async function liveFor(turns: number): Promise<void> {
  for (let i = 0; i < turns; i++) {
    pair.pollFor(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function live(isDone: () => boolean): Promise<void> {
  const giveUpAtMs = performance.now() + 30_000;
  while (!isDone() && performance.now() < giveUpAtMs) await liveFor(1);
  expect(isDone()).toBe(true);
}

test('the head that we know is that of a request', async () => {
  new UnauthenticatedPeer(Buffer.concat([HEAD, DATA]));
  await live(() => pair.serverWitness.heard.includes('requested hello world'));
});

test('a request with more data than there may be is cut', async () => {
  const request = Buffer.concat([HEAD, Buffer.alloc(0xffff, 'A')]);
  request.writeUInt16BE(0xffff, 2);
  new UnauthenticatedPeer(request);
  await live(() => pair.serverWitness.heard.includes(`requested ${'A'.repeat(256)}`));
});

describe('other peers do not notice', () => {
  test.each([
    ['noise', Buffer.from('GET / HTTP/1.1\r\n\r\n'.repeat(100))],
    ['a single byte', Buffer.from([3])],
  ])('%s: the connection is closed', async (_, bytes) => {
    const connection = pair.connectFully();
    const many = Array.from({ length: 50 }, () => new UnauthenticatedPeer(bytes));
    await live(() => many.every(({ hasEnded }) => hasEnded));
    expect(connection.state).toBe('open');
    expect(pair.serverWitness.heard.filter((what) => what.startsWith('requested'))).toHaveLength(1);
    pair.connectFully();
  });

  test('a thousand unauthenticated peers that send nothing cost no descriptor', async () => {
    const before = descriptors();
    const many = Array.from({ length: 1000 }, () => new UnauthenticatedPeer());
    await live(() => many.every(({ socket }) => !socket.connecting));
    await liveFor(20);
    expect(descriptors()).toBe(before + many.length);
    pair.connectFully();
  });

  test('peers that stop in the middle of a request do not block us, and are disconnected', async () => {
    const connection = pair.connectFully();
    const many = Array.from({ length: 20 }, () => new UnauthenticatedPeer(HEAD));
    await live(() => many.every(({ socket }) => !socket.connecting));
    await liveFor(100);
    pair.server.closeUnauthenticated();
    await liveFor(10);
    pair.server.closeUnauthenticated();
    await live(() => many.every(({ hasEnded }) => hasEnded));
    expect(connection.state).toBe('open');
    expect(pair.serverWitness.accepted[0].state).toBe('open');
    pair.connectFully();
  });
});
