/** Messages are encoded as frames, and read back however the frames are cut. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameReader } from '../../../src/baselines/passing/frame-reader.js';
import { encode, frameWords } from '../../../src/baselines/passing/frames.js';
import { Kind, Message } from '../../../src/baselines/passing/message.js';

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

describe('frames', () => {
  test('are read back, however they are cut', () => {
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

  test('that are too short are refused', () => {
    const reader = new FrameReader(() => undefined);
    expect(() => reader.push(new Uint8Array(8))).toThrow('a frame of 0 words');
  });

  test('have the announced length', () => {
    const message = messageOf({
      ...{ kind: Kind.multicast, client: 1, slot: 2, number: 3, low: 4, high: 5 },
      bytes: new Uint8Array(9),
    });
    expect(encode(message, new Int32Array(20), 2)).toBe(2 + frameWords(message));
  });
});
