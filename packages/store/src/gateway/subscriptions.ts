/** Which clients of this gateway listen to which channels, and what the shards know of it. */

import { CHANNEL_KINDS, type ChannelKind } from '../engine/channels.js';
import { matchesGlob } from '../engine/glob.js';
import { type Bytes, Push } from '../resp/reply.js';
import type { Channels } from './backend.js';

/** Gets messages. */
export interface Subscriber {
  push(message: Push): void;
  /** Ends the connection at once. */
  kill(): void;
}

interface Waiting {
  readonly done: () => void;
  readonly failed: (error: Error) => void;
}

/** No number of clients. */
const UNKNOWN = -1;

/** A channel or a pattern. */
class Topic {
  readonly subscribers = new Set<Subscriber>();
  /** They get messages as soon as the shards know of them. */
  readonly joining = new Set<Subscriber>();
  /** What was told to the shards last, or `UNKNOWN`. */
  announced = 0;
  isAnnouncing = false;
  /** The shards have forgotten what they were told. */
  isForgotten = false;
  /** These wait until the shards know the present number. */
  waiting: Waiting[] = [];

  get clients(): number {
    return this.subscribers.size + this.joining.size;
  }
}

export class Subscriptions {
  readonly #topics: Readonly<Record<ChannelKind, Map<Bytes, Topic>>> = {
    channel: new Map(),
    pattern: new Map(),
    shard: new Map(),
  };

  constructor(private readonly channels: Channels) {}

  /** How many channels or patterns have subscribers here. */
  count(kind: ChannelKind): number {
    return this.#topics[kind].size;
  }

  /** @param done  from now on, the subscriber gets every message */
  add(
    kind: ChannelKind,
    name: Bytes,
    subscriber: Subscriber,
    done: () => void,
    failed: (error: Error) => void,
  ): void {
    const topics = this.#topics[kind];
    let topic = topics.get(name);
    if (topic === undefined) {
      topic = new Topic();
      topics.set(name, topic);
    }
    if (topic.subscribers.has(subscriber)) {
      done();
      return;
    }
    const { subscribers, joining } = topic;
    joining.add(subscriber);
    topic.waiting.push({
      done: () => {
        if (joining.delete(subscriber)) subscribers.add(subscriber);
        done();
      },
      failed: (error) => {
        joining.delete(subscriber);
        failed(error);
      },
    });
    this.#announce(kind, name, topic);
  }

  /** @param done  the shards know of it */
  remove(kind: ChannelKind, name: Bytes, subscriber: Subscriber, done: () => void): void {
    const topic = this.#topics[kind].get(name);
    if (topic === undefined) {
      done();
      return;
    }
    topic.subscribers.delete(subscriber);
    topic.joining.delete(subscriber);
    // Nothing is to be undone if this fails: who has left gets no more messages.
    topic.waiting.push({ done, failed: done });
    this.#announce(kind, name, topic);
  }

  /** Those that were promised the messages of these channels and patterns. */
  subscribersOf(isMeant: (kind: ChannelKind, name: Bytes) => boolean): ReadonlySet<Subscriber> {
    const found = new Set<Subscriber>();
    for (const kind of CHANNEL_KINDS) {
      for (const [name, { subscribers }] of this.#topics[kind]) {
        if (!isMeant(kind, name)) continue;
        for (const subscriber of subscribers) found.add(subscriber);
      }
    }
    return found;
  }

  /** The shards have forgotten this gateway. */
  announceAll(): void {
    for (const kind of CHANNEL_KINDS) {
      for (const [name, topic] of this.#topics[kind]) {
        topic.announced = 0;
        topic.isForgotten = true;
        this.#announce(kind, name, topic);
      }
    }
  }

  publish(channel: Bytes, message: Bytes, isSharded: boolean): void {
    const topic = this.#topics[isSharded ? 'shard' : 'channel'].get(channel);
    if (topic !== undefined) {
      const type = isSharded ? 'smessage' : 'message';
      const push = new Push([type, channel, message]);
      for (const subscriber of topic.subscribers) subscriber.push(push);
    }
    if (isSharded) return;
    for (const [pattern, { subscribers }] of this.#topics.pattern) {
      if (!matchesGlob(pattern, channel)) continue;
      const push = new Push(['pmessage', pattern, channel, message]);
      for (const subscriber of subscribers) subscriber.push(push);
    }
  }

  /** Tells the shards one number at a time, so that the last one is the one that stays. */
  #announce(kind: ChannelKind, name: Bytes, topic: Topic): void {
    if (topic.isAnnouncing) return;
    const { clients } = topic;
    const waiting = topic.waiting;
    topic.waiting = [];
    if (clients === topic.announced) {
      for (const { done } of waiting) done();
      this.#dropIfUnused(kind, name, topic);
      return;
    }
    topic.isAnnouncing = true;
    topic.isForgotten = false;
    /** @param announced  what the shards know now */
    const goOn = (announced: number): void => {
      topic.isAnnouncing = false;
      // They may have been told before they have forgotten it, or after.
      topic.announced = topic.isForgotten ? UNKNOWN : announced;
      if (topic.waiting.length > 0 || topic.isForgotten) this.#announce(kind, name, topic);
      else this.#dropIfUnused(kind, name, topic);
    };
    this.channels.announce(
      kind,
      name,
      clients,
      () => {
        // What was told may be forgotten already: then they wait until it is told again.
        if (topic.isForgotten) topic.waiting.unshift(...waiting);
        else for (const { done } of waiting) done();
        goOn(clients);
      },
      (error) => {
        for (const { failed } of waiting) failed(error);
        goOn(UNKNOWN);
      },
    );
  }

  #dropIfUnused(kind: ChannelKind, name: Bytes, topic: Topic): void {
    const isUsed = topic.clients > 0 || topic.isAnnouncing || topic.waiting.length > 0;
    if (!isUsed && this.#topics[kind].get(name) === topic) this.#topics[kind].delete(name);
  }
}
