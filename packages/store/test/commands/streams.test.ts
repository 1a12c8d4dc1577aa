import { describe, expect, test } from 'vitest';
import { BLOCKED } from '../../src/commands/runner.js';
import { COMMANDS_BY_NAME, keyPositions } from '../../src/commands/table.js';
import { ByteReader, ByteWriter } from '../../src/engine/bytes.js';
import { decodeEntry, encodeEntry } from '../../src/engine/codec.js';
import { ErrorReply, MapOrPairs } from '../../src/resp/reply.js';
import { Engine } from './engine.js';

function engine(...lines: readonly string[]): Engine {
  const engine = new Engine();
  engine.keyspace.nowMs = 1_000;
  for (const line of lines) expect(engine.run(line)).not.toBeInstanceOf(ErrorReply);
  return engine;
}

describe('new ids', () => {
  test('follow the time of the command', () => {
    const tested = engine();
    expect(tested.run('XADD x * f 1')).toBe('1000-0');
    expect(tested.run('XADD x * f 2')).toBe('1000-1');
    tested.keyspace.nowMs = 2_000;
    expect(tested.run('XADD x * f 3')).toBe('2000-0');
    // Time never goes back.
    tested.keyspace.nowMs = 1_500;
    expect(tested.run('XADD x * f 4')).toBe('2000-1');
  });

  test('end with the greatest one', () => {
    const tested = engine('XADD x 18446744073709551615-18446744073709551615 f 1');
    expect(tested.run('XADD x * f 1')).toBeInstanceOf(ErrorReply);
    expect(tested.run('XADD x 18446744073709551615-* f 1')).toBeInstanceOf(ErrorReply);
  });
});

describe('reads that wait', () => {
  test('for what is new mean what was new when they began', () => {
    const tested = engine('XADD x 5-1 f 1', 'XADD y 7 f 1');
    expect(tested.runBlocking('XREAD BLOCK 100 STREAMS x y $ $')).toBe(BLOCKED);
    const { keys, timeoutMs, args } = tested.runner.wait!;
    expect(keys).toEqual(['x', 'y']);
    expect(timeoutMs).toBe(100);
    expect(args).toEqual(['BLOCK', '100', 'STREAMS', 'x', 'y', '5-1', '7-0']);
    tested.run('XADD x 6 f 2');
    expect(tested.resume(`XREAD ${args!.join(' ')}`)).toEqual(
      new MapOrPairs([['x', [['6-0', ['f', '2']]]]]),
    );
  });

  test('of a group get each entry once', () => {
    const tested = engine('XGROUP|CREATE x g $ MKSTREAM');
    const line = 'XREADGROUP GROUP g alice BLOCK 0 STREAMS x >';
    expect(tested.runBlocking(line)).toBe(BLOCKED);
    tested.run('XADD x 1 f 1');
    expect(tested.resume(line)).toEqual(new MapOrPairs([['x', [['1-0', ['f', '1']]]]]));
    expect(tested.runBlocking(line.replace('alice', 'bob'))).toBe(BLOCKED);
  });

  test.each(['DEL x', 'SET x value'])(
    'of a group end with an error when the stream is gone: %s',
    (change) => {
      const tested = engine('XGROUP|CREATE x g $ MKSTREAM');
      const line = 'XREADGROUP GROUP g alice BLOCK 0 STREAMS x >';
      expect(tested.runBlocking(line)).toBe(BLOCKED);
      tested.run(change);
      expect(String(tested.resume(line))).toContain('UNBLOCKED');
    },
  );
});

describe('a group that is destroyed', () => {
  const line = 'XREADGROUP GROUP g alice BLOCK 0 STREAMS x >';
  const before = ['XGROUP|CREATE x g $ MKSTREAM', 'XGROUP|CREATE x h $'];

  test('ends the reads that wait for it, with an error', () => {
    const tested = engine(...before);
    expect(tested.runBlocking(line)).toBe(BLOCKED);
    tested.run('XGROUP|DESTROY x g');
    expect(String(tested.resume(line))).toContain(
      'NOGROUP the consumer group this client was blocked on no longer exists',
    );
  });

  test('does not end those that wait for another one', () => {
    const tested = engine(...before);
    expect(tested.runBlocking(line)).toBe(BLOCKED);
    tested.run('XGROUP|DESTROY x h');
    expect(tested.resume(line)).toBe(BLOCKED);
  });
});

test.each([
  ['XREAD BLOCK 0 STREAMS x 0', 'ERR XREAD command is not allowed with BLOCK option from scripts'],
  ['XREAD COUNT 1 BLOCK 0 STREAMS x 0', 'not allowed with BLOCK option'],
  ['XREADGROUP GROUP g c NOACK BLOCK 0 STREAMS x >', 'not allowed with BLOCK option'],
  ['XREAD BLOCK 0 COUNT x STREAMS x 0', 'not allowed with BLOCK option'],
  ['XREAD COUNT x BLOCK 0 STREAMS x 0', 'ERR value is not an integer or out of range'],
  ['XREAD FOO BLOCK 0 STREAMS x 0', 'ERR syntax error'],
])('a script gets the first error of %s', (line, error) => {
  const words = line.split(' ').map((word) => `'${word}'`);
  const reply = engine().runner.start('eval', [`return redis.call(${words})`, '0'], 1, false);
  expect(String(reply)).toContain(error);
});

