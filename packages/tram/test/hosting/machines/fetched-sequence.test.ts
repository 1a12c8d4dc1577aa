/** What a host fetches of another host's journal, piece by piece. */
import { expect, test } from 'vitest';
import { fetchSequence } from '../../../src/hosting/machines/fetched-sequence.js';
import type { Ask, GroupPlan } from '../../../src/journal/recovery-asks.js';
import { entriesOf } from '../../../src/journal/sequence.js';

const PLAN: GroupPlan = {
  group: 1,
  fromEra: 3,
  source: 2,
  keepFrom: 10,
  keepBelow: 15,
  append: [],
};
const SNAPSHOT = Int32Array.of(7, 8, 9);

/** Has, after the snapshot at 10, the entries 10 to 19 with their index as body, and answers with two of them, or two words of the snapshot. */
async function source(ask: Ask): Promise<unknown> {
  if (!('snapshotIndex' in ask) || ask.snapshotIndex !== PLAN.keepFrom) return undefined;
  if (ask.what === 'snapshot') {
    const words = SNAPSHOT.slice(ask.offset, ask.offset + 2);
    return { words, totalWords: SNAPSHOT.length };
  }
  if (ask.what !== 'entries') return undefined;
  const next = Math.min(ask.from + 2, ask.below);
  const indices = Array.from({ length: next - ask.from }, (_, i) => ask.from + i);
  return { entries: indices.map((index) => ({ index, body: Int32Array.of(index, 0) })), next };
}

test('all, if the host has nothing', async () => {
  const fetched = (await fetchSequence(PLAN, undefined, source))!;
  expect(fetched.readSnapshot()).toEqual(SNAPSHOT);
  expect([fetched.snapshotIndex, fetched.end]).toEqual([10, 15]);
  const found = [...entriesOf(fetched, 12)].map(({ index, words, at, count }) => [
    index,
    words[at],
    count,
  ]);
  expect(found).toEqual([
    [12, 12, 2],
    [13, 13, 2],
    [14, 14, 2],
  ]);
});

test('only the entries that it lacks', async () => {
  const asked: string[] = [];
  const fetched = (await fetchSequence(PLAN, 13, (ask) => {
    asked.push(ask.what);
    return source(ask);
  }))!;
  expect(asked).toEqual(['entries']);
  expect([...entriesOf(fetched, 13)].map(({ index }) => index)).toEqual([13, 14]);
});

test.each(['snapshot', 'entries'])(
  'nothing, if the host ends while it is asked for %s',
  async (what) => {
    const answer = (ask: Ask) => (ask.what === what ? Promise.resolve(undefined) : source(ask));
    expect(await fetchSequence(PLAN, undefined, answer)).toBeUndefined();
  },
);
