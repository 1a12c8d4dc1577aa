/** What the message-passing systems stand on: sets of groups, frames in any pieces, and sockets. */
import fc from 'fast-check';
import { highMask, lowMask } from 'tram-multicast/internal/protocol/overlay.js';
import { afterEach, describe, expect, test } from 'vitest';
import { FrameReader } from '../../src/baselines/passing/frame-reader.js';
import { encode, frameWords } from '../../src/baselines/passing/frames.js';
import { Kind, Message } from '../../src/baselines/passing/message.js';
import { memberAfter, sizeOf } from '../../src/baselines/passing/sets.js';
import { TcpNetwork } from '../../src/baselines/tcp/tcp-network.js';

const word = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const named = { client: fc.nat(), slot: fc.nat(), number: fc.nat() };
const anyMessage = fc.oneof(
  fc.record({
    ...named,
    kind: fc.constant(Kind.multicast),
    low: word,
    high: word,
    bytes: fc.uint8Array({ maxLength: 70 }),
  }),
  fc.record({
    ...named,
    kind: fc.constant(Kind.proposal),
    timestamp: fc.maxSafeNat(),
  }),
  fc.record({ ...named, kind: fc.constant(Kind.reply) }),
);
type Plain = typeof anyMessage extends fc.Arbitrary<infer T> ? T : never;

function messageOf(plain: Plain): Message {
  const { bytes, ...fields } = { bytes: new Uint8Array(0), ...plain };
  const padded = new Uint8Array(4 * Math.ceil(bytes.length / 4));
  padded.set(bytes);
  const payload = new Int32Array(padded.buffer);
  return Object.assign(new Message(), fields, { payload, payloadBytes: bytes.length });
}

function plainOf(message: Message): Plain {
  const { kind, client, slot, number, low, high, timestamp, payload, payloadAt } = message;
  if (kind === Kind.proposal) return { kind, client, slot, number, timestamp };
  if (kind !== Kind.multicast) return { kind: Kind.reply, client, slot, number };
  const at = payload.byteOffset + 4 * payloadAt;
  const bytes = new Uint8Array(payload.buffer, at, message.payloadBytes).slice();
  return { kind, client, slot, number, low, high, bytes };
}

describe('sets', () => {
  test('count and go through what is in them', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(63)), (groups) => {
        const low = groups.reduce((mask, group) => mask | lowMask(group), 0);
        const high = groups.reduce((mask, group) => mask | highMask(group), 0);
        const found: number[] = [];
        for (let g = memberAfter(low, high, -1); g >= 0; g = memberAfter(low, high, g)) {
          found.push(g);
        }
        expect(found).toEqual(groups.sort((a, b) => a - b));
        expect(sizeOf(low, high)).toBe(groups.length);
      }),
    );
  });
});

describe('frames', () => {
  test('come out as they went in, however they are cut', () => {
    fc.assert(
      fc.property(fc.array(anyMessage), fc.array(fc.integer({ min: 1, max: 50 })), (sent, cuts) => {
        const words = new Int32Array(sent.length * 30);
        const end = sent.reduce((at, plain) => encode(messageOf(plain), words, at), 0);
        const bytes = new Uint8Array(words.buffer, 0, end * 4);
        const received: Plain[] = [];
        const reader = new FrameReader((message) => received.push(plainOf(message)));
        let at = 0;
        for (const cut of cuts) {
          reader.push(bytes.subarray(at, at + cut));
          at += cut;
        }
        reader.push(bytes.subarray(at));
        expect(received).toEqual(sent);
      }),
    );
  });

  test('that can not be are noticed', () => {
    const reader = new FrameReader(() => undefined);
    expect(() => reader.push(new Uint8Array(8))).toThrow('a frame of 0 words');
  });

  test('take as many words as announced', () => {
    const message = messageOf({
      ...{ kind: Kind.multicast, client: 1, slot: 2, number: 3, low: 4, high: 5 },
      bytes: new Uint8Array(9),
    });
    expect(encode(message, new Int32Array(20), 2)).toBe(2 + frameWords(message));
  });
});

describe('sockets', () => {
  const open: TcpNetwork[] = [];
  const networkOf = (first: number, count: number): TcpNetwork => {
    const network = new TcpNetwork(first, count);
    open.push(network);
    return network;
  };
  afterEach(() => {
    for (const network of open.splice(0)) network.close();
  });

  test('carry any amount in both directions, in order', async () => {
    const [one, many] = [networkOf(0, 1), networkOf(1, 5)];
    const payload = new Int32Array(5000);
    const count = 2000;
    const message = Object.assign(new Message(), { payload, payloadBytes: 4 * payload.length });
    const receivedBy = (network: TcpNetwork, from: number) =>
      new Promise<void>((resolve) => {
        let next = 0;
        network.attach({
          receive: (sender, { number, payload, payloadAt }) => {
            expect([sender, number, payload[payloadAt]]).toEqual([from, next, next]);
            if (++next === count) resolve();
          },
        });
      });
    const received = [receivedBy(one, 1), receivedBy(many, 0)];
    await many.connect(0, await one.listen());
    for (let number = 0; number < count; number++) {
      payload.fill(number);
      many.send(0, message.about(0, 0, number));
      one.send(1 + (number % 5), message);
    }
    await Promise.all(received);
  });

  test('tell whom they can not reach', async () => {
    const gone = networkOf(0, 1);
    const port = await gone.listen();
    gone.close();
    await expect(networkOf(1, 1).connect(0, port)).rejects.toThrow(
      `can't connect to 0 at port ${port}: connect ECONNREFUSED`,
    );
  });

  test('do not send to strangers', () => {
    expect(() => networkOf(0, 1).send(1, new Message())).toThrow('no connection with 1');
  });
});
