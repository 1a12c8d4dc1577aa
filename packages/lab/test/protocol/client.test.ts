/** The assertions of a client, its back pressure, and the names of its messages. */

import { FRAME_WORDS, HEAD_WORDS, seal, slotAt } from 'tram-multicast/internal/memory/record.js';
import { InvariantError } from 'tram-multicast/internal/protocol/assert.js';
import { MESSAGE, OUTCOME, REPLY, seriesOf } from 'tram-multicast/internal/protocol/layout.js';
import { GROUPS_MAX, highMask, lowMask } from 'tram-multicast/internal/protocol/overlay.js';
import { describe, expect, test } from 'vitest';
import { Stage } from '../../src/sim/stage.js';
import { attack } from './attack.js';

const NOTHING = new Uint8Array(0);

describe('a message that would overwrite other memory fails an assertion', () => {
  test.each<[string, number, number, Uint8Array, string]>([
    ['no destination', 0, 0, NOTHING, 'destinations are groups'],
    ['the first unknown group', 8, 0, NOTHING, 'destinations are groups'],
    ['an unknown group beside known ones', 1 | (1 << 31), 0, NOTHING, 'destinations are groups'],
    ['an unknown group in the upper half', 1, 1, NOTHING, 'destinations are groups'],
    ['the last group of all', 0, 1 << 31, NOTHING, 'destinations are groups'],
    ['a payload of one byte too many', 1, 0, new Uint8Array(33), 'a payload fits'],
  ])(
    '%s: the client does not accept it, and the next message has the first number',
    (_, low, high, payload, sentence) => {
      const stage = new Stage('groups=3 tree=-1,0,0 replicas=1 payload=32');
      const { client } = stage.world.clients[0];
      expect(() => client.offer(low, high, payload)).toThrow(new InvariantError(sentence));
      expect(client.outstanding).toBe(0);
      expect(client.lastCall).toBeUndefined();
      for (let number = 0; number < 3; number++) {
        expect(stage.send(0, [1, 2], 'x'.repeat(number * 16))).toBeDefined();
        expect(client.lastCall).toMatchObject({ entryGroup: 0, number });
      }
      stage.settle();
      expect(stage.world.ledger.orders.map((order) => order.length)).toEqual([0, 3, 3]);
    },
  );
});

test('each entry group has its own numbers', () => {
  const stage = new Stage('groups=3 tree=-1,0,0 replicas=1');
  const { client } = stage.world.clients[0];
  const calls = [[1], [2], [1, 2], [1], [2], [0]].map((groups) => {
    stage.send(0, groups, '');
    return [client.lastCall.entryGroup, client.lastCall.number];
  });
  expect(calls).toEqual([
    [1, 0],
    [2, 0],
    [0, 0],
    [1, 1],
    [2, 1],
    [0, 1],
  ]);
  stage.settle();
});

attack(
  'messages have different names beyond 2³², at the entry group and below it',
  { 'short-numbers': /delivered a message that nobody sent/ },
  ({ Stage }) => {
    const stage = new Stage('groups=2 tree=-1,0 replicas=3 clients=1', {
      sizes: { firstIndex: 2 ** 32 - 2 },
    });
    const names = stage.world.replicas.map((host) => {
      const seen: string[] = [];
      const deliver = host.service.deliver.bind(host.service);
      host.service.deliver = (message, replier) => {
        seen.push(`${message.entryGroup}.${message.number}`);
        return deliver(message, replier);
      };
      return seen;
    });
    for (let i = 0; i < 4; i++) stage.send(0, [0, 1], `m${i}`);
    stage.settle();
    for (const seen of names) {
      expect(seen).toEqual(['0.4294967294', '0.4294967295', '0.4294967296', '0.4294967297']);
    }
  },
);

attack(
  'a reply that was left 2³² messages ago is not the reply to the present message',
  { 'reply-of-any-series': /tooLarge, not ok/ },
  ({ Stage }) => {
    const stage = new Stage('replicas=3 clients=1', { sizes: { firstIndex: 2 ** 32 } });
    const { world } = stage;
    const [, B] = stage.group(0);
    const { client, memory } = world.clients[0];
    stage.send(0, [0], 'present');
    const { slot, number } = client.lastCall;
    const window = slotAt(memory.own, world.layout.reply(B.participant, slot));
    memory.own[window.at + HEAD_WORDS + REPLY.series] = seriesOf(0, number - 2 ** 32);
    memory.own[window.at + HEAD_WORDS + REPLY.outcome] = OUTCOME.tooLarge;
    seal(window, 0, REPLY.payload, client.session, number);
    memory.own[world.layout.replyNotification(B.participant)]++;
    stage.settle();
  },
);

