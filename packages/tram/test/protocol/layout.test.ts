/** Regions, area by area: nothing overlaps, nothing lies outside, whatever the sizes. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FRAME_WORDS } from '../../src/memory/record.js';
import {
  CHUNK,
  FEED_START,
  GRANT,
  INBOX_CONTROL,
  KEPT,
  Layout,
  LOG_CONTROL,
  MESSAGE,
  messageWords,
  REPLY,
  REQUEST,
  RINGS_PER_WRITER,
  ROW,
  type Sizes,
  SNAPSHOT_REQUEST,
  SOURCE,
} from '../../src/protocol/layout.js';

interface Area {
  name: string;
  at: number;
  words: number;
  /** Bells of one kind lie side by side. */
  isBell?: boolean;
}

const CACHE_LINE_WORDS = 16;
const bytes = fc.oneof(fc.nat(64), fc.nat(5000), fc.constantFrom(0, 1, 4096, 65536));

const sizes: fc.Arbitrary<Sizes> = fc.record({
  groups: fc.integer({ min: 1, max: 64 }),
  replicas: fc.constantFrom(1, 3, 5, 7),
  clients: fc.integer({ min: 1, max: 20 }),
  payloadBytesMax: bytes,
  replyBytesMax: bytes,
  logBytes: bytes,
  inboxBytes: bytes,
  feedBytes: bytes,
  callsMax: fc.integer({ min: 1, max: 20 }),
  snapshotChunkBytes: fc.integer({ min: 4, max: 5000 }),
  firstIndex: fc.constantFrom(0, 2 ** 31 - 40, 2 ** 32 - 40),
  salt: fc.record({ check: fc.integer(), tail: fc.integer() }),
});

const wordsFor = (count: number) => Math.ceil(count / 4);
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

const clientNotification = (name: string, at: number) => ({ name, at, words: 1, isBell: true });

/** Every area of a replica's region, with as many words as may ever be written there. */
function replicaAreas(layout: Layout): Area[] {
  const { replicas, clients, snapshotChunkBytes } = layout.sizes;
  const chunkWords = CHUNK.data + wordsFor(snapshotChunkBytes);
  const slot = (name: string, at: number, body: number) => ({
    name,
    at,
    words: body + FRAME_WORDS,
  });
  return [
    slot('row', layout.row, ROW.words),
    { name: 'kept', at: layout.kept, words: KEPT.words },
    ...upTo(replicas).map((j) => clientNotification(`mail[${j}]`, layout.memberNotification(j))),
    ...upTo(clients).map((c) => clientNotification(`bell[${c}]`, layout.clientNotification(c))),
    ...upTo(replicas).flatMap((j) => [
      slot(`leadRequest[${j}]`, layout.leadRequest(j), REQUEST.words),
      slot(`leadGrant[${j}]`, layout.leadGrant(j), GRANT.words),
      slot(`snapshotRequest[${j}]`, layout.snapshotRequest(j), SNAPSHOT_REQUEST.words),
      slot(`snapshotChunk[${j}]`, layout.snapshotChunk(j), chunkWords),
      ...upTo(RINGS_PER_WRITER).flatMap((ring) => [
        {
          name: `log[${j}][${ring}] control`,
          at: layout.logControl(j, ring),
          words: LOG_CONTROL.words,
        },
        { name: `log[${j}][${ring}]`, at: layout.logRing(j, ring), words: layout.logWords },
      ]),
      slot(`feed[${j}] start`, layout.feedStart(j), FEED_START.words),
      { name: `feed[${j}] end`, at: layout.feedEnd(j), words: 1 },
      { name: `feed[${j}]`, at: layout.feedRing(j), words: layout.feedWords },
    ]),
    ...upTo(clients).flatMap((c) => [
      { name: `inbox[${c}] control`, at: layout.inboxControl(c), words: INBOX_CONTROL.words },
      { name: `inbox[${c}]`, at: layout.inboxRing(c), words: layout.inboxWords },
    ]),
  ];
}

function clientAreas(layout: Layout): Area[] {
  const { groups, replicas, callsMax, replyBytesMax } = layout.sizes;
  const replyWords = REPLY.payload + wordsFor(replyBytesMax) + FRAME_WORDS;
  return upTo(groups * replicas).flatMap((replica) => [
    clientNotification(`doorbell[${replica}]`, layout.replyNotification(replica)),
    ...upTo(callsMax).map((call) => ({
      name: `reply[${replica}][${call}]`,
      at: layout.reply(replica, call),
      words: replyWords,
    })),
  ]);
}

/** In order of their places, each must end before the next begins; only bells share cache lines, with each other. */
function expectApart(areas: Area[], regionWords: number): void {
  areas.sort((a, b) => a.at - b.at);
  let end = 0;
  let followsBell = false;
  for (const { name, at, words, isBell = false } of areas) {
    if (at < end) throw new Error(`${name} begins at ${at}, before the last area ends at ${end}`);
    if (at % CACHE_LINE_WORDS !== 0 && !(isBell && followsBell && at === end)) {
      throw new Error(`${name} shares a cache line`);
    }
    end = at + words;
    followsBell = isBell;
  }
  expect(end).toBeLessThanOrEqual(regionWords);
}

test('no two areas overlap and all lie within their region', () => {
  fc.assert(
    fc.property(sizes, (drawn) => {
      const layout = new Layout(drawn);
      expectApart(replicaAreas(layout), layout.replicaRegionWords);
      expectApart(clientAreas(layout), layout.clientRegionWords);
    }),
  );
});

test('rings wrap by a mask, are as large as asked for, and hold the largest records', () => {
  fc.assert(
    fc.property(sizes, (drawn) => {
      const layout = new Layout(drawn);
      const { logWords, inboxWords, feedWords } = layout;
      for (const words of [logWords, inboxWords, feedWords]) expect(words & (words - 1)).toBe(0);
      expect(logWords * 4).toBeGreaterThanOrEqual(drawn.logBytes);
      expect(inboxWords * 4).toBeGreaterThanOrEqual(drawn.inboxBytes);
      expect(feedWords * 4).toBeGreaterThanOrEqual(drawn.feedBytes);
      const message = messageWords(drawn.payloadBytesMax) + FRAME_WORDS;
      expect(message).toBeGreaterThanOrEqual(
        MESSAGE.payload + wordsFor(drawn.payloadBytesMax) + FRAME_WORDS,
      );
      expect(inboxWords).toBeGreaterThanOrEqual(message);
      expect(feedWords).toBeGreaterThanOrEqual(message);
      // The last entry stays, so that one and the next.
      expect(logWords).toBeGreaterThanOrEqual(2 * (message + SOURCE.words));
    }),
  );
});

test('records of messages and entries have an even number of words, whatever their payload', () => {
  for (let payloadBytes = 0; payloadBytes < 40; payloadBytes++) {
    expect((messageWords(payloadBytes) + FRAME_WORDS) % 2).toBe(0);
    expect((messageWords(payloadBytes) + SOURCE.words + FRAME_WORDS) % 2).toBe(0);
  }
});

test('processes are numbered without gaps: replicas by group, then clients', () => {
  fc.assert(
    fc.property(sizes, (drawn) => {
      const layout = new Layout(drawn);
      const participants = [
        ...upTo(drawn.groups).flatMap((group) =>
          upTo(drawn.replicas).map((member) => layout.replicaParticipant(group, member)),
        ),
        ...upTo(drawn.clients).map((client) => layout.clientParticipant(client)),
      ];
      expect(participants).toEqual(upTo(participants.length));
    }),
  );
});
