/** A link over a fake connection that pushes back, delivers late and breaks as the test says. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ArenaMap, HOST, PARTICIPANT } from '../../../src/memory/arena.js';
import { OPEN, type Outcome } from '../../../src/memory/contract.js';
import type { Connection } from '../../../src/memory/fabric/connection.js';
import type { Extents } from '../../../src/memory/fabric/extents.js';
import type { Registration, RemoteRegion } from '../../../src/memory/fabric/registration.js';
import type { LinkBuffers, RegisteredBuffer } from '../../../src/memory/machines/buffers.js';
import { Link } from '../../../src/memory/machines/link.js';
import { Parcels } from '../../../src/memory/machines/parcels.js';
import type { Poster } from '../../../src/memory/machines/posts.js';

const PEER = 1;
const OWN_HOST = 0;
const OTHER_HOST = 1;
const OUT_WORDS = 64;
const IN_WORDS = 32;
const FLAG_WORDS = 16;
const PATIENCE_US = 1000;
/** Some batches do not fit. */
const PARCEL_WORDS = 24;

const map = new ArenaMap(
  {
    sizes: { groups: 1, replicas: 2, clients: 1 },
    replicaRegionWords: 64,
    clientRegionWords: 16,
    row: 0,
    scratchWords: () => 0,
  },
  2,
  0,
  0,
  [0, 1],
  0,
  PARCEL_WORDS,
);

interface Extent {
  readonly source: Int32Array;
  readonly local: number;
  readonly remote: number;
  readonly count: number;
}

/** As `fabric/extents.ts`, to be looked at. */
class FakeExtents {
  readonly countMax = 3;
  list: Extent[] = [];

  get count(): number {
    return this.list.length;
  }

  clear(): void {
    this.list = [];
  }

  add(
    local: Registration,
    localAt: number,
    _: RemoteRegion,
    remoteAt: number,
    bytes: number,
  ): void {
    const source = (local as Registered).words;
    this.list.push({ source, local: localAt / 4, remote: remoteAt / 4, count: bytes / 4 });
  }
}

/** A registration that knows its words. */
interface Registered extends Registration {
  readonly words: Int32Array;
}

function registered(words: Int32Array): RegisteredBuffer {
  return { words, registration: { words } as Registered };
}

interface Operation {
  readonly isRead: boolean;
  readonly extents: readonly Extent[];
  readonly context: number;
  /** The words of a write, when it was posted. */
  readonly words: readonly number[][];
}

interface Report {
  readonly tag: number;
  readonly outcome: Outcome;
}

/** How batches go to the other host: as single operations, as parcels, or as parcels that are stored in its memory. */
type Way = 'operations' | 'parcels' | 'stored';

const WAYS = fc.constantFrom<Way>('operations', 'parcels', 'stored');

/** Both sides of a connection: what the network has, and the memory of the other host. */
class Wire {
  readonly remote = new Int32Array(map.words);
  readonly out = new Int32Array(FLAG_WORDS + OUT_WORDS).fill(1, 0, FLAG_WORDS);
  readonly in = new Int32Array(IN_WORDS);
  /** Our own memory. */
  readonly arena = new Int32Array(map.words);
  readonly reported: Report[] = [];
  readonly operations: Operation[] = [];
  readonly complaints: string[] = [];
  /** What was corked. */
  readonly packets: string[] = [];
  onReport: (report: Report) => void = () => undefined;
  /** How many operations the connection takes before it pushes back. */
  room = Number.POSITIVE_INFINITY;
  nowUs = 0;
  /** The connection of the other host pushes back. */
  holdsReceipts = false;
  /** The other host does not poll. */
  isPeerBusy = false;
  readonly link: Link;
  /** What the other host does. */
  private readonly peer = new Parcels(this.remote, map, OWN_HOST);
  private keys = 0;
  private readonly poster: Poster = {
    onOutcome: (_peer, tag, _guard, outcome) => {
      this.reported.push({ tag, outcome });
      this.onReport({ tag, outcome });
    },
  };

  constructor(private readonly way: Way = 'operations') {
    this.link = new Link(
      OTHER_HOST,
      map,
      { words: this.arena },
      {
        scheduleFlush: () => undefined,
        abandon: (link, why) => {
          this.complaints.push(why);
          link.lose();
        },
      },
    );
    this.open();
  }

