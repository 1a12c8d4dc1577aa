import * as fc from 'fast-check';
import { type Family, integer, joined, keyOf, maybe, of, several, word } from './family.js';

const key = keyOf('string');

const offset = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 100 }).map(String) },
  { weight: 1, arbitrary: fc.constantFrom('-1', '4294967296', '4294967295000', 'x', '#1') },
);
const bit = fc.constantFrom('0', '1', '0', '1', '2', '-1', 'x');
const range = fc.oneof(
  fc.constant([]),
  of(integer),
  of(integer, integer),
  joined(integer, integer, word('BIT', 'BYTE', 'X'), maybe('X')),
);

const width = fc.oneof(
  fc.constantFrom('u8', 'i8', 'i5', 'u4', 'u63', 'i64', 'i1', 'u1', 'u16'),
  fc.constantFrom('u64', 'i65', 'u0', 'x8', 'i', 'U8', 'i08', 'u+8'),
);
const position = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('0', '1', '3', '7', '8', '16', '60', '#0', '#1', '#3') },
  { weight: 1, arbitrary: fc.constantFrom('-1', '#-1', 'x', '#', '4294967296') },
);
const get = of(word('GET'), width, position);
const operations = several(
  fc.oneof(
    get,
    of(word('SET'), width, position, integer),
    of(word('INCRBY'), width, position, integer),
    of(word('OVERFLOW'), word('WRAP', 'SAT', 'FAIL', 'X')),
  ),
  0,
  5,
);

export const bits: Family = {
  commands: {
    setbit: of('SETBIT', key, offset, bit),
    getbit: of('GETBIT', key, offset),
    bitcount: joined('BITCOUNT', key, range),
    bitpos: joined('BITPOS', key, bit, range),
    bitop: joined('BITOP', word('AND', 'OR', 'XOR', 'NOT', 'X'), key, several(key, 1, 3)),
    bitfield: joined('BITFIELD', key, operations),
    bitfield_ro: joined('BITFIELD_RO', key, fc.oneof(operations, several(get, 0, 3))),
  },
};
