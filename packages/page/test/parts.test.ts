/** The parts of the page that need no browser. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { crc32 as crc32OfNode } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32 } from '../src/node/zlib.js';
import { layOutTree } from '../src/shared/tree-layout.js';

/** Imports of the library and of the lab that are more than types. */
const RUNTIME_IMPORT = /^import (?!type )[^;]*? from '(tram-(?:lab|multicast)[^']*)'/gm;

it('what shows runs has no copy of the protocol: it gets it with the script that it loads', () => {
  const folder = fileURLToPath(new URL('../src/sim/', import.meta.url));
  const imported = readdirSync(folder)
    .filter((file) => /\.tsx?$/.test(file))
    .flatMap((file) => [...readFileSync(`${folder}${file}`, 'utf8').matchAll(RUNTIME_IMPORT)])
    .map(([, module]) => module);
  expect(new Set(imported)).toEqual(new Set(['tram-lab/dist/sim/link.js']));
});

it('the checksum is that of Node, in one go or in parts', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array(), (one, two) => {
      const expected = crc32OfNode(Buffer.concat([one, two]));
      expect(crc32(two, crc32(one))).toBe(expected);
    }),
  );
});

describe('the layout of a tree', () => {
  /** Each group lies below an earlier one. */
  const trees = fc
    .array(fc.nat(), { maxLength: 63 })
    .map((draws) => [-1, ...draws.map((draw, i) => draw % (i + 1))]);

  it('puts children below their parent, and no two groups into one place', () => {
    fc.assert(
      fc.property(trees, (parents) => {
        const { places, columns, rows } = layOutTree(parents);
        const taken = new Map<string, number>();
        places.forEach(({ column, depth }, group) => {
          const parent = parents[group];
          expect(depth).toBe(parent < 0 ? 0 : places[parent].depth + 1);
          expect(column).toBeLessThanOrEqual(columns - 1);
          expect(depth).toBeLessThan(rows);
          taken.set(`${column} ${depth}`, group);
        });
        expect(taken.size).toBe(parents.length);
      }),
    );
  });
});
