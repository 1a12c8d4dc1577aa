/** Authentication: proofs, replays, and garbage of unauthenticated peers. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CALLER, Handshake, REFUSAL } from '../../../src/memory/machines/handshake.js';

const SECRET = new Uint8Array(32).fill(7);
const DIGEST = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
const WELCOME = {
  base: 2 ** 40 + 5,
  keyLow: 0xfedcba98,
  keyHigh: 3,
  slot: 9,
  session: 0xffffffff,
  birth: 0xfedcba99,
  era: 0xfedcba98,
};
/** The number of the listener. */
const CALLEE = 1;
const HELLO = { caller: CALLER.host, number: 2, session: 1, birth: 3, seenBirth: 4 };
/** The least that a provider can carry with a connection. */
const DATA_BYTES_MAX = 56;

function newSides(seconds = { now: 1000 }) {
  const dialer = new Handshake(SECRET, DIGEST, 2);
  const listener = new Handshake(SECRET, DIGEST, CALLEE, () => seconds.now);
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
    const hello = dialer.newHello({
      caller: CALLER.client,
      number: 513,
      session: 0x89abcdef,
      birth: 0xfffffffe,
      seenBirth: 0xfffffffd,
    });
    const challenge = challengeOf(listener, dialer.hello(hello));
    const answer = dialer.answer(hello, challenge, CALLEE)!;
    const verdict = listener.judge(answer);
    if ('refusal' in verdict) throw new Error('refused');
    expect(verdict.hello).toEqual(hello);
    const welcome = listener.welcome(verdict.said, WELCOME);
    expect(dialer.enter(answer, welcome, CALLEE)).toEqual(WELCOME);
    for (const data of [dialer.hello(hello), challenge, answer, welcome]) {
      expect(data.length).toBeLessThanOrEqual(DATA_BYTES_MAX);
    }
  });

  test('no bit of an answer or of a welcome can be changed', () => {
    const { dialer, listener } = newSides();
    const hello = dialer.newHello(HELLO);
    const answer = dialer.answer(hello, challengeOf(listener, dialer.hello(hello)), CALLEE)!;
    for (let bit = 0; bit < answer.length * 8; bit++) {
      expect(refusalOf(listener, flipped(answer, bit))).toBeGreaterThan(0);
    }
    const verdict = listener.judge(answer);
    if ('refusal' in verdict) throw new Error('refused');
    const welcome = listener.welcome(verdict.said, WELCOME);
    for (let bit = 0; bit < welcome.length * 8; bit++) {
      expect(dialer.enter(answer, flipped(welcome, bit), CALLEE)).toBeUndefined();
    }
  });

  test('who has another secret is not let in, and lets nobody in', () => {
    const { dialer, listener } = newSides();
    const outsider = new Handshake(new Uint8Array(32).fill(8), DIGEST, CALLEE);
    const hello = outsider.newHello(HELLO);
    const answer = outsider.answer(hello, challengeOf(listener, outsider.hello(hello)), CALLEE)!;
    expect(refusalOf(listener, answer)).toBe(REFUSAL.wrongProof);
    const welcome = outsider.welcome(answer.subarray(0, 40), WELCOME);
    expect(dialer.enter(answer, welcome, CALLEE)).toBeUndefined();
  });

  test('what a dialer proves can not be turned round against it', () => {
    const { dialer, listener } = newSides();
    const hello = dialer.newHello(HELLO);
    const answer = dialer.answer(hello, challengeOf(listener, dialer.hello(hello)), CALLEE)!;
    expect(dialer.enter(answer, answer.subarray(answer.length - 44), CALLEE)).toBeUndefined();
  });

  test('a dialer that reaches another host than it means is not let in, and does not enter', () => {
    const { dialer, listener } = newSides();
    const hello = dialer.newHello(HELLO);
    const challenge = challengeOf(listener, dialer.hello(hello));
    const meantForAnother = dialer.answer(hello, challenge, CALLEE + 1)!;
    expect(refusalOf(listener, meantForAnother)).toBe(REFUSAL.wrongProof);
    const answer = dialer.answer(hello, challenge, CALLEE)!;
    const verdict = listener.judge(answer);
    if ('refusal' in verdict) throw new Error('refused');
    const welcome = listener.welcome(verdict.said, WELCOME);
    expect(dialer.enter(answer, welcome, CALLEE + 1)).toBeUndefined();
  });

  test('a dialer with another memory version is told so', () => {
    const { dialer, listener } = newSides();
    const hello = dialer.hello(dialer.newHello({ ...HELLO, caller: CALLER.newClient }));
    hello[0]++;
    expect(refusalOf(listener, hello)).toBe(REFUSAL.otherVersion);
  });

  test('who has another configuration is told so', () => {
    const { listener } = newSides();
    const other = new Handshake(SECRET, Uint8Array.of(9, 9, 9, 9), CALLEE);
    const data = other.hello(other.newHello(HELLO));
    expect(refusalOf(listener, data)).toBe(REFUSAL.otherCluster);
  });

  test('an answer counts once, only where it was asked for, and not for long', () => {
    const { dialer, listener, seconds } = newSides();
    const newAnswer = () => {
      const hello = dialer.newHello(HELLO);
      return dialer.answer(hello, challengeOf(listener, dialer.hello(hello)), CALLEE)!;
    };
    const answer = newAnswer();
    const elsewhere = new Handshake(SECRET, DIGEST, CALLEE, () => seconds.now);
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
    const hello = dialer.newHello(HELLO);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        expect(refusalOf(listener, bytes)).toBeGreaterThan(0);
        const answer = dialer.answer(hello, bytes, CALLEE);
        if (bytes[0] !== REFUSAL.challenge || bytes.length !== 13) expect(answer).toBeUndefined();
        expect(dialer.enter(new Uint8Array(56), bytes, CALLEE)).toBeUndefined();
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
