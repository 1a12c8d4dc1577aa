/** The Redis protocol: commands as sent, replies read however they arrive. */
import { expect, test } from 'vitest';
import {
  encodeCommand,
  type Reply,
  ReplyReader,
  RespError,
} from '../../../src/bench/peers/resp.js';
import { expectSame } from './pieces.js';

test('a command is an array of strings', () => {
  expect(encodeCommand('XADD', 's', Uint8Array.of(0, 13, 10)).toString('latin1')).toBe(
    '*3\r\n$4\r\nXADD\r\n$1\r\ns\r\n$3\r\n\0\r\n\r\n',
  );
});

test('replies are read, however they arrive', () => {
  const bytes = Buffer.from(
    '+OK\r\n:17\r\n:-1\r\n$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n-ERR no\r\n*3\r\n+QUEUED\r\n*1\r\n:2\r\n-ERR in\r\n*0\r\n*-1\r\n',
  );
  const expected: Reply[] = [
    ...['OK', 17, -1, 'a\r\nbc', '', null, new RespError('ERR no')],
    ...[['QUEUED', [2], new RespError('ERR in')], [], null],
  ];
  expectSame(bytes, expected, (heard) => new ReplyReader((reply) => heard.push(reply)));
});

test('bytes that are no reply are refused', () => {
  expect(() => new ReplyReader(() => {}).push(Buffer.from('HTTP/1.1\r\n'))).toThrow('byte 72');
});
