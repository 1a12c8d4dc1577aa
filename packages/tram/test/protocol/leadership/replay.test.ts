/** Beginning from a journal. */
import { describe, expect, test } from 'vitest';
import { type Application, DEFERRED, type Delivery } from '../../../src/protocol/edges.js';
import {
  MESSAGE,
  messageId,
  messageWords,
  OWN,
  OWN_KIND,
  PARENT,
  SOURCE,
  seriesOf,
} from '../../../src/protocol/layout.js';
import { indexOf, nextFromParentOf } from '../../../src/protocol/leadership/snapshot.js';
import type { Stretch } from '../../../src/protocol/member.js';
import { begun, SIZES } from './one-replica.js';

const { firstIndex } = SIZES;
const GROUP = 1;
const DEFERS = 1;

/** Its state is the list of all that happened. It defers the reply to every message that begins with `DEFERS`. */
class Diary implements Application {
  lines: string[] = [];

  deliver(message: Delivery) {
    this.lines.push(`${messageId(message)}: ${message.payload.join()}`);
    return message.payload[0] === DEFERS ? DEFERRED : message.payload;
  }

  abandoned(id: string): void {
    this.lines.push(`abandoned ${id}`);
  }

  tick(orderedUs: number): void {
    this.lines.push(`tick ${orderedUs}`);
  }

  snapshot(): Uint8Array {
    return new TextEncoder().encode(JSON.stringify(this.lines));
  }

  restore(snapshot: Uint8Array): void {
    this.lines = JSON.parse(new TextDecoder().decode(snapshot));
  }
}

type Body = Int32Array;

function bodyOf(source: number, number: number, high: number, fill: (body: Body) => void): Body {
  const count = messageWords(8);
  const body = new Int32Array(count + SOURCE.words);
  fill(body);
  body[count + SOURCE.id] = source;
  body[count + SOURCE.number] = number;
  body[count + SOURCE.nextPosition] = high;
  return body;
}

function message(client: number, session: number, number: number, call: number, first: number) {
  return bodyOf(client, number, 1000 + number, (body) => {
    body[MESSAGE.client] = client | (call << 16);
    body[MESSAGE.session] = session;
    body[MESSAGE.number] = number;
    body[MESSAGE.series] = seriesOf(GROUP, number);
    body[MESSAGE.destinationsLow] = 1 << GROUP;
    body[MESSAGE.payloadBytes] = 2;
    body[MESSAGE.payload] = first | (number << 8);
  });
}

/** A message that has come from the parent, which has this index there. */
function fromParent(index: number, client: number, session: number, number: number): Body {
  const body = message(client, session, number, 3, 0);
  body[MESSAGE.series] = seriesOf(0, number);
  body[MESSAGE.destinationsLow] = 0b11;
  body[body.length - SOURCE.words + SOURCE.id] = PARENT;
  body[body.length - SOURCE.words + SOURCE.number] = index;
  body[body.length - SOURCE.words + SOURCE.nextPosition] = 0;
  return body;
}

const own = (kind: number, first: number, second = 0): Body =>
  bodyOf(OWN, kind, 0, (body) => {
    body[MESSAGE.client] = first;
    body[MESSAGE.session] = second;
  });

/** Each lies somewhere in a larger array, as in a file that was read. */
function stretchOf(first: number, bodies: readonly Body[]): Stretch {
  const entries = bodies.flatMap((body) => [body.length, ...body]);
  const at = 5;
  const words = Int32Array.from([...new Array<number>(at).fill(7), ...entries, 7, 7]);
  return { first, count: bodies.length, words, at, end: at + entries.length };
}

const BODIES = [
  message(2, 7, 2, 0, DEFERS),
  own(OWN_KIND.tick, 5000),
  message(0, 9, 2, 1, DEFERS),
  message(0, 9, 3, 0, DEFERS),
  fromParent(4, 1, 8, 2),
  message(2, 7, 3, 1, DEFERS),
  message(1, 8, 2, 0, 0),
  own(OWN_KIND.sessionEnded, 2, 7),
  message(2, 10, 2, 0, DEFERS),
  own(OWN_KIND.tick, 6000),
];
const LINES = [
  'c7:1.2: 1,2',
  'tick 5000',
  'c9:1.2: 1,2',
  'c9:1.3: 1,3',
  'c8:0.2: 0,2',
  'c7:1.3: 1,3',
  'c8:1.2: 0,2',
  'abandoned c7:1.2',
  'abandoned c7:1.3',
  'c10:1.2: 1,2',
  'tick 6000',
];
const HALF = 5;