  open(): void {
    const extents = new FakeExtents();
    const post = (isRead: boolean) => (_: unknown, __: number, context: number) => {
      if (this.operations.length >= this.room) return false;
      const list = extents.list.slice();
      const words = isRead ? [] : list.map((extent) => this.wordsOf(extent));
      this.operations.push({ isRead, extents: list, context, words });
      return true;
    };
    const connection = {
      write: post(false),
      read: post(true),
      cork: () => this.packets.push('cork'),
      uncork: () => this.packets.push('uncork'),
    } as unknown as Connection;
    const buffers: LinkBuffers = {
      out: registered(this.out),
      flagWords: FLAG_WORDS,
      in: registered(this.in),
      parcels: registered(new Int32Array(2 * PARCEL_WORDS)),
      extents: extents as unknown as Extents,
    };
    this.operations.length = 0;
    this.keys += 1000;
    const remote = { base: 0, keyLow: this.keys, keyHigh: 0 };
    const ownKeyLow = this.keys + 500;
    this.link.prepare(ownKeyLow);
    this.peer.prepare(remote.keyLow);
    expect(Parcels.isArenaOf(this.remote, remote, map, OWN_HOST)).toBe(true);
    const mapped = this.way === 'stored' ? this.remote : undefined;
    const route = this.way === 'operations' ? undefined : { self: OWN_HOST, ownKeyLow, mapped };
    this.link.open(connection, remote, buffers, this.nowUs, route);
    this.openPeer(buffers, { base: 0, keyLow: ownKeyLow, keyHigh: 0 }, remote.keyLow);
  }

  /** Its receipts arrive at once. */
  private openPeer(buffers: LinkBuffers, remote: RemoteRegion, ownKeyLow: number): void {
    const extents = new FakeExtents();
    const connection = {
      write: () => {
        if (this.holdsReceipts) return false;
        for (const { source, local, remote: at, count } of extents.list) {
          this.arena.set(source.subarray(local, local + count), at);
        }
        return true;
      },
    } as unknown as Connection;
    const own = {
      ...buffers,
      parcels: registered(new Int32Array(2 * PARCEL_WORDS)),
      extents: extents as unknown as Extents,
    };
    this.peer.open(connection, remote, own, { self: OTHER_HOST, ownKeyLow });
  }

  /** Of the next parcel from the other host. */
  get expectedNumber(): number {
    return this.keys + 501;
  }

  /** Of our first parcel. */
  get sentNumber(): number {
    return this.keys + 1;
  }

  permit(guard: number): void {
    this.remote[map.participant(PEER) + PARTICIPANT.permission] = guard;
  }

  post(at: number, values: number[], guard: number, tag: number): void {
    const source = Int32Array.from(values);
    this.link.write(this.poster, PEER, this.at(at), source, 0, values.length, guard, tag);
    source.fill(-1);
  }

  read(at: number, into: Int32Array, tag: number): void {
    this.link.read(this.poster, PEER, this.at(at), into.length, into, 0, tag);
  }

  at(at: number): number {
    return map.region(PEER) + at;
  }

  flush(batchUs = 0): boolean {
    return this.link.flush(this.nowUs, batchUs);
  }

  /** The network does the first thing that it was given. False if there is none. */
  step(): boolean {
    const operation = this.operations.shift();
    if (operation === undefined) {
      if (this.way === 'stored') this.exchange();
      return false;
    }
    const { isRead, extents, context, words } = operation;
    // Nothing else may be put there before it is sent.
    expect(isRead ? [] : extents.map((extent) => this.wordsOf(extent))).toEqual(words);
    for (const { source, local, remote, count } of extents) {
      if (isRead) this.in.set(this.remote.subarray(remote, remote + count), local);
      else this.remote.set(source.subarray(local, local + count), remote);
    }
    if (isRead) this.link.onCompleted(context, this.nowUs);
    this.exchange();
    return true;
  }

  exchange(): void {
    if (!this.isPeerBusy) expect(this.peer.unpack()).not.toBe('garbage');
    this.link.exchange(this.nowUs);
  }

