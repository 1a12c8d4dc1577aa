import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const SCRIPT = fileURLToPath(new URL('../../chaos/main.mjs', import.meta.url));

/** A line of the output. */
interface Result {
  readonly durability: string;
  readonly faults: Readonly<Record<string, number>>;
  readonly transactions: { readonly ok: number };
  readonly violation?: string;
  readonly errors: readonly string[];
}

test('a store whose processes are killed is strictly serializable', {
  timeout: 120_000,
}, async () => {
  const args = [SCRIPT, '--seed', '1', '--rounds', '2', '--seconds', '8'];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const results = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Result);
  expect(results.map(({ durability }) => durability)).toEqual(['always', 'none']);
  for (const { faults, transactions, violation, errors } of results) {
    expect(violation).toBeUndefined();
    expect(errors).toEqual([]);
    expect(transactions.ok).toBeGreaterThan(50);
    expect(Object.values(faults).some((count) => count > 0)).toBe(true);
  }
});
