/** The list of options: it is complete, its defaults are valid, and docs/options.md says the same. */
import { readFileSync } from 'node:fs';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { Option } from '../../src/config/kinds.js';
import {
  type ClusterOptions,
  type MemoryKind,
  OPTION_NAMES,
  OPTIONS,
  type OptionName,
} from '../../src/config/options.js';
import { mistakesIn } from '../../src/config/validate.js';

const options: Readonly<Record<OptionName, Option>> = OPTIONS;

test('there is one for every member of the type', () => {
  expectTypeOf<OptionName>().toEqualTypeOf<keyof typeof OPTIONS>();
  expectTypeOf<keyof ClusterOptions>().toEqualTypeOf<keyof typeof OPTIONS>();
  expect(OPTION_NAMES).toEqual(Object.keys(OPTIONS));
});

test('a cluster runs on threads, processes or machines', () => {
  expectTypeOf<MemoryKind>().toEqualTypeOf<'threads' | 'processes' | 'machines'>();
});

test.each(OPTION_NAMES)('the default of %s is a valid value', (name) => {
  const value = options[name].default;
  const machines = { memory: 'machines', hosts: [], secret: 'cluster.secret' };
  const others = options[name].kind === undefined ? machines : {};
  expect(mistakesIn({ groups: 1, ...others, ...(value && { [name]: value }) })).toEqual([]);
});

describe('docs/options.md', () => {
  const text = readFileSync(new URL('../../../../docs/options.md', import.meta.url), 'utf8');
  const [everywhere, onMachines] = text.split(/^## Across machines$/m);

  /** Name and default of each row, in the order of the table. */
  function rowsOf(section: string): [name: string, fallback: string][] {
    const rows = section.matchAll(/^\| `(\w+)` \| (.*?) \|/gm);
    return Array.from(rows, ([, name, fallback]) => [name, fallback]);
  }

  function fallbackOf({ required, default: value, computed }: Option): string {
    if (required === 'always') return 'required';
    if (value === undefined) return computed ?? 'none';
    const shown = typeof value === 'number' ? `${value}` : `\`'${value}'\``;
    return computed === undefined ? shown : `${shown}, or ${computed}`;
  }

  test('has every option with its default, in this order', () => {
    const expected = OPTION_NAMES.filter((name) => options[name].kind !== undefined);
    const rows = rowsOf(everywhere).filter(([name]) => name in OPTIONS);
    expect(rows).toEqual(expected.map((name) => [name, fallbackOf(options[name])]));
  });

  test('has those of machines in a table of their own', () => {
    const expected = OPTION_NAMES.filter((name) => options[name].onMachines !== undefined);
    const rows = rowsOf(onMachines).filter(([name]) => name in OPTIONS);
    expect(Object.fromEntries(rows)).toEqual(
      Object.fromEntries(
        expected.map((name) => {
          const { required, ...option } = options[name];
          return [name, required === 'on machines' ? 'required' : fallbackOf(option)];
        }),
      ),
    );
  });
});
