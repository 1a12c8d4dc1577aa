/** The checks of replies after a round: each accepts what is right and reports a planted error. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { History } from 'tram-multicast/check';
import { expect, test } from 'vitest';

const { checkAbandoned, checkAnswers, checkOrderedTime, checkReplies } = (await import(
  new URL('../../chaos/verify-replies.mjs', import.meta.url).href
)) as Checks;

interface Moment {
  place: number;
  nowMs: number;
}

interface Reply extends Moment {
  group: number;
  released?: (Moment & { by: string | null }) | undefined;
}

interface Acknowledged {
  id: string;
  nonce: string;
  sentUs: number;
  answeredUs: number;
  answeredMs: number;
  replies: Reply[];
  waits?: [number, number | null, number | null][] | undefined;
}

interface Checks {
  checkAbandoned(
    fingerprints: string[],
    records: Acknowledged[],
    givenUp: { nonce: string; code: string }[],
    killed: string[],
  ): string[];
  checkAnswers(trace: string, finished: Map<string, number>): string[];
  checkOrderedTime(records: Acknowledged[], groups: number): string[];
  checkReplies(history: History, records: Acknowledged[]): string[];
}

const START_MS = 1_000_000;
const WAIT: Acknowledged['waits'] = [[0, 2, 50]];

/** A message to group 0 that was answered at once by the clock. */
function answered(id: string, reply: Omit<Reply, 'group'>, waits?: typeof WAIT): Acknowledged {
  const answeredMs = (reply.released ?? reply).nowMs;
  const replies = [{ group: 0, ...reply }];
  return { id, nonce: `n.${id}`, sentUs: 0, answeredUs: 0, answeredMs, replies, waits };
}

const at = (place: number, ms: number): Moment => ({ place, nowMs: START_MS + ms });
const released = (place: number, ms: number, by: string | null) => ({ ...at(place, ms), by });

/** Group 0 delivers `a`, `b` and `c`. */
function historyOfThree(): History {
  const history = new History();
  history.add({ event: 'groups', groups: { 0: ['0/0'] } });
  for (const id of ['a', 'b', 'c']) {
    history.add({ event: 'multicast', id, client: 'c1', destinations: [0], entryGroup: 0 });
    history.add({ event: 'deliver', id, group: 0, replica: '0/0' });
  }
  return history;
}

test('replies must tell their places, and be deferred for as long as they were to be', () => {
  const check = (record: Acknowledged) => checkReplies(historyOfThree(), [record]).length;
  expect(check(answered('b', at(2, 0)))).toBe(0);
  expect(check(answered('b', at(3, 0)))).toBe(1);
  const deferred = (release?: Reply['released']) =>
    check(answered('a', { ...at(1, 0), released: release }, WAIT));
  expect(deferred(released(3, 10, 'c'))).toBe(0);
  expect(deferred(released(2, 50, null))).toBe(0);
  // Not at all, too early, too late, by another message; by time: too early, after the message.
  expect(deferred(undefined)).toBe(1);
  expect(deferred(released(2, 10, 'b'))).toBe(1);
  expect(deferred(released(4, 10, 'c'))).toBe(1);
  expect(deferred(released(3, 10, 'b'))).toBe(1);
  expect(deferred(released(2, 49, null))).toBe(1);
  expect(deferred(released(3, 50, null))).toBe(1);
  expect(check(answered('a', { ...at(1, 0), released: released(3, 10, 'c') }))).toBe(1);
});

test('ordered time must not go back, and must follow the clock', () => {
  const check = (...records: Acknowledged[]) => checkOrderedTime(records, 1).length;
  const [one, two] = [answered('a', at(1, 0)), answered('b', at(2, 20))];
  const byTick = answered('x', { ...at(1, 0), released: released(1, 10, null) });
  expect(check(two, one, byTick)).toBe(0);
  expect(check(one, answered('b', at(2, -1)))).toBe(1);
  expect(check(one, answered('b', { ...at(1, 1) }))).toBe(1);
  expect(check(one, two, answered('x', { ...at(1, 0), released: released(1, 21, null) }))).toBe(1);
  expect(check({ ...one, answeredMs: START_MS - 1001 })).toBe(1);
  expect(check({ ...one, answeredMs: START_MS + 60_001 })).toBe(1);
});

test('every message of a client that has finished must be answered once, or given up', ({
  onTestFinished,
}) => {
  const trace = mkdtempSync(join(tmpdir(), 'tram-verify-'));
  onTestFinished(() => rmSync(trace, { recursive: true }));
  const multicast = { event: 'multicast', id: 'a', client: 'c7', destinations: [0, 1] };
  const answer = (group: number) => ({ event: 'answered', id: 'a', group });
  const check = (givenUp: number, ...events: object[]) => {
    const lines = [multicast, ...events].map((event) => `${JSON.stringify(event)}\n`);
    writeFileSync(join(trace, 'client-7.jsonl'), lines.join(''));
    return checkAnswers(trace, new Map([['c7', givenUp]])).length;
  };
  expect(check(0, answer(0), answer(1))).toBe(0);
  expect(check(0, answer(0))).toBe(1);
  expect(check(1, answer(0))).toBe(0);
  expect(check(0, answer(0), answer(1), answer(0))).toBe(1);
});

test('messages must be abandoned for a cause, and none may wait at the end', () => {
  const check = (turnstile: object, code = 'TRAM_OUTCOME_UNKNOWN') => {
    const state = { waiting: [], abandoned: [], refused: 0, ...turnstile };
    const fingerprint = JSON.stringify({ group: 0, turnstile: state });
    return checkAbandoned(
      [fingerprint],
      [answered('a', at(1, 0))],
      [{ nonce: 'k1.5', code }],
      ['k2'],
    );
  };
  expect(
    check({
      abandoned: [
        ['k1.5', 1],
        ['k2.9', 1],
      ],
    }),
  ).toEqual([]);
  expect(check({ abandoned: [['k1.5', 1]] }, 'TRAM_TIMEOUT')).toHaveLength(1);
  expect(check({ abandoned: [['k1.6', 1]] })).toEqual(['group 0 abandoned k1.6 without a cause']);
  expect(
    check({
      abandoned: [
        ['k2.9', 1],
        ['k2.9', 2],
      ],
    }),
  ).toHaveLength(1);
  expect(check({ abandoned: [['n.a', 1]] })).toEqual(['n.a was acknowledged and abandoned']);
  expect(check({ waiting: [{}] })).toEqual(['1 messages wait at group 0']);
  expect(check({ refused: 1 })).toHaveLength(1);
});