  private wordsOf({ source, local, count }: Extent): number[] {
    return [...source.subarray(local, local + count)];
  }

  run(): void {
    this.isPeerBusy = false;
    this.exchange();
    do this.flush();
    while (this.step() || this.link.flush(this.nowUs, 0));
  }

  outcomes(): string[] {
    return this.reported.splice(0).map(({ tag, outcome }) => `${tag} ${outcome}`);
  }
}

describe('a link', () => {
  test('sends writes side by side as one, and confirms all of them with one read', () => {
    const wire = new Wire();
    wire.permit(5);
    wire.post(0, [1, 2], 5, 1);
    wire.post(2, [3], OPEN, 2);
    wire.post(9, [4], 6, 3);
    wire.flush();
    expect(wire.operations.map(({ isRead, extents }) => [isRead, extents.length])).toEqual([
      [false, 2],
      [true, 1],
    ]);
    expect(wire.packets).toEqual(['cork', 'uncork']);
    expect(wire.outcomes()).toEqual([]);
    wire.run();
    expect(wire.outcomes()).toEqual(['1 ok', '2 ok', '3 refused']);
    expect(wire.link.isSettled).toBe(true);
    expect([...wire.remote.subarray(wire.at(0), wire.at(4))]).toEqual([1, 2, 3, 0]);
  });

  test('goes on where it was after back pressure', () => {
    const wire = new Wire();
    wire.room = 1;
    const into = new Int32Array(1);
    wire.post(0, [1], OPEN, 1);
    wire.read(0, into, 2);
    wire.post(0, [2], OPEN, 3);
    wire.link.wake(PEER, true);
    wire.flush();
    wire.flush();
    expect(wire.operations.length).toBe(1);
    wire.run();
    expect(wire.outcomes()).toEqual(['1 ok', '2 ok', '3 ok']);
    expect(into[0]).toBe(1);
    expect(wire.remote[map.ready(PEER)]).toBe(1);
  });

  test('abandons a peer when what is in flight has filled a buffer, and reports what is lost', () => {
    for (const isRead of [false, true]) {
      const wire = new Wire();
      wire.post(0, [1], OPEN, 1);
      const into = new Int32Array(16);
      for (let tag = 2; tag <= 5; tag++) {
        if (!wire.link.isOpen) break;
        if (isRead) wire.read(0, into, tag);
        else wire.post(0, new Array(20).fill(tag), OPEN, tag);
        wire.flush();
      }
      expect(wire.link.isOpen).toBe(false);
      expect(wire.complaints.length).toBe(1);
      const outcomes = wire.outcomes();
      expect(outcomes.length).toBeGreaterThan(2);
      expect(outcomes.every((one) => one.endsWith(' lost'))).toBe(true);
      wire.open();
      wire.post(0, [7], OPEN, 7);
      wire.run();
      expect(wire.outcomes()).toEqual(['7 ok']);
    }
  });

  test('writes of the host itself count for a full buffer like any other', () => {
    const wire = new Wire();
    wire.post(0, new Array(OUT_WORDS).fill(1), OPEN, 1);
    wire.link.writeWords(wire.at(0), Int32Array.of(1));
    expect(wire.link.isOpen).toBe(false);
    expect(wire.outcomes()).toEqual(['1 lost']);
  });

  test('what can never be posted is an error, and costs nobody a connection', () => {
    const wire = new Wire();
    expect(() => wire.post(0, new Array(OUT_WORDS + 1).fill(1), OPEN, 1)).toThrow(RangeError);
    expect(() => wire.read(0, new Int32Array(IN_WORDS + 1), 2)).toThrow(RangeError);
    wire.post(0, [1], OPEN, 3);
    wire.run();
    expect(wire.outcomes()).toEqual(['3 ok']);
  });

  test('a read that was posted before a write does not free its space', () => {
    const wire = new Wire();
    wire.read(0, new Int32Array(1), 1);
    wire.post(0, new Array(OUT_WORDS - 4).fill(2), OPEN, 2);
    wire.flush();
    expect(wire.operations.map(({ isRead }) => isRead)).toEqual([true, false, true]);
    wire.step();
    wire.step();
    // The large write has landed, but nobody knows; and nothing fits beside it.
    expect(wire.outcomes()).toEqual(['1 ok']);
    wire.post(0, new Array(8).fill(3), OPEN, 3);
    expect(wire.link.isOpen).toBe(false);
  });

  test('fire-and-forget writes are confirmed in time, so that their space is free again', () => {
    const wire = new Wire();
    for (let i = 0; i < 100; i++) {
      wire.post(0, [i, i, i, i, i, i], OPEN, 0);
      wire.run();
    }
    expect(wire.complaints).toEqual([]);
    expect(wire.remote[wire.at(0)]).toBe(99);
  });

  test('non-urgent writes are batched, but not forever', () => {
    const wire = new Wire();
    wire.post(0, [1], OPEN, 0);
    wire.link.wake(PEER, false);
    expect(wire.flush(100)).toBe(true);
    wire.nowUs += 99;
    expect(wire.flush(100)).toBe(true);
    expect(wire.operations).toEqual([]);
    wire.nowUs += 1;
    expect(wire.flush(100)).toBe(false);
    expect(wire.operations.map(({ extents }) => extents.length)).toEqual([2]);
    wire.run();

    for (const urge of [
      () => wire.link.markUrgent(),
      () => wire.link.wake(PEER, true),
      () => wire.read(8, new Int32Array(1), 2),
      () => wire.link.writeWords(wire.at(9), Int32Array.of(1)),
    ]) {
      wire.post(0, [2], OPEN, 0);
      expect(wire.flush(100)).toBe(true);
      expect(wire.operations).toEqual([]);
      urge();
      expect(wire.flush(100)).toBe(false);
      expect(wire.operations[0].extents[0]).toMatchObject({ remote: wire.at(0), count: 1 });
      wire.run();
    }
    expect(wire.flush(100)).toBe(false);
  });

  test('a peer is silent if it does not answer, whatever else can be sent to it', () => {
    const wire = new Wire();
    wire.post(0, [1], OPEN, 1);
    for (let i = 0; i < 8; i++) {
      wire.nowUs += PATIENCE_US / 4;
      wire.post(0, [1], OPEN, 0);
      wire.flush();
    }
    expect(wire.link.silentUs(wire.nowUs)).toBeGreaterThan(PATIENCE_US);
    wire.run();
    expect(wire.link.silentUs(wire.nowUs)).toBe(0);
  });

  test('one that sends for long before it is answered is not silent', () => {
    const wire = new Wire();
    for (let i = 0; i < 6; i++) wire.post(i * 10, new Array(9).fill(1), OPEN, 1);
    wire.flush();
    const answers = wire.operations.filter(({ isRead }) => isRead).length;
    expect(answers).toBeGreaterThan(1);
    while (wire.operations.length > 0) {
      if (wire.operations[0].isRead) wire.nowUs += PATIENCE_US - 1;
      expect(wire.link.silentUs(wire.nowUs)).toBeLessThan(PATIENCE_US);
      wire.step();
    }
    expect(wire.nowUs).toBeGreaterThan(PATIENCE_US);
  });

  test('a peer to which writes are only batched is not silent', () => {
    const wire = new Wire();
    wire.post(0, [1], OPEN, 1);
    wire.run();
    wire.nowUs += 2 * PATIENCE_US;
    wire.post(0, [2], OPEN, 0);
    expect(wire.flush(1000)).toBe(true);
    expect(wire.link.silentUs(wire.nowUs)).toBe(0);
  });

  test('back pressure is noticed as silence, and does not gather more and more probes', () => {
    const wire = new Wire();
    wire.room = 1;
    wire.post(0, [1], OPEN, 0);
    wire.flush();
    wire.post(0, [1], OPEN, 1);
    for (let i = 0; i < 100; i++) {
      wire.nowUs += PATIENCE_US;
      wire.link.probe(wire.nowUs);
      wire.flush();
    }
    expect(wire.link.silentUs(wire.nowUs)).toBeGreaterThan(90 * PATIENCE_US);
    expect(wire.complaints).toEqual([]);
  });

  test('a read, writes, and what confirms them go together', () => {
    const wire = new Wire();
    wire.read(8, new Int32Array(1), 1);
    wire.post(0, [1], OPEN, 2);
    wire.flush();
    expect(wire.operations.map(({ isRead }) => isRead)).toEqual([true, false, true]);
    expect(wire.packets).toEqual(['cork', 'uncork']);
  });

  test('a quiet peer is probed now and then', () => {
    const wire = new Wire();
    wire.nowUs += 1_000_000;
    wire.link.probe(wire.nowUs);
    wire.flush();
    expect(wire.operations.map(({ isRead }) => isRead)).toEqual([true]);
    wire.link.probe(wire.nowUs);
    wire.flush();
    expect(wire.operations.length).toBe(1);
    wire.nowUs += 5;
    expect(wire.link.silentUs(wire.nowUs)).toBe(5);
  });

  test('in any interleaving completions are in order and true', () => {
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          post: fc.integer({ min: 1, max: 6 }),
          place: fc.nat(20),
          guard: fc.constantFrom(OPEN, 5, 6),
          isSilent: fc.boolean(),
        }),
      },
      { weight: 2, arbitrary: fc.record({ read: fc.nat(20) }) },
      { weight: 4, arbitrary: fc.constant('flush' as const) },
      { weight: 6, arbitrary: fc.constant('step' as const) },
      { weight: 2, arbitrary: fc.constant('wait' as const) },
      { weight: 1, arbitrary: fc.constant('wake' as const) },
      { weight: 1, arbitrary: fc.constant('break' as const) },
      { weight: 1, arbitrary: fc.record({ permit: fc.constantFrom(5, 6) }) },
      { weight: 1, arbitrary: fc.record({ room: fc.constantFrom(0, 1, 100) }) },
      { weight: 1, arbitrary: fc.record({ isPeerBusy: fc.boolean() }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), WAYS, (script, way) =>
        runScript(script, way),
      ),
      { numRuns: 1000 },
    );
  });

  test('sends several operations as one parcel, once a read has completed', () => {
    const wire = new Wire('parcels');
    wire.permit(5);
    wire.post(0, [1], 5, 1);
    wire.flush();
    expect(wire.operations.length).toBe(2);
    wire.run();
    expect(wire.outcomes()).toEqual(['1 ok']);

    const into = new Int32Array(2);
    wire.post(0, [2, 3], 5, 2);
    wire.read(0, into, 3);
    wire.post(0, [4], 6, 4);
    wire.link.wake(PEER, true);
    wire.flush();
    expect(wire.operations.length).toBe(1);
    wire.run();
    expect(wire.outcomes()).toEqual(['2 ok', '3 ok', '4 refused']);
    expect([...into]).toEqual([2, 3]);
    expect(wire.remote[map.ready(PEER)]).toBe(1);
  });

  test('sends nothing behind a parcel before its receipt, and is silent meanwhile', () => {
    const wire = new Wire('parcels');
    wire.post(0, [1], OPEN, 1);
    wire.run();
    wire.isPeerBusy = true;
    wire.post(0, [2], OPEN, 2);
    wire.flush();
    wire.step();
    wire.post(0, [3], OPEN, 0);
    expect(wire.flush()).toBe(true);
    expect(wire.operations).toEqual([]);
    wire.nowUs += PATIENCE_US;
    expect(wire.link.silentUs(wire.nowUs)).toBe(PATIENCE_US);
    wire.run();
    expect(wire.remote[wire.at(0)]).toBe(3);
    expect(wire.outcomes()).toEqual(['1 ok', '2 ok']);
  });

  test('a parcel is unpacked once, also if its receipt can not be sent at once', () => {
    const wire = new Wire('parcels');
    wire.post(0, [1], OPEN, 1);
    wire.run();
    wire.holdsReceipts = true;
    wire.post(0, [2], OPEN, 2);
    wire.run();
    expect(wire.remote[wire.at(0)]).toBe(2);
    wire.remote[wire.at(0)] = 3;
    wire.exchange();
    expect(wire.outcomes()).toEqual(['1 ok']);
    wire.holdsReceipts = false;
    wire.exchange();
    expect(wire.outcomes()).toEqual(['2 ok']);
    expect(wire.remote[wire.at(0)]).toBe(3);
  });

  test('a parcel that an earlier connection has left is not unpacked', () => {
    const wire = new Wire('parcels');
    wire.post(0, [1], OPEN, 1);
    wire.run();
    wire.isPeerBusy = true;
    wire.post(0, [2], OPEN, 2);
    wire.flush();
    wire.step();
    wire.link.lose();
    wire.open();
    wire.run();
    expect(wire.outcomes()).toEqual(['1 ok', '2 lost']);
    expect(wire.remote[wire.at(0)]).toBe(1);
  });

  test('nor if it has the number of the first one of this connection; nor is an answer taken', () => {
    const wire = new Wire('parcels');
    const later = 1000;
    const parcel = [wire.expectedNumber + later, 5, 1, map.region(0), 5];
    wire.arena.set(parcel, map.parcel(OTHER_HOST));
    wire.arena.set([wire.sentNumber + later, 3, 0], map.receipt(OTHER_HOST));
    wire.link.lose();
    wire.open();
    wire.post(0, [1], OPEN, 1);
    wire.run();
    expect(wire.arena[map.region(0)]).toBe(0);
    wire.isPeerBusy = true;
    wire.post(0, [2], OPEN, 2);
    wire.flush();
    wire.step();
    expect(wire.outcomes()).toEqual(['1 ok']);
    wire.run();
    expect(wire.outcomes()).toEqual(['2 ok']);
  });

  test('stores parcels where the memory of the other host is mapped, unless they would overtake something', () => {
    const wire = new Wire('stored');
    wire.post(0, [1], OPEN, 1);
    wire.run();
    // Too large for a parcel.
    wire.post(0, new Array(PARCEL_WORDS).fill(2), OPEN, 2);
    wire.flush();
    const large = wire.operations.length;
    wire.post(0, [3], OPEN, 3);
    wire.flush();
    expect(wire.operations.length).toBe(large + 1);
    wire.run();
    wire.isPeerBusy = true;
    wire.post(0, [4], OPEN, 0);
    wire.flush();
    expect(wire.operations).toEqual([]);
    wire.isPeerBusy = false;
    wire.exchange();
    expect(wire.remote[wire.at(0)]).toBe(4);
    expect(wire.outcomes()).toEqual(['1 ok', '2 ok', '3 ok']);
  });

  test('wakes a host that sleeps, once, when it has stored a parcel', () => {
    const wire = new Wire('stored');
    wire.post(0, [1], OPEN, 1);
    wire.run();
    const sleeps = map.host(OTHER_HOST) + HOST.sleeps;
    wire.remote[sleeps] = 1;
    wire.isPeerBusy = true;
    wire.post(0, [2], OPEN, 2);
    wire.flush();
    const places = wire.operations.flatMap(({ extents }) => extents.map(({ remote }) => remote));
    expect(places).toEqual([sleeps]);
    expect(wire.remote[sleeps]).toBe(0);
    wire.run();
    expect(wire.outcomes()).toEqual(['1 ok', '2 ok']);
  });

  test('abandons a peer if no room is left for what confirms a parcel', () => {
    const wire = new Wire('parcels');
    wire.post(0, [1], OPEN, 1);
    wire.run();
    wire.read(0, new Int32Array(IN_WORDS), 2);
    wire.flush();
    for (let i = 0; i < 10; i++) wire.post(2 * i, [i], OPEN, 0);
    wire.flush();
    expect(wire.complaints.length).toBe(1);
    expect(wire.outcomes()).toEqual(['1 ok', '2 lost']);
  });

  test('a parcel that makes no sense harms nothing outside of the arena', () => {
    const bodies = fc.array(fc.integer({ min: -40, max: 2 * map.words }), { maxLength: 12 });
    fc.assert(
      fc.property(fc.integer(), bodies, (length, body) => {
        const wire = new Wire('parcels');
        const at = map.parcel(OTHER_HOST);
        wire.arena.set([wire.expectedNumber, length, ...body], at);
        const before = wire.arena.slice();
        wire.link.exchange(0);
        // What it writes is within the arena, or it is abandoned.
        expect(wire.arena.length).toBe(before.length);
        if (Math.abs(length) > PARCEL_WORDS) expect(wire.complaints.length).toBe(1);
      }),
    );
  });

  test('a parcel without items, or with half of one, makes no sense', () => {
    for (const length of [0, 1, -2, 3, 7]) {
      const wire = new Wire('parcels');
      const write = [1, wire.at(0), 5];
      wire.arena.set(
        [wire.expectedNumber, length, ...write, 1, wire.at(0)],
        map.parcel(OTHER_HOST),
      );
      wire.link.exchange(0);
      expect(wire.complaints.length).toBe(1);
    }
  });

  test('an answer of another length than that of the parcel confirms nothing', () => {
    const wire = new Wire('parcels');
    wire.permit(5);
    wire.post(0, [1], 5, 1);
    wire.run();
    wire.isPeerBusy = true;
    wire.post(0, [2], 5, 2);
    wire.flush();
    wire.step();
    // The words of the answer are those of the last one.
    wire.arena.set([wire.sentNumber, 2], map.receipt(OTHER_HOST));
    wire.exchange();
    expect(wire.complaints.length).toBe(1);
    expect(wire.outcomes()).toEqual(['1 ok', '2 lost']);
  });
});

