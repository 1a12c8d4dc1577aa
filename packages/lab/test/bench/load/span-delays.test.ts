import { expect, test } from 'vitest';
import { SpanDelays } from '../../../src/bench/load/span-delays.js';

test('delays of a span are those of the messages that were in flight during it', () => {
  const delays = new SpanDelays(8);
  delays.note(0, 1); // before
  delays.note(1, 6);
  delays.note(2, 12);
  delays.note(13, 14); // after
  delays.add({ fromMs: 5, untilMs: 10 });
  const { changes, total } = delays.report();
  expect(changes).toEqual([total]);
  expect(total).toMatchObject({ messages: 2, spanMs: 5, meanMs: 7.5, minMs: 5, maxMs: 10 });
  expect(total.gapMs).toBe(6);
});

test('messages that follow do not replace those of earlier spans', () => {
  const delays = new SpanDelays(8);
  for (let span = 0; span < 5; span++) {
    const fromMs = 100 * span;
    for (let i = 0; i < 6; i++) delays.note(fromMs + i, fromMs + i + 1);
    delays.add({ fromMs, untilMs: fromMs + 10 });
  }
  expect(delays.report().changes.map(({ messages }) => messages)).toEqual([6, 6, 6, 6, 6]);
});

test('a message that is answered long after its span counts', () => {
  const delays = new SpanDelays(8);
  delays.note(0, 6);
  delays.add({ fromMs: 5, untilMs: 10 });
  delays.note(7, 5000);
  expect(delays.report().total).toMatchObject({ messages: 2, maxMs: 4993 });
});

test('a report that would be wrong is refused', () => {
  const tooMany = new SpanDelays(8);
  for (let i = 0; i < 9; i++) tooMany.note(i, i + 1);
  expect(() => tooMany.add({ fromMs: 0, untilMs: 5 })).toThrow('more than 8 messages');

  const none = new SpanDelays(8);
  none.add({ fromMs: 0, untilMs: 5 });
  expect(() => none.report()).toThrow('no message was in flight');
});
