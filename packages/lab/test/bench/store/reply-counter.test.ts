/** The load of `bench store` counts replies however they arrive, and takes none for good that is not. */
import { expect, test } from 'vitest';
import { ReplyCounter } from '../../../src/bench/store/reply-counter.js';
import { expectSame } from '../peers/pieces.js';

/** Notes each complete reply. */
class Heard {
  private readonly counter = new ReplyCounter();

  constructor(private readonly heard: unknown[]) {}

  push(chunk: Buffer): void {
    for (let count = this.counter.push(chunk); count > 0; count--) this.heard.push('reply');
  }
}

test('replies of all kinds, in any pieces', () => {
  const replies = [
    '+OK\r\n',
    ':1\r\n',
    '$3\r\nxxx\r\n',
    '$2\r\n\r\n\r\n',
    '*2\r\n+OK\r\n*1\r\n:7\r\n',
  ];
  expectSame(
    Buffer.from(replies.join('')),
    replies.map(() => 'reply'),
    (heard) => new Heard(heard),
  );
});

test.each(['-ERR full\r\n', '*1\r\n-ERR full\r\n', '$-1\r\n', ':0\r\n', '*-1\r\n', '?\r\n'])(
  'a load fails by the reply %j',
  (reply) => {
    expect(() => new ReplyCounter().push(Buffer.from(reply))).toThrow();
  },
);
