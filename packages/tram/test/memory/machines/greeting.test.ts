/** What one that was let in writes first, and when it counts. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HOST } from '../../../src/memory/arena.js';
import { greetingAt, greetingToken, greetingWords } from '../../../src/memory/machines/greeting.js';
import { CALLER, Handshake, REFUSAL } from '../../../src/memory/machines/handshake.js';

const word = fc.nat(0xffffffff);
const anyGreeting = fc.record({
  region: fc.record({ base: fc.maxSafeNat(), keyLow: word, keyHigh: word }),
  hasRun: fc.nat(3),
  era: fc.nat(0x7fffffff),
});

test('it is read as it was written, with its token only, and fits its place', () => {
  fc.assert(
    fc.property(anyGreeting, fc.integer(), fc.nat(10), (greeting, any, at) => {
      const token = any | 1;
      const words = new Int32Array(64);
      expect(greetingAt(words, at, token)).toBeUndefined();
      const written = greetingWords(greeting, token);
      expect(written.length).toBeLessThanOrEqual(HOST.staysDown - HOST.greeting);
      words.set(written, at);
      expect(greetingAt(words, at, token)).toEqual(greeting);
      expect(greetingAt(words, at, token ^ 2)).toBeUndefined();
    }),
  );
});

test('both sides find the same token, and another with every challenge', () => {
  const handshake = new Handshake(new Uint8Array(32).fill(7), new Uint8Array(8).fill(1), 0);
  const tokens = Array.from({ length: 20 }, () => {
    const hello = handshake.newHello({
      caller: CALLER.host,
      number: 1,
      session: 0,
      birth: 0,
      seenBirth: 0,
    });
    const challenge = handshake.judge(handshake.hello(hello));
    if (!('refusal' in challenge)) throw new Error('let in without a proof');
    expect(challenge.refusal[0]).toBe(REFUSAL.challenge);
    const answer = handshake.answer(hello, challenge.refusal, 0)!;
    const proven = handshake.judge(answer);
    if ('refusal' in proven) throw new Error('refused');
    expect(greetingToken(proven.said)).toBe(greetingToken(answer));
    return greetingToken(answer);
  });
  expect(new Set(tokens).size).toBe(tokens.length);
  expect(tokens).not.toContain(0);
});
