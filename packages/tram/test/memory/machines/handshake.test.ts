/** Authentication: proofs, replays, and garbage of unauthenticated peers. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CALLER, Handshake, REFUSAL } from '../../../src/memory/machines/handshake.js';

const SECRET = new Uint8Array(32).fill(7);
const DIGEST = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
const WELCOME = { base: 2 ** 40 + 5, keyLow: 0xfedcba98, keyHigh: 3, slot: 9, session: 0xffffffff };
/** The least that a provider can carry with a connection. */
const DATA_BYTES_MAX = 56;

function newSides(seconds = { now: 1000 }) {
  const dialer = new Handshake(SECRET, DIGEST);
  const listener = new Handshake(SECRET, DIGEST, () => seconds.now);
  return { dialer, listener, seconds };
}

function challengeOf(listener: Handshake, data: Uint8Array): Uint8Array {
  const verdict = listener.judge(data);
  if (!('refusal' in verdict)) throw new Error('it was let in without a proof');
  return verdict.refusal;
}

function refusalOf(listener: Handshake, data: Uint8Array): number | undefined {
  const verdict = listener.judge(data);
  return 'refusal' in verdict ? verdict.refusal[0] : undefined;
}

describe('handshake', () => {
  test('both sides learn who the other is, and what it tells', () => {
    const { dialer, listener } = newSides();
    const hello = dialer.newHello(CALLER.client, 513, 0x89abcdef);
    const challenge = challengeOf(listener, dialer.hello(hello));
    const answer = dialer.answer(hello, challenge)!;
    const verdict = listener.judge(answer);
    if ('refusal' in verdict) throw new Error('refused');
    expect(verdict.hello).toEqual(hello);
    const welcome = listener.welcome(verdict.said, WELCOME);
    expect(dialer.enter(answer, welcome)).toEqual(WELCOME);
    for (const data of [dialer.hello(hello), challenge, answer, welcome]) {
      expect(data.length).toBeLessThanOrEqual(DATA_BYTES_MAX);
    }
  });

  test('no bit of an answer or of a welcome can be changed', () => {
    const { dialer, listener } = newSides();
    const hello = dialer.newHello(CALLER.host, 2, 1);
    const answer = dialer.answer(hello, challengeOf(listener, dialer.hello(hello)))!;
    for (let bit = 0; bit < answer.length * 8; bit++) {
      expect(refusalOf(listener, flipped(answer, bit))).toBeGreaterThan(0);
    }
    const verdict = listener.judge(answer);
    if ('refusal' in verdict) throw new Error('refused');
    const welcome = listener.welcome(verdict.said, WELCOME);
    for (let bit = 0; bit < welcome.length * 8; bit++) {
      expect(dialer.enter(answer, flipped(welcome, bit))).toBeUndefined();
    }
  });

  test('who has another secret is not let in, and lets nobody in', () => {
    const { dialer, listener } = newSides();
    const outsider = new Handshake(new Uint8Array(32).fill(8), DIGEST);
    const hello = outsider.newHello(CALLER.host, 2, 1);
    const answer = outsider.answer(hello, challengeOf(listener, outsider.hello(hello)))!;
    expect(refusalOf(listener, answer)).toBe(REFUSAL.wrongProof);
    const welcome = outsider.welcome(answer.subarray(0, 32), WELCOME);
    expect(dialer.enter(answer, welcome)).toBeUndefined();
  });

  test('what a dialer proves can not be turned round against it', () => {
    const { dialer, listener } = newSides();
    const hello = dialer.newHello(CALLER.host, 2, 1);
    const answer = dialer.answer(hello, challengeOf(listener, dialer.hello(hello)))!;
    expect(dialer.enter(answer, answer.subarray(answer.length - 40))).toBeUndefined();
  });

  test('who has another memory version is told so', () => {
    const { dialer, listener } = newSides();
    const hello = dialer.hello(dialer.newHello(CALLER.newClient, 0, 0));
    hello[0]++;
    expect(refusalOf(listener, hello)).toBe(REFUSAL.otherVersion);
  });

  test('who has another configuration is told so', () => {
    const { listener } = newSides();
    const other = new Handshake(SECRET, Uint8Array.of(9, 9, 9, 9));
    const data = other.hello(other.newHello(CALLER.host, 2, 1));
    expect(refusalOf(listener, data)).toBe(REFUSAL.otherCluster);
  });

  test('an answer counts once, only where it was asked for, and not for long', () => {
    const { dialer, listener, seconds } = newSides();
    const newAnswer = () => {
      const hello = dialer.newHello(CALLER.host, 2, 1);
      return dialer.answer(hello, challengeOf(listener, dialer.hello(hello)))!;
    };
    const answer = newAnswer();
    const elsewhere = new Handshake(SECRET, DIGEST, () => seconds.now);
    expect(refusalOf(elsewhere, answer)).toBe(REFUSAL.wrongProof);
    expect(refusalOf(listener, answer)).toBeUndefined();
    expect(refusalOf(listener, answer)).toBe(REFUSAL.wrongProof);
    const late = newAnswer();
    seconds.now += 11;
    expect(refusalOf(listener, late)).toBe(REFUSAL.wrongProof);
    // Forgotten by now, and refused all the same.
    expect(refusalOf(listener, newAnswer())).toBeUndefined();
    expect(refusalOf(listener, answer)).toBe(REFUSAL.wrongProof);
  });

  test('garbage of any length is refused, by listener and dialer', () => {
    const { dialer, listener } = newSides();
    const hello = dialer.newHello(CALLER.host, 2, 1);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        expect(refusalOf(listener, bytes)).toBeGreaterThan(0);
        const answer = dialer.answer(hello, bytes);
        if (bytes[0] !== REFUSAL.challenge || bytes.length !== 13) expect(answer).toBeUndefined();
        expect(dialer.enter(new Uint8Array(48), bytes)).toBeUndefined();
      }),
    );
    for (let length = 0; length < 300; length++) {
      expect(refusalOf(listener, new Uint8Array(length).fill(1))).toBeGreaterThan(0);
    }
  });
});

function flipped(bytes: Uint8Array, bit: number): Uint8Array {
  const copy = bytes.slice();
  copy[bit >> 3] ^= 1 << (bit & 7);
  return copy;
}
