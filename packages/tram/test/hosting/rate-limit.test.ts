/** What others may make happen at any rate does not fill the log. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { rateLimited } from '../../src/hosting/rate-limit.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('the first is said at once; of a thousand more only how many they were', () => {
  const said: string[] = [];
  const say = rateLimited((text) => said.push(text));
  say('0 was refused');
  expect(said).toEqual(['0 was refused']);
  for (let i = 1; i <= 1000; i++) say(`${i} was refused`);
  expect(said).toHaveLength(1);
  vi.advanceTimersByTime(1000);
  say('1001 was refused');
  expect(said[1]).toBe('1001 was refused (and 1000 more times before)');
  vi.advanceTimersByTime(1000);
  say('1002 was refused');
  expect(said[2]).toBe('1002 was refused');
});
