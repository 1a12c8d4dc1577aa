/**
 * What the memory model assumes of V8 and the processor (docs/memory-model.md), by behaviour and in the compiled code. The
 * controls do what the library avoids. Whether they go wrong depends on machine and engine, so this is only reported.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

function run(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  expect(stderr).toBe('');
  expect(status).toBe(0);
  return stdout;
}

describe('between two threads', () => {
  const ROUNDS = 300_000;
  let violations: Record<string, number>;

  beforeAll(() => {
    violations = JSON.parse(run(pathOf('./races.mjs'), `${ROUNDS}`));
  }, 300_000);

  test.for([
    'a word that is loaded by Atomics',
    'a word before a fence',
    'a copy that is checked after a fence',
    'a copy that starts at a pair of words',
    'a copy of an odd number of words',
    'a copy from an odd word to an odd word',
    'a copy from an odd word to an even one',
    'a copy to private memory',
    'a copy to private memory, from an odd word',
    'the hash of a copy',
  ])('%s', (name) => {
    expect(violations[name]).toBe(0);
  });

  test('the controls', async ({ annotate }) => {
    const controls = Object.entries(violations).filter(([name]) => name.startsWith('control: '));
    expect(controls).toHaveLength(4);
    for (const [name, count] of controls) {
      await annotate(`${name}: ${count} violations in ${ROUNDS} rounds`);
    }
  });
});

describe('the code that V8 compiles', () => {
  /** In their order: loads and stores of the flag and the data, and calls of `Atomics.load`. */
  function accessesOf(name: string): string[] {
    const flags = ['--print-opt-code', `--print-opt-code-filter=${name}`];
    const listing = run(...flags, pathOf('./compile.mjs'), name);
    const code = listing.slice(listing.lastIndexOf('Instructions (size'));
    const accesses = [...code.matchAll(/\+(0x100|0x200)\]|call .*\((AtomicsLoad)\)/g)];
    return accesses.map(([, place]) =>
      place === undefined ? 'Atomics.load' : place === '0x100' ? 'flag' : 'data',
    );
  }

  test.runIf(process.arch === 'x64').for([
    ['acquires', ['Atomics.load', 'data']],
    ['fences', ['flag', 'Atomics.load', 'data']],
    ['publishes', ['data', 'flag']],
  ] as const)('%s: %j', ([name, accesses], { skip }) => {
    const found = accessesOf(name);
    skip(found.length === 0, 'this Node prints no code');
    expect(found).toEqual(accesses);
  });

  test.runIf(process.arch === 'x64')('the control', async ({ annotate, skip }) => {
    const found = accessesOf('plain');
    skip(found.length === 0, 'this Node prints no code');
    expect(found.toSorted()).toEqual(['data', 'flag']);
    await annotate(
      `two plain loads, the flag before the data, are compiled to: ${found.join(', ')}`,
    );
  });
});
