/** The NATS protocol: requests as sent, answers read however they arrive. */
import { expect, test } from 'vitest';
import { encodePublish, encodeSubscribe, NatsReader } from '../../../src/bench/peers/nats-wire.js';
import { expectSame } from './pieces.js';

test('a publish names where its acknowledgement goes', () => {
  expect(encodePublish('shard-1', '_INBOX.1.7', Buffer.from('hello')).toString()).toBe(
    'PUB shard-1 _INBOX.1.7 5\r\nhello\r\n',
  );
  expect(encodeSubscribe('_INBOX.1.*', 1)).toBe('SUB _INBOX.1.* 1\r\n');
});

test('operations of the server are read, however they arrive', () => {
  const bytes = Buffer.from(
    'INFO {"a":1}\r\nPONG\r\nMSG _INBOX.1.7 1 6\r\nab\r\ncd\r\nPING\r\nMSG a 1 b 0\r\n\r\n+OK\r\n' +
      "HMSG _INBOX.1.8 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\nHMSG x 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n-ERR 'no'\r\n",
  );
  const expected = [
    ...['pong', ['_INBOX.1.7', 'ab\r\ncd', undefined], 'ping', ['a', '', undefined]],
    ...[['_INBOX.1.8', '', 'NATS/1.0 503'], ['x', 'hi', 'NATS/1.0'], "error 'no'"],
  ];
  expectSame(
    bytes,
    expected,
    (heard) =>
      new NatsReader({
        message: ({ subject, payload, status }) =>
          heard.push([subject, payload.toString(), status]),
        ping: () => heard.push('ping'),
        pong: () => heard.push('pong'),
        error: (text) => heard.push(`error ${text}`),
      }),
  );
});
