/** A reader of a log that its leader drops from and overwrites, while the reader is between two loads. */
import { afterEach, expect, test, vi } from 'vitest';
import type { ClusterContext } from '../../src/hosting/cluster-context.js';
import { Tail } from '../../src/hosting/tail.js';
import { FRAME_WORDS, HEAD_WORDS, seal } from '../../src/memory/record.js';
import { LogRing } from '../../src/protocol/data-path/log.js';
import { Layout, MESSAGE } from '../../src/protocol/layout.js';

const BALLOT = 1;

/** A log with room for so many entries of `ENTRY_WORDS`. */
const ENTRIES = 16;
const ENTRY_WORDS = 16;

function newLog() {
  const layout = new Layout({
    groups: 1,
    replicas: 1,
    clients: 1,
    payloadBytesMax: 16,
    replyBytesMax: 8,
    logBytes: ENTRIES * ENTRY_WORDS * 4,
    inboxBytes: 64,
    feedBytes: 64,
    callsMax: 1,
    snapshotChunkBytes: 64,
    firstIndex: 0,
    salt: { check: 5, tail: 7 },
  });
  const own = new Int32Array(new SharedArrayBuffer(layout.replicaRegionWords * 4));
  const ring = new LogRing(own, layout, 0, 0, 0);
  ring.marker = BALLOT;
  let end = 0;
  let position = 0;
  const starts: number[] = [];
  return {
    openTail: () => new Tail({ layout, region: () => own } as unknown as ClusterContext, 0),
    append: (words = ENTRY_WORDS) => {
      starts[end] = position;
      const destinations = position + HEAD_WORDS + MESSAGE.destinationsLow;
      ring.words[ring.at + (destinations & ring.mask)] = 1;
      seal(ring, position, words - FRAME_WORDS, BALLOT, end++);
      position += words;
      ring.decided = end;
    },
    dropBelow: (index: number) => {
      ring.base = starts[index];
    },
  };
}

/** Once the reader has loaded this word for the `look`-th time, `meanwhile` happens before its next load. */
function interruptAfter(field: 'base' | 'decided', look: number, meanwhile: () => void): void {
  const { get } = Object.getOwnPropertyDescriptor(LogRing.prototype, field)!;
  let looks = 0;
  vi.spyOn(LogRing.prototype, field, 'get').mockImplementation(function (this: LogRing) {
    const value: number = get!.call(this);
    if (++looks === look) meanwhile();
    return value;
  });
}

afterEach(() => {
  vi.restoreAllMocks();
});

test.each([1, 2, 3])('starts at the end, although the log moves after look %d', (look) => {
  const { openTail, append, dropBelow } = newLog();
  for (let i = 0; i < ENTRIES; i++) append();
  dropBelow(8);
  for (let i = 0; i < 8; i++) append();
  dropBelow(9);
  interruptAfter('base', look, () => {
    dropBelow(16);
    append(20);
    append(20);
  });
  const tail = openTail();
  vi.restoreAllMocks();
  append();
  expect(tail.next()?.index).toBeGreaterThanOrEqual(24);
});

test('does not lag because an entry of the next lap starts where it looked for the oldest one', () => {
  const { openTail, append, dropBelow } = newLog();
  for (let i = 0; i < ENTRIES; i++) append();
  dropBelow(4);
  const tail = openTail();
  // One entry is decided after it has looked for the next one, and more follow before it has looked at the oldest one.
  interruptAfter('decided', 1, append);
  interruptAfter('base', 1, () => {
    dropBelow(8);
    for (let i = 0; i < 4; i++) append();
  });
  expect(tail.next()).toBeUndefined();
  expect(tail.next()?.index).toBe(ENTRIES);
});
