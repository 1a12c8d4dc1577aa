/** The sizes of a cluster's memory: rings hold the largest message, and everything can be addressed. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/mistakes.js';
import { memoryBytes, resolveSizes } from '../../src/config/sizes.js';
import { Layout, type Sizes } from '../../src/protocol/layout.js';
import { errorOf, SALT } from './given.js';

test('the memory is that of all replicas and all clients', () => {
  const sizes = resolveSizes({ groups: 3, replicas: 5, clients: 7 }, SALT);
  const { replicaRegionWords, clientRegionWords } = new Layout(sizes);
  expect(memoryBytes(sizes)).toBe(4 * (15 * replicaRegionWords + 7 * clientRegionWords));
});

test('more memory than can be addressed is refused', () => {
  const { message, path, hint } = errorOf({ groups: 64, replicas: 7, clients: 1024 });
  expect(message).toMatch(
    /^the cluster needs \d\d\.\d GB of shared memory, and the limit is 8\.0 GB$/,
  );
  expect(path).toEqual([]);
  expect(hint).toContain('clients');
});

describe('rings', () => {
  test.each([
    ['logBytes', 2048, 'two messages of that size must fit, which takes 4096 bytes'],
    ['inboxBytes', 1024, 'one message of that size must fit, which takes 2048 bytes'],
    ['feedBytes', 1024, 'one message of that size must fit, which takes 2048 bytes'],
  ])('%s of %i bytes is too small', (name, bytes, reason) => {
    expect(errorOf({ groups: 2, [name]: bytes })).toMatchObject({
      path: [name],
      message: `${name} is ${bytes}, too small for payloadBytesMax 1024: ${reason}`,
    });
  });

  test('one that is rounded up to what is needed is large enough', () => {
    expect(resolveSizes({ groups: 2, inboxBytes: 1025 }, SALT).inboxBytes).toBe(1025);
  });

  test('by default hold at least eight of the largest messages', () => {
    const options = fc.record({ groups: fc.constant(1), payloadBytesMax: fc.nat(2 ** 20) });
    fc.assert(
      fc.property(options, (asked) => {
        const layout = new Layout(resolveSizes(asked, SALT));
        expect(layout.logWords).toBeGreaterThanOrEqual(8 * layout.entryWordsMax);
        expect(layout.inboxWords).toBeGreaterThanOrEqual(8 * layout.inboxRecordWordsMax);
        expect(layout.feedWords).toBeGreaterThanOrEqual(8 * layout.inboxRecordWordsMax);
      }),
    );
  });

  test('have the size that was asked for, rounded up', () => {
    const ring = fc.integer({ min: 64, max: 8192 });
    const options = fc.record({
      groups: fc.constant(1),
      payloadBytesMax: fc.nat(4096),
      logBytes: ring,
      inboxBytes: ring,
      feedBytes: ring,
    });
    const roundedUp = (bytes: number): number => 2 ** Math.ceil(Math.log2(bytes));
    let accepted = 0;
    fc.assert(
      fc.property(options, (asked) => {
        let sizes: Sizes;
        try {
          sizes = resolveSizes(asked, SALT);
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigError);
          expect((error as Error).message).toMatch(/^(log|inbox|feed)Bytes is \d+, too small/);
          return;
        }
        accepted++;
        const layout = new Layout(sizes);
        expect(layout.logWords * 4).toBe(roundedUp(asked.logBytes));
        expect(layout.inboxWords * 4).toBe(roundedUp(asked.inboxBytes));
        expect(layout.feedWords * 4).toBe(roundedUp(asked.feedBytes));
      }),
    );
    expect(accepted).toBeGreaterThan(0);
  });
});
