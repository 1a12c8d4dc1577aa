/** How the commands show things: payloads, trees, durations, and where a line of a history stands. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readable, readableLine } from '../../src/cli/readable.js';
import { duration, treeOf } from '../../src/cli/status-view.js';
import { openDirectory } from '../../src/cli/trace-source.js';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('a payload', () => {
  test('is shown as text if it is some, in one line', () => {
    expect(readable(bytes('größer\n'))).toEqual({ text: 'größer\n' });
    expect(readableLine(bytes('a\tb\r\nc'))).toBe('a\\tb\\r\\nc');
    expect(readableLine(bytes(''))).toBe('(empty)');
  });

  test('is shown in hexadecimal if it could do something to the terminal, or is no text', () => {
    expect(readable(bytes('\u001b[2J'))).toEqual({ hex: '1b5b324a' });
    expect(readable(bytes('\u009b2J'))).toEqual({ hex: 'c29b324a' });
    expect(readable(bytes('a\u202eb'))).toEqual({ hex: '61e280ae62' });
    expect(readableLine(Uint8Array.of(0xff, 0x00))).toBe('0xff00');
  });
});

describe('a tree', () => {
  const labels = (parents: number[]): string[] => treeOf(parents).map(({ label }) => label);

  test('is drawn in the order of a walk through it', () => {
    expect(labels([-1, 0, 0, 1])).toEqual(['g0', '├─ g1', '│  └─ g3', '└─ g2']);
    expect(treeOf([1, -1]).map(({ group }) => group)).toEqual([1, 0]);
  });

  test('is a list where it would get too deep', () => {
    const chain = Array.from({ length: 12 }, (_, group) => group - 1);
    expect(labels(chain).slice(0, 3)).toEqual(['g0', 'g1 under g0', 'g2 under g1']);
  });
});

test.each([
  [999, '999 ns'],
  [1500, '1.5 µs'],
  [45_400, '45 µs'],
  [2_500_000, '2.5 ms'],
  [12_000_000_000, '12 s'],
])('%d ns is %s', (ns, text) => {
  expect(duration(ns)).toBe(text);
});

describe('a directory with a history', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tram-source-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  test('is one text, and a line of it leads back to its file', async () => {
    const files = {
      'replica-0-1.jsonl': 'r1\nr2\ncut',
      'end.jsonl': 'e1',
      'groups.jsonl': 'g1\n',
      'client-2.jsonl': '',
      'client-10.jsonl': 'c1\nc2\n',
      'notes.txt': 'none of it\n',
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const source = await openDirectory(folder);
    let text = '';
    for await (const chunk of source.chunks) text += chunk;
    expect(text).toBe('g1\nc1\nc2\nr1\nr2\ne1\n');
    expect(source.unfinished).toEqual([join(folder, 'replica-0-1.jsonl')]);
    const places = [1, 2, 3, 4, 5, 6].map((line) => source.place(line));
    expect(places.map(({ name, line }) => `${name.slice(folder.length + 1)}:${line}`)).toEqual([
      'groups.jsonl:1',
      'client-10.jsonl:1',
      'client-10.jsonl:2',
      'replica-0-1.jsonl:1',
      'replica-0-1.jsonl:2',
      'end.jsonl:1',
    ]);
  });
});
