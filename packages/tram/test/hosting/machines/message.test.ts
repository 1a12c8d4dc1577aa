import { expect, test } from 'vitest';
import { decodeMessage, encodeMessage } from '../../../src/hosting/machines/message.js';

test.each([
  [{ ask: 'survey' }],
  [{ ask: 'entries', group: 3, words: Int32Array.of(1, -2, 3), more: [Uint8Array.of(1, 2, 3)] }],
  [[Int32Array.of(), 'é', true, { deep: { words: Int32Array.of(7) } }]],
])('%j is the same after it was sent', (value) => {
  expect(decodeMessage(encodeMessage(value))).toEqual(value);
});
