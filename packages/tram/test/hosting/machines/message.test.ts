import { expect, test } from 'vitest';
import { decodeMessage, encodeMessage } from '../../../src/hosting/machines/message.js';

test.each([
  [{ ask: 'survey' }],
  [{ ask: 'entries', group: 3, words: Int32Array.of(1, -2, 3), none: Int32Array.of() }],
  [{ append: [Int32Array.of(7), Int32Array.of(), Int32Array.of(8, 9)], empty: [] }],
  [
    {
      entries: [
        { index: 2 ** 33 + 1, body: Int32Array.of(7, 8) },
        { index: 3, body: Int32Array.of(9) },
      ],
      next: 4,
    },
  ],
  [[Int32Array.of(), 'é', true, { deep: [{ words: Int32Array.of(7) }, 1] }]],
])('%j is the same after it was sent', (value) => {
  expect(decodeMessage(encodeMessage(value))).toEqual(value);
});
