/** Events that outsiders can cause at any rate do not fill the log. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { rateLimited } from '../../src/hosting/rate-limit.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('logs the first line at once, then one a second with the number of suppressed lines', () => {
  const lines: string[] = [];
  const log = rateLimited((text) => lines.push(text));
  log('0 was refused');
  expect(lines).toEqual(['0 was refused']);
  for (let i = 1; i <= 1000; i++) log(`${i} was refused`);
  expect(lines).toHaveLength(1);
  vi.advanceTimersByTime(1000);
  log('1001 was refused');
  expect(lines[1]).toBe('1001 was refused (1000 similar lines suppressed)');
  vi.advanceTimersByTime(1000);
  log('1002 was refused');
  expect(lines[2]).toBe('1002 was refused');
});