type Step =
  | { post: number; place: number; guard: number; isSilent: boolean }
  | { read: number }
  | { permit: number }
  | { room: number }
  | { isPeerBusy: boolean }
  | 'flush'
  | 'step'
  | 'wait'
  | 'wake'
  | 'break';

interface Expected {
  readonly tag: number;
  readonly guard: number;
  /** Fails if it must not be reported as `ok` now. */
  readonly check: () => void;
}

function runScript(script: readonly Step[], way: Way): void {
  const wire = new Wire(way);
  const expected: Expected[] = [];
  const permission = () => wire.remote[map.participant(PEER) + PARTICIPANT.permission];
  let number = 0;
  let isBreaking = false;
  wire.onReport = ({ tag, outcome }) => {
    const first = expected.shift();
    expect(first?.tag).toBe(tag);
    if (outcome === 'ok') first!.check();
    if (outcome === 'refused') expect(permission()).not.toBe(first!.guard);
    expect(outcome === 'lost').toBe(isBreaking || !wire.link.isOpen);
  };
  const breakOff = () => {
    isBreaking = true;
    wire.link.lose();
    expect(expected).toEqual([]);
    isBreaking = false;
    wire.open();
  };
  for (const step of script) {
    wire.nowUs++;
    // It was too slow.
    if (!wire.link.isOpen) breakOff();
    if (step === 'flush') wire.flush();
    else if (step === 'step') wire.step();
    else if (step === 'wait') wire.flush(3);
    else if (step === 'wake') wire.link.wake(PEER, true);
    else if (step === 'break') breakOff();
    else if ('permit' in step) wire.permit(step.permit);
    else if ('room' in step) wire.room = step.room;
    else if ('isPeerBusy' in step) wire.isPeerBusy = step.isPeerBusy;
    else if ('read' in step) {
      const into = new Int32Array(3).fill(-1);
      const tag = ++number;
      // All that was posted before it has landed, and nothing that was posted after.
      const before = number;
      const check = () => {
        for (const word of into) expect(word).toBeGreaterThanOrEqual(0);
        for (const word of into) expect(word).toBeLessThan(before);
      };
      expected.push({ tag, guard: OPEN, check });
      wire.read(step.read, into, tag);
    } else {
      const { post, place, guard, isSilent } = step;
      const tag = ++number;
      const check = () => {
        const at = wire.at(place);
        for (const word of wire.remote.subarray(at, at + post)) {
          expect(word).toBeGreaterThanOrEqual(tag);
        }
        if (guard !== OPEN) expect(permission()).toBe(guard);
      };
      const isReported = !isSilent || guard !== OPEN;
      if (isReported) expected.push({ tag, guard, check });
      wire.post(place, new Array(post).fill(tag), guard, isReported ? tag : 0);
    }
  }
  wire.room = Number.POSITIVE_INFINITY;
  if (!wire.link.isOpen) breakOff();
  wire.run();
  expect(expected).toEqual([]);
  expect(wire.link.isSettled).toBe(true);
}