test('trimming with ~ removes whole nodes of 100 entries', () => {
  const tested = engine(...Array.from({ length: 1000 }, (_, i) => `XADD x ${i + 1} f v`));
  expect(tested.run('XTRIM x MAXLEN 555')).toBe(445);
  expect(tested.run('XTRIM x MAXLEN ~ 444')).toBe(55);
  expect(tested.run('XTRIM x MAXLEN ~ 401')).toBe(0);
  expect(tested.run('XTRIM x MINID ~ 650')).toBe(100);
  expect(tested.run('XTRIM x MAXLEN ~ 0')).toBe(400);
});

test('trimming with ~ removes no more than it should, if a restored stream counts too few entries', () => {
  const tested = engine(...Array.from({ length: 250 }, (_, i) => `XADD x ${i + 1} f v`));
  tested.keyspace.read('x', 'stream')!.entriesAdded = 0;
  expect(tested.run('XTRIM x MAXLEN ~ 240')).toBe(0);
  expect(tested.run('XTRIM x MAXLEN ~ 100')).toBe(100);
});

test('the greatest id asks for new entries, as > does', () => {
  const tested = engine('XADD x 1 f 1', 'XGROUP|CREATE x g 0');
  const line = `XREADGROUP GROUP g alice BLOCK 0 STREAMS x ${2n ** 64n - 1n}-${2n ** 64n - 1n}`;
  expect(tested.run(line)).toEqual(tested.run('XREAD STREAMS x 0'));
  expect(tested.runBlocking(line)).toBe(BLOCKED);
});

test('a watched stream changes only with something in it', () => {
  const tested = engine('XADD x 1 f 1', 'XGROUP|CREATE x g 0');
  for (const line of [
    'XDEL x 9',
    'XTRIM x MAXLEN 5',
    'XACK x g 1',
    'XADD z NOMKSTREAM * f 1',
    'XCLAIM x g c 0 1',
    'XAUTOCLAIM x g c 0 0',
  ]) {
    expect(tested.changesOf(line)).toEqual([]);
  }
  for (const line of ['XREADGROUP GROUP g c STREAMS x >', 'XACK x g 1', 'XDEL x 1']) {
    expect(tested.changesOf(line)).toEqual(['x']);
  }
});

test('a snapshot has everything', () => {
  const tested = engine(
    'XADD x 1 f 1',
    'XADD x 2 f 2 g 3',
    'XADD x 3 f 4',
    'XADD x 4 f 5',
    'XGROUP|CREATE x g 0',
    'XGROUP|CREATE x h 2 ENTRIESREAD 2',
    'XREADGROUP GROUP g alice COUNT 2 STREAMS x >',
    'XREADGROUP GROUP g bob COUNT 1 STREAMS x >',
    'XREADGROUP GROUP h bob STREAMS x >',
    'XACK x g 1',
    'XDEL x 2',
  );
  const out = new ByteWriter();
  encodeEntry(tested.keyspace.find('x')!, out);
  const copy = engine();
  copy.keyspace.set('x', decodeEntry(new ByteReader(out.written())).value);
  for (const line of [
    'XINFO|STREAM x FULL COUNT 0',
    'XINFO|GROUPS x',
    'XPENDING x g - + 10',
    'XAUTOCLAIM x g carl 0 0',
    'XADD x 4-* f 6',
    'XREADGROUP GROUP g alice STREAMS x >',
    'XINFO|STREAM x FULL COUNT 0',
  ]) {
    expect(copy.run(line)).toEqual(tested.run(line));
  }
});

test('a deleted consumer leaves nothing pending', () => {
  const tested = engine(
    'XADD x 1 f 1',
    'XADD x 2 f 2',
    'XGROUP|CREATE x g 0',
    'XREADGROUP GROUP g alice COUNT 1 STREAMS x >',
    'XREADGROUP GROUP g bob STREAMS x >',
  );
  expect(tested.run('XGROUP|DELCONSUMER x g alice')).toBe(1);
  expect(tested.run('XPENDING x g')).toEqual([1, '2-0', '2-0', [['bob', '1']]]);
  expect(tested.run('XACK x g 1')).toBe(0);
});

test.each([
  ['xread COUNT 2 BLOCK 0 STREAMS a b 0 0', [5, 6]],
  ['xread STREAMS a 0', [1]],
  ['xreadgroup GROUP streams c NOACK STREAMS a >', [5]],
  ['xread COUNT 2', []],
  ['xgroup|create a g $', [0]],
  ['xinfo|consumers a g', [0]],
  ['xclaim a g c 0 1', [0]],
])('the keys of %s', (line, positions) => {
  const [name, ...args] = line.split(' ');
  expect(keyPositions(COMMANDS_BY_NAME.get(name)!, args)).toEqual(positions);
});
