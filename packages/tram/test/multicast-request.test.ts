/** One call of `multicast`: what its error says when it is given up. */
import { expect, test } from 'vitest';
import type { ReplyError } from '../src/errors.js';
import { Request } from '../src/multicast-request.js';
import { newCall } from '../src/protocol/data-path/outbox.js';

const NO_STALL = { stalledGroups: [], lostGroups: [], reason: '', hint: undefined };

test.each([
  [0b110, 'it may still be delivered. No reply from g1, g2'],
  [0b100, 'it may still be delivered. No reply from g2. The reply was deferred by g1'],
  [0b000, 'it may still be delivered. The reply was deferred by g1, g2'],
])('names the groups without a reply, and those that have deferred it (%s)', (unheardLow, text) => {
  const errors: unknown[] = [];
  const reject = (error: unknown): void => void errors.push(error);
  const request = new Request(0b111, 0, new Uint8Array(0), () => undefined, reject);
  request.call = { ...newCall(0), pendingLow: 0b110, unheardLow };
  request.giveUpSent('timeout', undefined, NO_STALL);
  const [error] = errors as ReplyError[];
  expect(error.message).toBe(`timeout after the message was sent: ${text}`);
  expect(error.missingGroups).toEqual([1, 2]);
});
