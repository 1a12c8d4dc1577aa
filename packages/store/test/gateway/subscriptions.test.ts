import { describe, expect, it } from 'vitest';
import type { Channels } from '../../src/gateway/backend.js';
import { Subscriptions } from '../../src/gateway/subscriptions.js';
import type { Push } from '../../src/resp/reply.js';

interface Announcement {
  readonly name: string;
  readonly clients: number;
  done(): void;
  failed(error: Error): void;
}

function setUp() {
  const announced: Announcement[] = [];
  const channels: Channels = {
    announce: (_kind, name, clients, done, failed) => {
      announced.push({ name, clients, done, failed });
    },
  };
  return { announced, subscriptions: new Subscriptions(channels) };
}

function newSubscriber() {
  const received: unknown[] = [];
  const kill = (): void => undefined;
  return { received, push: (message: Push) => received.push(message.items), kill };
}

const nothing = (): void => undefined;

describe('subscriptions', () => {
  it('get messages once the shards know of them', () => {
    const { announced, subscriptions } = setUp();
    const one = newSubscriber();
    let isDone = false;
    subscriptions.add(
      'channel',
      'a',
      one,
      () => {
        isDone = true;
      },
      nothing,
    );
    subscriptions.publish('a', 'too early', false);
    expect([isDone, one.received]).toEqual([false, []]);
    announced[0].done();
    subscriptions.publish('a', 'x', false);
    subscriptions.publish('a', 'x', true);
    subscriptions.publish('b', 'x', false);
    expect([isDone, one.received]).toEqual([true, [['message', 'a', 'x']]]);
  });

  it('are not confirmed if the shards have forgotten them meanwhile', () => {
    const { announced, subscriptions } = setUp();
    const done: string[] = [];
    subscriptions.add('channel', 'a', newSubscriber(), () => done.push('one'), nothing);
    subscriptions.announceAll();
    announced[0].done();
    expect(done).toEqual([]);
    announced[1].done();
    expect(done).toEqual(['one']);
  });

  it('tell the shards one number at a time, so that the last one stays', () => {
    const { announced, subscriptions } = setUp();
    const [one, two, three] = [newSubscriber(), newSubscriber(), newSubscriber()];
    const done: string[] = [];
    subscriptions.add('channel', 'a', one, () => done.push('one'), nothing);
    subscriptions.add('channel', 'a', two, () => done.push('two'), nothing);
    subscriptions.add('channel', 'a', three, () => done.push('three'), nothing);
    subscriptions.remove('channel', 'a', two, () => done.push('two left'));
    expect(announced.map(({ clients }) => clients)).toEqual([1]);
    announced[0].done();
    expect(done).toEqual(['one']);
    expect(announced.map(({ clients }) => clients)).toEqual([1, 2]);
    announced[1].done();
    expect(done).toEqual(['one', 'two', 'three', 'two left']);
    subscriptions.publish('a', 'x', false);
    expect([one, two, three].map(({ received }) => received.length)).toEqual([1, 0, 1]);
  });

  it('are dropped when the last client has left', () => {
    const { announced, subscriptions } = setUp();
    const one = newSubscriber();
    subscriptions.add('pattern', 'a*', one, nothing, nothing);
    announced[0].done();
    subscriptions.publish('ab', 'x', false);
    expect(one.received).toEqual([['pmessage', 'a*', 'ab', 'x']]);
    subscriptions.remove('pattern', 'a*', one, nothing);
    expect(subscriptions.count('pattern')).toBe(1);
    announced[1].done();
    expect(subscriptions.count('pattern')).toBe(0);
  });

  it('fail if the shards can not be told, and can be tried again', () => {
    const { announced, subscriptions } = setUp();
    const one = newSubscriber();
    const errors: Error[] = [];
    subscriptions.add('channel', 'a', one, nothing, (error) => errors.push(error));
    announced[0].failed(new Error('lost'));
    expect(errors).toHaveLength(1);
    expect(subscriptions.count('channel')).toBe(0);
    subscriptions.add('channel', 'a', one, nothing, nothing);
    announced[1].done();
    subscriptions.publish('a', 'x', false);
    expect(one.received).toHaveLength(1);
  });

  it('are told again to shards that have forgotten them', () => {
    const { announced, subscriptions } = setUp();
    subscriptions.add('channel', 'a', newSubscriber(), nothing, nothing);
    announced[0].done();
    subscriptions.announceAll();
    expect(announced.map(({ clients }) => clients)).toEqual([1, 1]);
    // It is not known whether the shard forgot it before or after this number.
    subscriptions.announceAll();
    announced[1].done();
    expect(announced.map(({ clients }) => clients)).toEqual([1, 1, 1]);
    announced[2].done();
    expect(announced).toHaveLength(3);
  });

  it('are given up at shards that may know of them although they have forgotten others', () => {
    const { announced, subscriptions } = setUp();
    const one = newSubscriber();
    subscriptions.add('pattern', 'a*', one, nothing, nothing);
    announced[0].done();
    subscriptions.announceAll();
    subscriptions.announceAll();
    subscriptions.remove('pattern', 'a*', one, nothing);
    announced[1].done();
    expect(announced.map(({ clients }) => clients)).toEqual([1, 1, 0]);
    announced[2].done();
    expect(subscriptions.count('pattern')).toBe(0);
  });
});
