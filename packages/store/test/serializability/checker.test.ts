import { describe, expect, test } from 'vitest';
import { check, type Operation, type Transaction } from '../../src/check/history.js';

const append = (key: string, value: string): Operation => ({ type: 'append', key, value });
const read = (key: string, ...values: string[]): Operation => ({ type: 'read', key, values });
const swap = (key: string, value: string, before: string | null): Operation => ({
  type: 'swap',
  key,
  value,
  before,
});

function ok(
  name: string,
  invoked: number,
  completed: number,
  ...operations: Operation[]
): Transaction {
  return { name, invoked, completed, outcome: 'ok', operations };
}

describe('the checker of strict serializability', () => {
  test('accepts a serial history, and concurrent transactions in any order', () => {
    expect(
      check([
        ok('T1', 0, 1, append('x', '1')),
        ok('T2', 2, 5, append('x', '2'), read('x', '1', '2')),
        ok('T3', 3, 4, read('x', '1')),
        ok('T4', 3, 6, read('x', '1', '2')),
      ]),
    ).toBeUndefined();
  });

  test('finds a read that is too old', () => {
    const found = check([
      ok('T1', 0, 1, append('x', '1')),
      ok('T2', 2, 3, read('x')),
      ok('T3', 4, 5, read('x', '1')),
    ]);
    expect(found).toMatch(/cycle/);
  });

  test('finds an append that is lost', () => {
    const found = check([ok('T1', 0, 1, append('x', '1')), ok('T2', 2, 3, read('x'))]);
    expect(found).toMatch(/does not read 1/);
  });

  test('finds two reads that disagree about the order', () => {
    const found = check([
      ok('T1', 0, 9, append('x', '1')),
      ok('T2', 0, 9, append('x', '2')),
      ok('T3', 0, 9, read('x', '1', '2')),
      ok('T4', 0, 9, read('x', '2')),
    ]);
    expect(found).toMatch(/no beginning/);
  });

  test('finds write skew', () => {
    const found = check([
      ok('T1', 0, 9, read('x'), append('y', '1')),
      ok('T2', 0, 9, read('y'), append('x', '2')),
      ok('T3', 10, 11, read('x', '2'), read('y', '1')),
    ]);
    expect(found).toMatch(/cycle/);
  });

  test('finds a read in the middle of a transaction', () => {
    const found = check([
      ok('T1', 0, 9, append('x', '1'), append('x', '2')),
      ok('T2', 0, 9, read('x', '1')),
      ok('T3', 10, 11, read('x', '1', '2')),
    ]);
    expect(found).toMatch(/cycle/);
  });

  test('finds a value of a transaction that has failed', () => {
    const failed: Transaction = {
      ...ok('T1', 0, 9, append('x', '1')),
      outcome: 'failed',
    };
    expect(check([failed, ok('T2', 0, 9, read('x', '1'))])).toMatch(/failed/);
  });

  test('lets a transaction whose outcome is unknown take effect, or not', () => {
    const unknown: Transaction = {
      ...ok('T1', 0, Infinity, append('x', '1')),
      outcome: 'unknown',
    };
    expect(check([unknown, ok('T2', 5, 6, read('x', '1'))])).toBeUndefined();
    expect(check([unknown, ok('T2', 5, 6, read('x'))])).toBeUndefined();
  });

  test('finds two swaps of a register that find the same value', () => {
    expect(
      check([ok('T1', 0, 9, swap('r', 'a', null)), ok('T2', 0, 9, swap('r', 'b', null))]),
    ).toMatch(/both find/);
  });

  test('finds swaps of two registers in different orders', () => {
    const found = check([
      ok('T1', 0, 9, swap('r', 'a', null), swap('s', 'a', 'b')),
      ok('T2', 0, 9, swap('r', 'b', 'a'), swap('s', 'b', null)),
    ]);
    expect(found).toMatch(/cycle/);
  });
});
