import { describe, expect, test } from 'vitest';
import { BlockedCalls } from '../../src/backend/blocked-calls.js';
import type { Postman } from '../../src/backend/postman.js';
import type { Replied, ShardCall, Shards } from '../../src/gateway/shards.js';
import { KIND } from '../../src/messages/message.js';

const CALL: ShardCall = { shard: 0, command: { name: 'blpop' }, args: ['l', '0'], resp: 2 };

describe('calls that may wait', () => {
  test('fail if the shard has forgotten the gateway before it says that they wait', () => {
    const replies: Replied[] = [];
    const kinds: number[] = [];
    const shards: Shards = {
      count: 1,
      isShort: () => false,
      run: (_calls, replied) => replies.push(replied),
    };
    const postman = { send: (kind: number) => kinds.push(kind) } as unknown as Postman;
    const calls = new BlockedCalls(shards, postman);
    const failed: Error[] = [];
    calls.run(
      CALL,
      () => expect.unreachable(),
      (error) => failed.push(error),
    );
    calls.forgotten(0);
    expect(failed).toHaveLength(1);
    // The shard may have heard of it after it had forgotten the gateway: it is not to take anything.
    replies[0]([new Uint8Array(0)]);
    expect(kinds).toEqual([KIND.unblock]);
  });
});
