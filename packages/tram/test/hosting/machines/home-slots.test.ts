/** Slots of clients on several machines: free at once after a leave, and otherwise only when nobody can come back. */
import { beforeEach, describe, expect, test } from 'vitest';
import { resolveConfig } from '../../../src/config/config.js';
import { HomeSlots, homeOf } from '../../../src/hosting/machines/home-slots.js';
import { ArenaMap, OWNER, PARTICIPANT } from '../../../src/memory/arena.js';
import { Layout, NO_SALT } from '../../../src/protocol/layout.js';

const HOSTS = 3;
const HOST = 1;
const RETURN_MS = 10_000;
const { sizes } = resolveConfig({ groups: 1, clients: 5 }, NO_SALT);
const map = new ArenaMap(new Layout(sizes), HOSTS, 32, 0, [0, 1, 2]);
/** Of this host: 1 and 4. */
const SLOTS = [1, 4];

let words: Int32Array;
let nowMs: number;
let slots: HomeSlots;

function restart(past: 'kept' | 'lost'): void {
  if (past === 'lost') words.fill(0);
  slots = new HomeSlots(words, map, HOST, false, () => nowMs);
  slots.open(past);
}

const ownerOf = (slot: number): number => map.participant(map.replicas + slot) + PARTICIPANT.owner;
const takeAll = (): (number | undefined)[] => [slots.take()?.slot, slots.take()?.slot];

/** As a client does, before it ends its connection. */
function leave(slot: number): void {
  words[ownerOf(slot)] = OWNER.nobody;
  slots.leaves(slot);
}

beforeEach(() => {
  words = new Int32Array(map.words);
  nowMs = Date.UTC(2026, 5);
  slots = new HomeSlots(words, map, HOST, false, () => nowMs);
});

describe('a slot', () => {
  test('is given by its home, once that has begun, with a session that tells who gave it', () => {
    expect(slots.take()).toBeUndefined();
    slots.open('none');
    const taken = [slots.take()!, slots.take()!];
    expect(taken.map(({ slot }) => slot)).toEqual(SLOTS);
    expect(taken.map(({ slot }) => homeOf(slot, HOSTS))).toEqual([HOST, HOST]);
    expect(taken.map(({ session }) => session % HOSTS)).toEqual([HOST, HOST]);
    expect(taken[1].session).toBeGreaterThan(taken[0].session);
    expect(slots.take()).toBeUndefined();
    expect(words[ownerOf(1)]).toBe(OWNER.present);
  });

  test('ends all earlier sessions when a client connects with a later one, at its home or elsewhere', () => {
    const endedOf = (slot: number): number =>
      words[map.participant(map.replicas + slot) + PARTICIPANT.endedSession];
    slots.open('none');
    const { session } = slots.take()!;
    expect(endedOf(1)).toBe(session - 1);
    // The client returns after its connection broke.
    slots.leaves(1);
    slots.returns(1, session);
    expect(endedOf(1)).toBe(session - 1);
    slots.returns(0, 1000);
    slots.returns(0, 1003);
    expect(endedOf(0)).toBe(1002);
  });

  test('is free at once when its client has taken leave', () => {
    slots.open('none');
    takeAll();
    leave(4);
    expect(slots.take()).toMatchObject({ slot: 4 });
  });

  test('waits for a client that has vanished', () => {
    slots.open('none');
    takeAll();
    slots.leaves(1);
    expect(words[ownerOf(1)]).toBe(OWNER.away);
    nowMs += RETURN_MS - 1;
    expect(slots.take()).toBeUndefined();
    nowMs++;
    expect(slots.take()).toMatchObject({ slot: 1 });
  });

  test('is not given to another while its client is back', () => {
    slots.open('none');
    const { slot, session } = slots.take()!;
    slots.take();
    slots.leaves(slot);
    expect(slots.isStillOf(slot, session)).toBe(true);
    slots.returns(slot, session);
    nowMs += 2 * RETURN_MS;
    expect(slots.take()).toBeUndefined();
  });

  test('is lost for a client that comes too late', () => {
    slots.open('none');
    const { slot, session } = slots.take()!;
    slots.take();
    slots.leaves(slot);
    nowMs += RETURN_MS;
    const next = slots.take()!;
    expect(next.slot).toBe(slot);
    expect(slots.isStillOf(slot, session)).toBe(false);
    expect(slots.isStillOf(slot, next.session)).toBe(true);
  });

  test('that there is not is nobody’s', () => {
    slots.open('none');
    expect(slots.isStillOf(sizes.clients, 7)).toBe(false);
    expect(slots.isStillOf(0, 0)).toBe(false);
    expect(slots.isStillOf(0, 7)).toBe(true);
  });
});

describe('a home that was started again', () => {
  test('waits for the clients that its memory tells of', () => {
    slots.open('none');
    slots.take();
    restart('kept');
    expect(words[ownerOf(1)]).toBe(OWNER.away);
    expect(takeAll()).toEqual([4, undefined]);
    nowMs += RETURN_MS;
    expect(slots.take()).toMatchObject({ slot: 1 });
  });

  test('waits for any if it has lost its memory', () => {
    restart('lost');
    expect(takeAll()).toEqual([undefined, undefined]);
    nowMs += RETURN_MS;
    expect(takeAll()).toEqual(SLOTS);
  });

  test('knows those who came back before it had begun', () => {
    slots.returns(4, 1000);
    slots.open('lost');
    expect(words[ownerOf(4)]).toBe(OWNER.present);
    nowMs += RETURN_MS;
    expect(takeAll()).toEqual([1, undefined]);
  });

  test('gives sessions above those of clients that come back', () => {
    slots.open('none');
    const session = slots.take()!.session + 3000;
    slots.returns(0, session);
    expect(slots.take()!.session).toBeGreaterThan(session);
  });
});

test('sessions of an era start with its first session, and earlier ones have ended', () => {
  slots = new HomeSlots(words, map, HOST, true, () => nowMs);
  expect(slots.awaitsEra).toBe(true);
  const firstSession = 2 ** 29;
  slots.open('none', firstSession);
  expect(slots.awaitsEra).toBe(false);
  const { slot, session } = slots.take()!;
  expect(session).toBeGreaterThanOrEqual(firstSession);
  expect(slots.isStillOf(slot, firstSession - 1)).toBe(false);
  expect(slots.isStillOf(slot + 1, firstSession - 1)).toBe(false);
  expect(slots.isStillOf(slot + 1, firstSession)).toBe(true);
});
