import { execFile, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const { usedMiB } = (await import(
  new URL('../../chaos/malformed/malformed.mjs', import.meta.url).href
)) as {
  usedMiB(folder: string, kind: string, pids: readonly number[], msMax: number): Promise<number>;
};

/** Fails if the exit code is not 0. @returns what it prints */
async function runScript(name: string, ...args: string[]): Promise<string> {
  const path = fileURLToPath(new URL(`../../chaos/${name}.mjs`, import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [path, ...args]);
  return stdout;
}

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
  const output = await runScript('main', '--seed', '1', '--rounds', '2', '--seconds', '5');
  const results = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Result);
  expect(results.map(({ durability }) => durability)).toEqual(['always', 'none']);
  for (const { faults, transactions, violation, errors } of results) {
    expect(violation).toBeUndefined();
    expect(errors).toEqual([]);
    expect(transactions.ok).toBeGreaterThan(20);
    expect(Object.values(faults).some((count) => count > 0)).toBe(true);
  }
});

test.concurrent('clients of a store do not notice that leaders are killed', {
  timeout: 120_000,
}, async () => {
  const args = ['--seed', '1', '--minutes', '0.05', '--kill-every', '2'];
  const { killed, replies } = JSON.parse(await runScript('soak', ...args));
  expect(killed).toBeGreaterThan(0);
  expect(replies).toBeGreaterThan(100);
});

test.concurrent('a client of a store does not notice malformed requests of others', {
  timeout: 120_000,
}, async () => {
  const args = ['--seed', '1', '--seconds', '2', '--connections', '300'];
  const { attacks, latencies } = JSON.parse(await runScript('malformed', ...args));
  expect(Object.keys(attacks)).toContain('random bytes');
  expect(latencies.during.requests).toBeGreaterThan(0);
});

test('a host that ends instead of telling how much memory it uses is named', async () => {
  const host = spawn('sleep', ['60']);
  const used = usedMiB(tmpdir(), 'host', [host.pid!], 200);
  await expect(used).rejects.toThrow(`host 0 (process ${host.pid}) does not tell`);
  expect(host.signalCode).toBe('SIGUSR2');
});
