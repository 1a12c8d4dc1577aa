/** What is done with the changes of Redis. */

import { beforeEach, expect, it, test } from 'vitest';
import { crc64 } from '../../src/engine/rdb/crc64.js';
import { dumpOfForm, readableDump } from '../../src/engine/rdb/dump.js';
import { Changes } from '../../src/import/changes.js';
import type { Connection } from '../../src/import/connection.js';
import { ErrorReply, OK, type Reply } from '../../src/resp/reply.js';

let sent: { readonly words: string; readonly answer: (reply: Reply) => void }[];
let offsets: number[];
let changes: Changes;

beforeEach(() => {
  sent = [];
  offsets = [];
  const target = {
    send: (words: readonly string[], answer: (reply: Reply) => void) => {
      sent.push({ words: words.join(' '), answer });
    },
    room: async () => undefined,
    settled: async () => undefined,
  };
  changes = new Changes(target as unknown as Connection, 2, (offset) => offsets.push(offset));
});

const add = async (...commands: string[]): Promise<void> => {
  for (const command of commands) await changes.add(command.split(' '), ++position);
};
let position = 0;
beforeEach(() => {
  position = 0;
});

const answerNext = (reply: Reply): void => sent.shift()!.answer(reply);

it('a transaction is sent as a whole, and counts once it is answered', async () => {
  await add('SELECT 2', 'MULTI', 'SET a 1');
  expect(sent).toEqual([]);
  await add('SET b 1', 'EXEC', 'PING');
  expect(sent.map(({ words }) => words)).toEqual(['MULTI', 'SET a 1', 'SET b 1', 'EXEC']);
  for (let i = 0; i < 3; i++) answerNext(OK);
  expect(offsets).toEqual([1]);
  answerNext([OK, OK]);
  // With the PING after it.
  expect(offsets).toEqual([1, 6]);
});

it('what is for another database is not sent, but what is for all is', async () => {
  await add('SELECT 0', 'SET a 1', 'MULTI', 'SET b 1', 'EXEC', 'PUBLISH channel news', 'FLUSHALL');
  expect(sent.map(({ words }) => words)).toEqual(['PUBLISH channel news', 'FLUSHALL']);
  expect(changes.leftOut).toBe(2);
});

it.each(['SWAPDB 2 7', 'SWAPDB 7 2', 'MOVE a 7', 'COPY a b REPLACE DB 2'])(
  '%s is refused',
  async (command) => {
    await add(command.startsWith('COPY') ? 'SELECT 7' : 'SELECT 2');
    await expect(add(command)).rejects.toThrow('and the store has only one');
  },
);

it.each(['SWAPDB 3 7', 'COPY a b DB 7'])('%s is left out', async (command) => {
  await add('SELECT 2', command);
  expect(sent).toEqual([]);
  expect(changes.leftOut).toBe(1);
});

it('an error, also one within a transaction, ends it, and nothing counts from there on', async () => {
  await add('SELECT 2', 'MULTI', 'INCR a', 'EXEC', 'SET b 1');
  for (let i = 0; i < 2; i++) answerNext(OK);
  answerNext([new ErrorReply('ERR value is not an integer or out of range')]);
  answerNext(OK);
  expect(offsets).toEqual([1]);
  await expect(add('SET c 1')).rejects.toThrow('refused a change of Redis, EXEC: ERR value is not');
  await expect(changes.settled()).rejects.toThrow('refused a change');
});

test('a dump of a later version is read as far as the type is known', () => {
  const dump = dumpOfForm(0, Buffer.from([1, 97]));
  const later = Buffer.from(dump.subarray(0, -8));
  later.writeUInt16LE(80, later.length - 2);
  const text = Buffer.concat([later, crc64(later)]).toString('latin1');
  expect(readableDump(text)).toEqual(dump);
  expect(readableDump(dump.toString('latin1'))).toBe(dump.toString('latin1'));
});
