/** The copy-only loop copies what it says: the same messages, in the same order, into every ring that TRAM would write. */

import { resolveSizes } from 'tram-multicast/internal/config/sizes.js';
import { NO_SALT, type Places, placeOf } from 'tram-multicast/internal/memory/record.js';
import { Overlay, parseTree } from 'tram-multicast/internal/protocol/overlay.js';
import { describe, expect, test } from 'vitest';
import { destinationSets } from '../../../../src/bench/load/destinations.js';
import { Clients } from '../../../../src/bench/raw/copy-only/clients.js';
import { Copier } from '../../../../src/bench/raw/copy-only/copier.js';
import { Leaders } from '../../../../src/bench/raw/copy-only/leaders.js';
import type * as MeasureModule from '../../../../src/bench/raw/copy-only/measure.js';
import { type CopyLoad, Plan, RECORD } from '../../../../src/bench/raw/copy-only/plan.js';
import { sizeOptions } from '../../../../src/bench/systems/tram.js';
import { expectNoLeftOvers } from '../../left-overs.js';

const built = new URL('../../../../dist/bench/raw/copy-only/measure.js', import.meta.url).href;
const { measureCopyOnly }: typeof MeasureModule = await import(built);

expectNoLeftOvers();

interface Shape {
  readonly groups: number;
  readonly replicas: number;
  readonly tree: string;
  readonly destinations: number;
  readonly clients: number;
  readonly payloadBytes: number;
}

function loadOf(shape: Shape, outstanding: number): CopyLoad {
  const { groups, replicas, tree, destinations, clients, payloadBytes } = shape;
  const setup = { groups, replicas, clientsMax: clients, outstandingMax: outstanding };
  const options = sizeOptions({ ...setup, payloadBytesMax: payloadBytes });
  const parents = parseTree(tree, groups);
  const sets = destinationSets(new Overlay(parents), 'rotating', destinations);
  const sizes = resolveSizes(options, NO_SALT);
  return { sizes, parents, sets, clients, outstanding, payloadBytes };
}

/** Depends on the message and on the place in it. Never negative, as all words but heads. */
function contentAt(serial: number, place: number): number {
  return Math.imul(serial + 1, 0x9e3779b1 ^ place) >>> 1;
}

/** Both sides in this thread, turn by turn, until all messages are answered. */
function copyMessages(load: CopyLoad, messagesMin: number) {
  const plan = new Plan(load);
  const words = new Int32Array(plan.words);
  const copier = new Copier(words);
  const sent: Message[] = [];
  const fill = (mirror: Places, position: number, serial: number): void => {
    const read = (place: number): number => words[placeOf(mirror, position + place)];
    for (let place = RECORD.contents; place < plan.inboxRecordWords; place++) {
      words[placeOf(mirror, position + place)] = contentAt(serial, place);
    }
    sent.push({ client: read(RECORD.client), set: read(RECORD.set), serial });
  };
  const clients = new Clients(copier, plan, fill);
  const leaders = new Leaders(copier, plan);
  for (let turn = 0; clients.outstanding > 0 || sent.length === 0; turn++) {
    if (turn > 100_000) throw new Error('messages stay unanswered');
    if (sent.length >= messagesMin) clients.stop();
    clients.step();
    leaders.step();
  }
  return { plan, words, sent, answered: clients.answered };
}

interface Message {
  readonly client: number;
  readonly set: number;
  readonly serial: number;
}

/** The messages that a ring holds, oldest first; the last `count` records of `recordWords` words before `end`. */
function messagesIn(
  { plan, words }: ReturnType<typeof copyMessages>,
  ring: Places,
  end: number,
  recordWords: number,
  count: number,
): Message[] {
  const start = end - count * recordWords;
  return Array.from({ length: count }, (_, i) => {
    const read = (place: number): number => words[placeOf(ring, start + i * recordWords + place)];
    const serial = read(RECORD.serial);
    for (let place = RECORD.contents; place < plan.inboxRecordWords; place++) {
      if (read(place) !== contentAt(serial, place)) throw new Error(`word ${place} is wrong`);
    }
    return { client: read(RECORD.client), set: read(RECORD.set), serial };
  });
}

