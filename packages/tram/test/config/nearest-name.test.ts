/** What "did you mean …?" proposes. */
import { expect, test } from 'vitest';
import { nearestName } from '../../src/config/nearest-name.js';
import { OPTION_NAMES } from '../../src/config/options.js';

test.each([
  ['replica', 'replicas'],
  ['trees', 'tree'],
  ['payload_bytes_max', 'payloadBytesMax'],
  ['Payload-Bytes-Max', 'payloadBytesMax'],
  ['payload', 'payloadBytesMax'],
  ['heartBeat', 'heartbeatMs'],
  ['colour', undefined],
  ['', undefined],
  ['__proto__', undefined],
])('%s: %s', (name, nearest) => {
  expect(nearestName(name, OPTION_NAMES)).toBe(nearest);
});