describe('within an era', () => {
  test('a member delivers all entries of its journal', () => {
    const diary = new Diary();
    const stretch = stretchOf(firstIndex, BODIES);
    const { member } = begun(diary, { opensEra: false }, stretch);
    expect(diary.lines).toEqual(LINES);
    expect(member.nextToDeliver).toBe(firstIndex + BODIES.length);
    expect(member.deliveries).toBe(7);
    expect(member.delivered.nextFromParent).toBe(5);
  });

  test('a snapshot and the entries after it give the same state', () => {
    const whole = begun(new Diary(), { opensEra: false }, stretchOf(firstIndex, BODIES));
    const half = begun(
      new Diary(),
      { opensEra: false },
      stretchOf(firstIndex, BODIES.slice(0, HALF)),
    );
    const snapshot = half.takeSnapshot();
    expect(indexOf(snapshot)).toBe(firstIndex + HALF);
    expect(nextFromParentOf(snapshot)).toBe(5);
    const stretch = stretchOf(firstIndex + HALF, BODIES.slice(HALF));
    const rest = begun(new Diary(), { snapshot, opensEra: false }, stretch);
    expect(rest.takeSnapshot()).toEqual(whole.takeSnapshot());
  });

  test('entries with a gap are an error', () => {
    const stretch = stretchOf(firstIndex + 1, BODIES);
    expect(() => begun(new Diary(), { opensEra: false }, stretch)).toThrow('without a gap');
  });

  test('a snapshot of a cluster with other sizes is an error', () => {
    const snapshot = begun(new Diary(), { opensEra: false }).takeSnapshot();
    snapshot[7]++;
    expect(() => begun(new Diary(), { snapshot, opensEra: false })).toThrow('of the same sizes');
  });
});

describe('a member that opens an era', () => {
  const diary = new Diary();
  const replica = begun(diary, { opensEra: true }, stretchOf(firstIndex, BODIES));

  test('abandons the calls that wait, in the order of their slots', () => {
    expect(diary.lines).toEqual([
      ...LINES,
      'abandoned c9:1.3',
      'abandoned c9:1.2',
      'abandoned c10:1.2',
    ]);
    expect(replica.member.waiting.total).toBe(0);
  });

  test('begins a log, keeps ordered time, and counts its deliveries on', () => {
    const { member } = replica;
    expect(member.nextToDeliver).toBe(firstIndex);
    expect(member.nextPosition).toBe(firstIndex);
    expect(member.delivered.nextFromParent).toBe(firstIndex);
    expect([...member.delivered.session]).toEqual([0, 0, 0]);
    expect(member.delivered.orderedUs).toBe(6000);
    expect(member.deliveries).toBe(7);
    expect(member.stable).toBe(firstIndex);
  });

  test('has the same snapshot as one that begins from a later snapshot', () => {
    const half = begun(
      new Diary(),
      { opensEra: false },
      stretchOf(firstIndex, BODIES.slice(0, HALF)),
    );
    const other = begun(
      new Diary(),
      { snapshot: half.takeSnapshot(), opensEra: true },
      stretchOf(firstIndex + HALF, BODIES.slice(HALF)),
    );
    expect(other.takeSnapshot()).toEqual(replica.takeSnapshot());
  });

  test('has an opening snapshot from which others begin', () => {
    const snapshot = replica.takeSnapshot();
    const other = begun(new Diary(), { snapshot, opensEra: false });
    expect(other.takeSnapshot()).toEqual(snapshot);
    expect(other.member.nextToDeliver).toBe(firstIndex);
  });

  test('keeps its first state if there are no entries', () => {
    const opened = begun(new Diary(), { opensEra: true });
    const begins = begun(new Diary(), { opensEra: false });
    expect(opened.takeSnapshot()).toEqual(begins.takeSnapshot());
  });
});