const SHAPES: readonly Shape[] = [
  { groups: 1, replicas: 3, tree: 'base', destinations: 1, clients: 1, payloadBytes: 64 },
  { groups: 8, replicas: 3, tree: 'breadth', destinations: 1, clients: 1, payloadBytes: 64 },
  { groups: 8, replicas: 3, tree: 'breadth', destinations: 8, clients: 2, payloadBytes: 64 },
  { groups: 8, replicas: 3, tree: 'base', destinations: 2, clients: 3, payloadBytes: 20 },
  { groups: 4, replicas: 5, tree: 'depth', destinations: 3, clients: 1, payloadBytes: 0 },
  { groups: 3, replicas: 1, tree: 'breadth', destinations: 2, clients: 1, payloadBytes: 9000 },
];

describe.each(SHAPES)(
  '$groups groups of $replicas, $tree tree, $payloadBytes B to $destinations',
  (shape) => {
    test.each([1, 7, 200])('with %i in flight, every ring has every message', (outstanding) => {
      // More than fit into the rings: all of them wrap.
      const run = copyMessages(loadOf(shape, outstanding), 5000);
      const { plan, sent } = run;
      expect(run.answered).toBe(sent.length);
      const groups = Array.from({ length: shape.groups }, (_, group) => group);
      for (const group of groups) {
        const isReached = ({ set }: Message): boolean =>
          plan.isReached[set * shape.groups + group] === 1;
        const isEntry = ({ set }: Message): boolean => plan.entryGroups[set] === group;
        const passes = (message: Message): boolean =>
          isReached(message) && plan.overlay.pathTo(group).includes(plan.entryGroups[message.set]);
        const expected = sent.filter(passes);
        const inLog = Math.min(expected.length, Math.floor(plan.layout.logWords / plan.entryWords));
        const end = expected.length * plan.entryWords;
        const logs = Array.from({ length: shape.replicas }, (_, member) =>
          messagesIn(run, plan.log(group, member), end, plan.entryWords, inLog),
        );
        for (const log of logs) expect(log).toEqual(logs[0]);
        expectOf(expected, logs[0]);
        for (let member = 0; member < shape.replicas; member++) {
          const forwarded = expected.filter((message) => !isEntry(message));
          const feedRoom = Math.floor(plan.layout.feedWords / plan.entryWords);
          const inFeed = Math.min(forwarded.length, feedRoom);
          const feedEnd = forwarded.length * plan.entryWords;
          expect(run.words[plan.feedEnd(group, member)]).toBe(feedEnd);
          const feed = messagesIn(run, plan.feed(group, member), feedEnd, plan.entryWords, inFeed);
          expectOf(forwarded, feed);
          for (let client = 0; client < shape.clients; client++) {
            const own = sent.filter((message) => message.client === client && isEntry(message));
            const recordWords = plan.inboxRecordWords;
            const count = Math.min(own.length, Math.floor(plan.layout.inboxWords / recordWords));
            const ring = plan.inbox(group, member, client);
            expect(messagesIn(run, ring, own.length * recordWords, recordWords, count)).toEqual(
              own.slice(own.length - count),
            );
          }
        }
      }
    });
  },
);

/** Each of them is one of the expected ones, and none is there twice. */
function expectOf(expected: readonly Message[], found: readonly Message[]): void {
  const keys = new Set(expected.map(keyOf));
  expect(new Set(found.map(keyOf)).size).toBe(found.length);
  for (const message of found) expect(keys.has(keyOf(message))).toBe(true);
}

function keyOf({ client, serial }: Message): string {
  return `${client}.${serial}`;
}

test.each(['threads', 'processes'] as const)('the loop is measured on %s', async (memory) => {
  const shape = SHAPES[2];
  for (const outstanding of [1, 64]) {
    const load = loadOf(shape, outstanding);
    const { messagesPerSecond, latencyNsP50 } = await measureCopyOnly({
      ...load,
      memory,
      seconds: 0.1,
    });
    expect(messagesPerSecond).toBeGreaterThan(0);
    expect(latencyNsP50).toBeGreaterThan(0);
  }
});
