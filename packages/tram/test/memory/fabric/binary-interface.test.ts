/** Every offset, size and constant is what libfabric's headers say. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CONSTANTS, FIELDS, SIZES } from '../../../src/memory/fabric/binary-interface.js';
import { needHeaders } from './present.js';

const HEADERS = [
  ...['fabric', 'fi_cm', 'fi_domain', 'fi_endpoint', 'fi_eq', 'fi_errno', 'fi_rma'].map(
    (name) => `rdma/${name}.h`,
  ),
  ...[
    'stddef.h',
    'stdio.h',
    'poll.h',
    'sys/eventfd.h',
    'sys/uio.h',
    'sys/socket.h',
    'netinet/in.h',
    'netinet/tcp.h',
  ],
];

/** Expressions in C, and what they are to us. */
function expectations(): [expression: string, value: number][] {
  return [
    ...Object.entries(FIELDS).flatMap(([structure, fields]) =>
      Object.entries(fields).map(([field, offset]): [string, number] => [
        `offsetof(struct ${structure}, ${field})`,
        offset,
      ]),
    ),
    ...Object.entries(SIZES).map(([structure, bytes]): [string, number] => [
      `sizeof(struct ${structure})`,
      bytes,
    ]),
    ...Object.entries(CONSTANTS),
  ];
}

function valuesInC(expressions: readonly string[]): number[] {
  const folder = mkdtempSync(join(tmpdir(), 'tram-fabric-'));
  try {
    const program = join(folder, 'values');
    const prints = expressions.map((text) => `printf("%llu\\n", (unsigned long long) (${text}));`);
    const includes = HEADERS.map((header) => `#include <${header}>`);
    const source = [...includes, 'int main() {', ...prints, 'return 0; }'].join('\n');
    execFileSync('cc', ['-x', 'c', '-', '-o', program], { input: source });
    return execFileSync(program, { encoding: 'utf8' }).trim().split('\n').map(Number);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('every offset, size and constant is that of the headers', (context) => {
  needHeaders(context);
  const expected = expectations();
  const values = valuesInC(expected.map(([expression]) => expression));
  expect(expected.map(([expression], i) => [expression, values[i]])).toEqual(expected);
});
