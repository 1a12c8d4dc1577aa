/** Which addresses and ports the validator accepts. */
import { describe, expect, test } from 'vitest';
import { ADDRESS, LISTENING_ENDPOINT, parseEndpoint } from '../../src/config/addresses.js';

describe('an address', () => {
  test.each(['10.0.0.1', '127.0.0.1', 'alpha', 'alpha.rack-1.example', 'a_b', '1.example', 'x'])(
    'is %s',
    (address) => expect(ADDRESS.accepts(address)).toBe(true),
  );

  test.each([
    '',
    ' ',
    '0.0.0.0',
    '10.0.0',
    '10.0.0.256',
    '1',
    'example.1',
    '::1',
    'a b',
    'a..b',
    '-a',
    'a-',
    'a:1',
    'a'.repeat(64),
    `${'a.'.repeat(127)}a`,
  ])('is not %j', (address) => expect(ADDRESS.accepts(address)).toBe(false));

  test.each([10.1, null, undefined, ['alpha']])('is not %j', (value) => {
    expect(ADDRESS.accepts(value)).toBe(false);
  });
});

describe('where a host listens', () => {
  test.each([
    [7412, { address: '127.0.0.1', port: 7412 }],
    ['10.0.0.2:7412', { address: '10.0.0.2', port: 7412 }],
    ['0.0.0.0:80', { address: '0.0.0.0', port: 80 }],
    ['alpha.example:65535', { address: 'alpha.example', port: 65_535 }],
  ])('may be %s', (given, endpoint) => {
    expect(LISTENING_ENDPOINT.accepts(given)).toBe(true);
    expect(parseEndpoint(given)).toEqual(endpoint);
  });

  test.each([
    0,
    65_536,
    7412.5,
    '7412',
    ':7412',
    '10.0.0.1:',
    '10.0.0.1:0',
    '10.0.0.1:65536',
    '10.0.0:7412',
    '[::1]:7412',
    null,
    [7412],
  ])('is not %j', (given) => expect(LISTENING_ENDPOINT.accepts(given)).toBe(false));
});
