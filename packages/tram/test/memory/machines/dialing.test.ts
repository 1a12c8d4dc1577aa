/** One host that we dial: what we say to it, when we try again, and what we complain of. */
import { expect, test } from 'vitest';
import type { Connection } from '../../../src/memory/fabric/connection.js';
import { Dialing } from '../../../src/memory/machines/dialing.js';
import { CALLER, Handshake, REFUSAL } from '../../../src/memory/machines/handshake.js';

const DIGEST = new Uint8Array(8).fill(1);
const WELCOME = { base: 0, keyLow: 1, keyHigh: 2, slot: 3, session: 4, birth: 5, era: 0 };
const NOTHING = new Uint8Array(0);

function newDialing() {
  const ours = new Handshake(new Uint8Array(32).fill(7), DIGEST, 3);
  const theirs = new Handshake(new Uint8Array(32).fill(7), DIGEST, 2);
  const complaints: string[] = [];
  const closed: Connection[] = [];
  const failure: { error?: Error } = {};
  const world = { nowUs: 0, calls: [] as Uint8Array[], failure, complaints, closed, theirs };
  const dialing = new Dialing(2, {
    handshake: ours,
    connect: (data) => {
      world.calls.push(data);
      if (failure.error !== undefined) throw failure.error;
      const connection = { close: () => closed.push(connection) } as unknown as Connection;
      return connection;
    },
    complain: (why) => complaints.push(why),
    nowUs: () => world.nowUs,
  });
  const hello = { caller: CALLER.host, number: 3, session: 0, birth: 0, seenBirth: 0 };
  const dial = () => dialing.dial(ours.newHello(hello), world.nowUs);
  return { dialing, dial, world };
}

type World = ReturnType<typeof newDialing>['world'];

/** What the host says to the last call. */
function challengeBy({ theirs, calls }: World): Uint8Array {
  const verdict = theirs.judge(calls.at(-1)!);
  if (!('refusal' in verdict)) throw new Error('let in without a proof');
  return verdict.refusal;
}

function welcomeBy({ theirs, calls }: World): Uint8Array {
  const verdict = theirs.judge(calls.at(-1)!);
  if ('refusal' in verdict) throw new Error('refused');
  return theirs.welcome(verdict.said, WELCOME);
}

test('it calls twice, and is in', () => {
  const { dialing, dial, world } = newDialing();
  expect(dialing.isDue(0)).toBe(true);
  dial();
  const first = dialing.connection;
  dialing.onRefused(challengeBy(world), 'refused');
  expect(world.calls).toHaveLength(2);
  expect(dialing.connection).not.toBe(first);
  expect(dialing.onConnected(welcomeBy(world))).toEqual(WELCOME);
  expect(dialing.isWaiting).toBe(false);
  expect(dialing.isUnanswered(1e9, 1)).toBe(false);
  expect(world.complaints).toEqual([]);
  dialing.onEnd();
  expect(dialing.connection).toBeUndefined();
  expect([dialing.isDue(19_999), dialing.isDue(20_000)]).toEqual([false, true]);
});

test('it waits longer each time, to a limit, and complains of what is new', () => {
  const { dialing, dial, world } = newDialing();
  const waitsUs = Array.from({ length: 8 }, (_, i) => {
    dial();
    dialing.onRefused(NOTHING, i < 5 ? 'nobody is there' : 'no route');
    const fromUs = world.nowUs;
    while (!dialing.isDue(world.nowUs)) world.nowUs += 10_000;
    return world.nowUs - fromUs;
  });
  expect(waitsUs.map((us) => us / 1000)).toEqual([20, 40, 80, 160, 320, 640, 1000, 1000]);
  expect(world.complaints).toEqual(['nobody is there', 'no route']);
  expect(dialing.refusal).toBe(0);
});

test('it calls a host that does not know it ever more rarely, and another reason soon again', () => {
  const { dialing, dial, world } = newDialing();
  const waitUs = (refusal: number): number => {
    dial();
    dialing.onRefused(challengeBy(world), 'refused');
    dialing.onRefused(Uint8Array.of(refusal), 'refused');
    const fromUs = world.nowUs;
    while (!dialing.isDue(world.nowUs)) world.nowUs += 10_000;
    return world.nowUs - fromUs;
  };
  const waitsUs = Array.from({ length: 14 }, () => waitUs(REFUSAL.unknownCaller));
  expect(waitsUs.map((us) => us / 1e6).slice(5)).toEqual([
    0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 60, 60,
  ]);
  expect(world.complaints).toEqual(['it does not know us']);
  waitUs(REFUSAL.notReady);
  expect(waitUs(REFUSAL.notReady)).toBe(1_000_000);
});

test('it knows what it was refused for, until that is over', () => {
  const { dialing, dial, world } = newDialing();
  dial();
  dialing.onRefused(challengeBy(world), 'refused');
  dialing.onRefused(Uint8Array.of(REFUSAL.noSlot), 'refused');
  expect(dialing).toMatchObject({
    refusal: REFUSAL.noSlot,
    complaint: 'all its client slots are taken',
  });
  expect(dialing.isDue(0)).toBe(false);
  dialing.retryNow();
  expect(dialing.refusal).toBe(0);
  expect(dialing.isDue(0)).toBe(true);
});

test('it goes in nowhere without a proof, and answers one challenge only', () => {
  const { dialing, dial, world } = newDialing();
  dial();
  const call = dialing.connection;
  expect(dialing.onConnected(NOTHING)).toBeUndefined();
  expect(world.closed).toEqual([call]);
  expect(dialing.complaint).toBe('it could not prove that it knows the secret and is this host');
  dial();
  const challenge = challengeBy(world);
  dialing.onRefused(challenge, 'refused');
  dialing.onRefused(challenge, 'refused again');
  expect(dialing).toMatchObject({ isWaiting: true, complaint: 'refused again' });
});

test('it gives up a call that is not answered', () => {
  const { dialing, dial, world } = newDialing();
  dial();
  const call = dialing.connection;
  expect(dialing.isUnanswered(1000, 1000)).toBe(false);
  expect(dialing.isUnanswered(1001, 1000)).toBe(true);
  dialing.giveUp('it does not answer');
  expect(world.closed).toEqual([call]);
  expect(dialing.isUnanswered(1e9, 1000)).toBe(false);
  expect(world.complaints).toEqual(['it does not answer']);
});

test('it tries again if there is no calling at all, but a bug is not swallowed', () => {
  const { dialing, dial, world } = newDialing();
  const gone = Object.assign(new Error('our address is gone'), {
    code: 'TRAM_ADDRESS_UNAVAILABLE',
  });
  world.failure.error = gone;
  dial();
  expect(dialing).toMatchObject({ isWaiting: true, complaint: gone.message });
  expect([dialing.isDue(19_999), dialing.isDue(20_000)]).toEqual([false, true]);
  delete world.failure.error;
  dial();
  world.failure.error = gone;
  dialing.onRefused(challengeBy(world), 'refused');
  expect(dialing.isWaiting).toBe(true);
  expect(world.complaints).toEqual([gone.message]);
  world.failure.error = new TypeError('a bug');
  expect(dial).toThrow('a bug');
});
