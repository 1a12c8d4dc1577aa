/** Where everything is in an arena, whichever hosts run the replicas. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ArenaMap, HOST, PARTICIPANT } from '../../src/memory/arena.js';
import { Layout, NO_SALT } from '../../src/protocol/layout.js';

const STATISTICS_WORDS = 5;

function mapOf(
  shape: { readonly groups: number; readonly replicas: number; readonly clients: number },
  hosts: number,
  placement: readonly number[],
): ArenaMap {
  const layout = new Layout({
    ...shape,
    payloadBytesMax: 64,
    replyBytesMax: 16,
    callsMax: 2,
    logBytes: 0,
    inboxBytes: 0,
    feedBytes: 0,
    snapshotChunkBytes: 64,
    firstIndex: 0,
    salt: NO_SALT,
  });
  return new ArenaMap(layout, hosts, 100, STATISTICS_WORDS, placement);
}

function hostsOf(map: ArenaMap): number[] {
  return Array.from({ length: map.participants }, (_, participant) => map.hostOf(participant));
}

describe('with a placement', () => {
  const shape = { groups: 2, replicas: 3, clients: 2 };
  const map = mapOf(shape, 4, [3, 0, 1, 2, 3, 0]);

  test('replicas are where it says, and every client is a host of its own', () => {
    expect(hostsOf(map)).toEqual([3, 0, 1, 2, 3, 0, 4, 5]);
    expect([0, 1, 2, 3, 4, 5].map((host) => map.participantsOf(host))).toEqual([
      [1, 5],
      [2],
      [3],
      [0, 4],
      [6],
      [7],
    ]);
  });

  test('ready flags stand at the host, in the order of its replicas', () => {
    expect(map.ready(0)).toBe(map.readyOf(3));
    expect(map.ready(4)).toBe(map.readyOf(3) + 1);
    expect(map.readyLater(4)).toBe(map.readyLaterOf(3) + 1);
    expect(map.ready(3)).toBe(map.readyOf(2));
  });
});

test('nothing lies where something else does', () => {
  const arbitrary = fc
    .record({
      groups: fc.integer({ min: 1, max: 6 }),
      replicas: fc.constantFrom(1, 3, 5),
      clients: fc.integer({ min: 1, max: 4 }),
      hosts: fc.integer({ min: 1, max: 9 }),
    })
    .chain(({ hosts, ...shape }) =>
      fc.record({
        hosts: fc.constant(hosts),
        shape: fc.constant(shape),
        placement: fc.array(fc.nat(hosts - 1), {
          minLength: shape.groups * shape.replicas,
          maxLength: shape.groups * shape.replicas,
        }),
      }),
    );
  fc.assert(
    fc.property(arbitrary, ({ hosts, shape, placement }) => {
      const map = mapOf(shape, hosts, placement);
      const places: [at: number, words: number][] = [];
      for (let host = 0; host < hosts + shape.clients; host++) {
        places.push([map.host(host), HOST.words]);
      }
      for (let participant = 0; participant < map.participants; participant++) {
        places.push(
          [map.ready(participant), 1],
          [map.readyLater(participant), 1],
          [map.participant(participant), PARTICIPANT.words],
          [map.statisticsOf(participant), STATISTICS_WORDS],
          [map.region(participant), map.regionWords(participant)],
          [map.scratch(participant), map.scratchEnd(participant) - map.scratch(participant)],
        );
      }
      places.sort(([one], [other]) => one - other);
      for (let i = 1; i < places.length; i++) {
        const [at, words] = places[i - 1];
        expect(at + words).toBeLessThanOrEqual(places[i][0]);
      }
      const [at, words] = places.at(-1)!;
      expect(at + words).toBeLessThanOrEqual(map.words);
    }),
  );
});