test('a message can go to any of 64 groups', () => {
  const stage = new Stage(`groups=${GROUPS_MAX} tree=base replicas=1`, { sizes: { callsMax: 64 } });
  const { client } = stage.world.clients[0];
  for (let group = 0; group < GROUPS_MAX; group++) {
    expect(client.offer(lowMask(group), highMask(group), NOTHING)).toBe('accepted');
    expect(client.lastCall.entryGroup).toBe(group);
  }
});

describe('back pressure', () => {
  test('with all calls unanswered, whatever their entry group; one reply frees one call', () => {
    const stage = new Stage('groups=2 tree=-1,0 replicas=1', { sizes: { callsMax: 3 } });
    const { world } = stage;
    const { client } = world.clients[0];
    for (const groups of [[0], [1], [0, 1]]) expect(stage.send(0, groups, 'm')).toBeDefined();
    expect(client.offer(1, 0, NOTHING)).toBe('backPressured');
    expect(client.offer(2, 0, NOTHING)).toBe('backPressured');
    expect(client.outstanding).toBe(3);
    expect(world.tally.transitions.get('client back-pressured')).toBe(2);

    stage.until(() => client.outstanding === 2);
    const sent = world.ledger.messages;
    while (stage.send(0, [0], 'n') !== undefined);
    expect(world.ledger.messages).toBe(sent + 1);
    stage.settle();
  });

  test('with a full ring, until the oldest message is answered', () => {
    // There are more calls than the ring has room for.
    const payload = 'x'.repeat(32);
    const stage = new Stage('groups=2 tree=-1,0 replicas=3 payload=32', {
      sizes: { callsMax: 8, inboxBytes: 2 * 4 * (FRAME_WORDS + MESSAGE.payload + 8) },
    });
    const { world } = stage;
    const { client } = world.clients[0];
    const fits = Math.floor(world.layout.inboxWords / world.layout.inboxRecordWordsMax);
    stage.group(0);
    stage.group(1);

    // The oldest message waits for group 1, none of whose members runs.
    for (const host of world.members(1)) world.pause(host);
    stage.send(0, [0, 1], payload);
    for (let i = 1; i < fits; i++) expect(stage.send(0, [0], payload)).toBeDefined();
    expect(stage.send(0, [0], payload)).toBeUndefined();
    // Room at one entry group is not room at another.
    expect(stage.send(0, [1], payload)).toBeDefined();
    stage.until(() => client.outstanding === 2);
    stage.runFor(2000);
    expect(stage.send(0, [0], payload)).toBeUndefined();

    for (const host of world.members(1)) world.resume(host);
    stage.until(() => client.outstanding === 0);
    for (let i = 0; i < fits; i++) expect(stage.send(0, [0], payload)).toBeDefined();
    expect(stage.send(0, [0], payload)).toBeUndefined();
    stage.settle();
  });

  test('to the last word of the ring and not beyond', () => {
    const stage = new Stage('replicas=1 payload=52', { sizes: { inboxBytes: 256 } });
    expect(stage.world.layout.inboxWords).toBe(64);
    // A message takes 12 words and its payload.
    for (let i = 0; i < 2; i++) expect(stage.send(0, [0], 'x'.repeat(32))).toBeDefined();
    expect(stage.send(0, [0], 'x'.repeat(52))).toBeUndefined();
    expect(stage.send(0, [0], 'x'.repeat(49))).toBeUndefined();
    expect(stage.send(0, [0], 'x'.repeat(48))).toBeDefined();
    expect(stage.send(0, [0], '')).toBeUndefined();
    stage.settle();
    expect(stage.world.ledger.orders[0]).toHaveLength(3);
  });

  test('the largest messages pass through a ring that holds only one of them', () => {
    const stage = new Stage('replicas=3 rings=0 payload=32');
    for (let i = 0; i < 40; i++) {
      stage.until(() => stage.send(0, [0], 'x'.repeat(32)) !== undefined);
    }
    stage.settle();
    expect(stage.world.ledger.orders[0]).toHaveLength(40);
  });
});
