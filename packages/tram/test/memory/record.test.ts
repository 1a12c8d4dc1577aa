/** Records: whole ones are found, and nothing that is not exactly one is. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  copyHashed,
  copyPart,
  copyWords,
  distance,
  epochAt,
  extend,
  FRAME_WORDS,
  framedWords,
  HEAD_WORDS,
  hashWords,
  isChecked,
  NO_WORDS,
  name,
  numberAt,
  ringAt,
  seal,
  sealHashed,
  sealNamed,
  slotAt,
  tailOf,
  type Window,
  word,
  wordsOf,
} from '../../src/memory/record.js';

const RING_WORDS = 64;
/** Words around the ring, which nobody may touch. */
const MARGIN = 8;
const UNTOUCHED = 0x5a5a5a5a;

interface Draw {
  body: number[];
  epoch: number;
  number: number;
  position: number;
}

/** Words as they occur: small ones, which look like heads and ends, and any others. */
const words = fc.oneof(fc.nat(RING_WORDS), fc.integer());
const bodies = fc.array(words, { maxLength: RING_WORDS - FRAME_WORDS, size: 'max' });
const draws: fc.Arbitrary<Draw> = fc.record({
  body: fc.oneof(
    bodies,
    fc.constant<number[]>([]),
    fc.array(words, { minLength: 59, maxLength: 59 }),
  ),
  epoch: fc.integer({ min: 1, max: 0x7fffffff }),
  number: fc.oneof(fc.nat(), fc.integer({ min: 2 ** 32 - 3, max: 2 ** 33 })),
  position: fc.integer(),
});

const SALT = { check: 0x5a17, tail: 0x7a11 };

function newRing(content: readonly number[] = [], salt = SALT): Window {
  const memory = new Int32Array(RING_WORDS + 2 * MARGIN).fill(UNTOUCHED);
  for (let i = 0; i < RING_WORDS; i++) memory[MARGIN + i] = content[i] ?? 0;
  return ringAt(memory, MARGIN, RING_WORDS, salt);
}

const place = (ring: Window, position: number) => ring.at + (position & ring.mask);

/** Put the record into the ring, as its writer does in its own copy. */
function put(ring: Window, { body, epoch, number, position }: Draw): number {
  body.forEach((word, i) => {
    ring.words[place(ring, position + HEAD_WORDS + i)] = word;
  });
  return seal(ring, position, body.length, epoch, number);
}

const find = (ring: Window, { epoch, number, position }: Draw) =>
  wordsOf(ring, position, epoch, number, RING_WORDS);

/** Those words of the record that have landed, over what is there. */
function land(ring: Window, draw: Draw, hasLanded: (i: number) => boolean): void {
  const source = newRing();
  const count = put(source, draw);
  for (let i = 0; i < count; i++) {
    if (!hasLanded(i)) continue;
    ring.words[place(ring, draw.position + i)] = source.words[place(source, draw.position + i)];
  }
}

/** The first `landed` words of it. */
function landPrefix(ring: Window, draw: Draw, landed: number): void {
  land(ring, draw, (i) => i < landed);
}

/** The naive twin: is every word of the record where it belongs? */
function standsWhole(ring: Window, draw: Draw): boolean {
  const whole = newRing();
  const count = put(whole, draw);
  return Array.from({ length: count }, (_, i) => draw.position + i).every(
    (at) => ring.words[place(ring, at)] === whole.words[place(whole, at)],
  );
}

describe('a record', () => {
  test('is found where it was sealed, across the wrap, and nothing else is touched', () => {
    fc.assert(
      fc.property(draws, (draw) => {
        const ring = newRing();
        const count = put(ring, draw);
        expect(count).toBe(draw.body.length + FRAME_WORDS);
        expect(find(ring, draw)).toBe(count);
        const read = draw.body.map(
          (_, i) => ring.words[place(ring, draw.position + HEAD_WORDS + i)],
        );
        expect(read).toEqual(draw.body);
        expect(ring.words.slice(0, MARGIN)).toEqual(new Int32Array(MARGIN).fill(UNTOUCHED));
        expect(ring.words.slice(-MARGIN)).toEqual(new Int32Array(MARGIN).fill(UNTOUCHED));
      }),
    );
  });

  test('with an empty body is five words; one that fills the ring is found', () => {
    const empty = { body: [], epoch: 1, number: 0, position: RING_WORDS - 2 };
    const ring = newRing();
    expect(put(ring, empty)).toBe(5);
    expect(find(ring, empty)).toBe(5);
    const full = { ...empty, body: Array.from({ length: RING_WORDS - FRAME_WORDS }, (_, i) => i) };
    expect(put(ring, full)).toBe(RING_WORDS);
    expect(find(ring, full)).toBe(RING_WORDS);
  });

  test('is found only under its own epoch and number, and if it may be so long', () => {
    fc.assert(
      fc.property(draws, words, (draw, other) => {
        const ring = newRing();
        const count = put(ring, draw);
        fc.pre(other !== draw.epoch && other !== (draw.number | 0));
        expect(find(ring, { ...draw, epoch: other })).toBe(0);
        expect(find(ring, { ...draw, number: other })).toBe(0);
        expect(wordsOf(ring, draw.position, draw.epoch, draw.number, count)).toBe(count);
        expect(wordsOf(ring, draw.position, draw.epoch, draw.number, count - 1)).toBe(0);
      }),
    );
  });

  test('is not there until its last word has landed, whatever was there before', () => {
    const contents = fc.array(words, { minLength: RING_WORDS, maxLength: RING_WORDS });
    fc.assert(
      fc.property(draws, contents, (draw, content) => {
        const count = draw.body.length + FRAME_WORDS;
        for (let landed = 0; landed <= count; landed++) {
          const ring = newRing(content);
          landPrefix(ring, draw, landed);
          expect(find(ring, draw) !== 0, `${landed} of ${count} words`).toBe(
            standsWhole(ring, draw),
          );
        }
      }),
    );
  });

  test('is not there while any of its words is missing, in whatever order they land', () => {
    const contents = fc.array(words, { minLength: RING_WORDS, maxLength: RING_WORDS });
    const orders = fc.array(fc.nat(), { minLength: RING_WORDS, maxLength: RING_WORDS });
    fc.assert(
      fc.property(draws, contents, orders, (draw, content, order) => {
        const count = draw.body.length + FRAME_WORDS;
        const places = Array.from({ length: count }, (_, i) => i);
        places.sort((a, b) => order[a] - order[b]);
        const ring = newRing(content);
        for (const next of places) {
          expect(find(ring, draw) !== 0).toBe(standsWhole(ring, draw));
          land(ring, draw, (i) => i === next);
        }
        expect(find(ring, draw)).toBe(count);
      }),
    );
  });

  test('is not there while the rest is of another record in the same place', () => {
    // The last lap's record, an earlier leadership's, or the same body under another name.
    const changes = fc.record({
      epoch: fc.nat(2),
      number: fc.integer({ min: -2, max: 2 }),
      shift: fc.integer({ min: -3, max: 3 }),
      sameBody: fc.boolean(),
      body: bodies,
    });
    fc.assert(
      fc.property(draws, changes, (draw, change) => {
        const old: Draw = {
          body: change.sameBody ? draw.body : change.body,
          epoch: Math.max(1, draw.epoch - change.epoch),
          number: draw.number + change.number,
          position: draw.position + change.shift,
        };
        fc.pre(old.epoch !== draw.epoch || old.number !== draw.number);
        const count = draw.body.length + FRAME_WORDS;
        for (let landed = 0; landed <= count; landed++) {
          const ring = newRing();
          put(ring, old);
          landPrefix(ring, draw, landed);
          expect(find(ring, draw) !== 0).toBe(standsWhole(ring, draw));
        }
      }),
    );
  });

  test('of the last lap is not taken for the next one', () => {
    const ring = newRing();
    const old = { body: [1, 2, 3], epoch: 7, number: 4, position: 10 };
    put(ring, old);
    const next = { ...old, position: old.position + RING_WORDS };
    expect(find(ring, { ...next, number: 5 })).toBe(0);
    expect(find(ring, { ...next, epoch: 8 })).toBe(0);
  });
});

describe('a payload', () => {
  test('of nothing but ends does not end a torn record', () => {
    const record = { body: [1, 2, 3, 4, 5, 6], epoch: 3, number: 9, position: 60 };
    const tail = tailOf(SALT, record.epoch, record.number);
    // With one word less than all, what follows is the end that was to come: then it is whole.
    for (let landed = 0; landed < record.body.length + HEAD_WORDS; landed++) {
      const ring = newRing(Array.from({ length: RING_WORDS }, () => tail));
      landPrefix(ring, record, landed);
      expect(find(ring, record)).toBe(0);
    }
  });

  test('that is itself a whole record stands for nothing but a payload', () => {
    fc.assert(
      fc.property(draws, fc.nat(5), (inner, before) => {
        const image = newRing();
        const innerWords = put(image, { ...inner, position: 0 });
        fc.pre(before + innerWords + FRAME_WORDS <= RING_WORDS);
        const body = [
          ...Array.from({ length: before }, () => 0),
          ...image.words.slice(MARGIN, MARGIN + innerWords),
        ];
        const outer = { ...inner, body, number: inner.number + 1 };
        const count = body.length + FRAME_WORDS;
        for (let landed = 0; landed <= count; landed++) {
          const ring = newRing();
          landPrefix(ring, outer, landed);
          // Neither half of it nor its payload is the record that is looked for.
          expect(find(ring, outer)).toBe(landed === count ? count : 0);
          expect(find(ring, inner)).toBe(0);
        }
      }),
    );
  });
});

test('a slot holds one record after the other, each at the same place', () => {
  const slot = slotAt(new Int32Array(20), 3);
  for (let number = 1; number < 5; number++) {
    slot.words[slot.at + HEAD_WORDS] = number * 100;
    expect(seal(slot, 0, 1, 1, number)).toBe(6);
    expect(wordsOf(slot, 0, 1, number, 17)).toBe(6);
    expect(wordsOf(slot, 0, 1, number - 1, 17)).toBe(0);
  }
});

describe('a record taken in two steps', () => {
  test('is framed if both its ends stand, whatever is between them', () => {
    fc.assert(
      fc.property(draws, words, fc.nat(), (draw, other, which) => {
        const ring = newRing();
        const count = put(ring, draw);
        const { position, epoch, number, body } = draw;
        expect(framedWords(ring, position, epoch, number, RING_WORDS)).toBe(count);
        expect(framedWords(ring, position, epoch, number, count - 1)).toBe(0);
        if (body.length > 0) {
          const inside = place(ring, position + HEAD_WORDS + (which % body.length));
          fc.pre(ring.words[inside] !== other);
          ring.words[inside] = other;
          expect(framedWords(ring, position, epoch, number, RING_WORDS)).toBe(count);
          expect(find(ring, draw)).toBe(0);
        }
        ring.words[place(ring, position + count - 1)] ^= 1;
        expect(framedWords(ring, position, epoch, number, RING_WORDS)).toBe(0);
      }),
    );
  });

  test('is whole if the hash of what was copied of it agrees with its check', () => {
    fc.assert(
      fc.property(draws, fc.integer(), fc.nat(), (draw, to, which) => {
        const ring = newRing();
        const count = put(ring, draw);
        const { position, body, epoch, number } = draw;
        const copy = newRing();
        const taken = copyHashed(ring, position + HEAD_WORDS, copy, to, body.length);
        expect(isChecked(ring, position, count, epoch, number, taken)).toBe(true);
        // One bit of it still to come.
        if (body.length === 0) return;
        ring.words[place(ring, position + HEAD_WORDS + (which % body.length))] ^= 1 << (which % 32);
        const half = copyHashed(ring, position + HEAD_WORDS, copy, to, body.length);
        expect(isChecked(ring, position, count, epoch, number, half)).toBe(false);
      }),
    );
  });

  test('is not another one that took its place meanwhile, be that as whole as can be', () => {
    fc.assert(
      fc.property(draws, fc.integer({ min: 1, max: 100 }), (draw, later) => {
        const ring = newRing();
        const { position, body, epoch, number } = draw;
        const count = put(ring, draw);
        expect(framedWords(ring, position, epoch, number, RING_WORDS)).toBe(count);
        put(ring, { ...draw, number: number + later });
        const taken = copyHashed(ring, position + HEAD_WORDS, newRing(), 0, body.length);
        expect(isChecked(ring, position, count, epoch, number + later, taken)).toBe(true);
        expect(isChecked(ring, position, count, epoch, number, taken)).toBe(false);
      }),
    );
  });

  test('a hash goes on where it was left, and seals as if the body had been hashed at once', () => {
    fc.assert(
      fc.property(draws, fc.nat(RING_WORDS), ({ body, epoch, number, position }, drawn) => {
        const split = Math.min(drawn, body.length);
        const at = position + HEAD_WORDS;
        const whole = newRing();
        const count = put(whole, { body, epoch, number, position });
        const parts = newRing();
        body.forEach((value, i) => {
          parts.words[place(parts, at + i)] = value;
        });
        const first = hashWords(parts, at, split, NO_WORDS);
        const hash = hashWords(parts, at + split, body.length - split, first);
        expect(sealHashed(parts, position, body.length, epoch, number, hash)).toBe(count);
        expect(parts.words).toEqual(whole.words);
      }),
    );
  });

  test('what is named is no record before it is sealed', () => {
    const slot = slotAt(new Int32Array(20), 3);
    slot.words[slot.at + HEAD_WORDS] = 7;
    name(slot.words, slot.at, 1, 5, 9);
    expect([word(slot, 0), epochAt(slot, 0), numberAt(slot, 0)]).toEqual([6, 5, 9]);
    expect(wordsOf(slot, 0, 5, 9, 17)).toBe(0);
    expect(sealNamed(slot, 0)).toBe(6);
    expect(wordsOf(slot, 0, 5, 9, 17)).toBe(6);
  });
});

describe('words are copied between windows, whichever of them wraps', () => {
  const positions = fc.integer();
  const checkCopy = (copy: typeof copyWords) =>
    fc.assert(
      fc.property(positions, positions, fc.nat(RING_WORDS), (from, to, count) => {
        const source = newRing(Array.from({ length: RING_WORDS }, (_, i) => i + 1));
        const target = newRing();
        copy(source, from, target, to, count);
        const expected = newRing();
        for (let i = 0; i < count; i++) {
          expected.words[place(expected, to + i)] = source.words[place(source, from + i)];
        }
        expect(target.words).toEqual(expected.words);
      }),
    );

  test('plainly', () => {
    checkCopy(copyWords);
  });

  test('and hashed on the way', () => {
    checkCopy((source, from, target, to, count) => {
      const hash = copyHashed(source, from, target, to, count);
      expect(hash).toBe(hashWords(source, from, count, NO_WORDS));
    });
  });
});

describe('counts modulo 2^32', () => {
  const WIDE = 2n ** 32n;
  const HALF = 2 ** 31;
  const edges = [0, HALF, 2 ** 32, 2 ** 33, 2 ** 40].flatMap((edge) => [edge - 1, edge, edge + 1]);
  const fulls = fc.oneof(
    fc.constantFrom(...edges),
    fc.integer({ min: 0, max: 2 ** 45 }),
    fc.tuple(fc.constantFrom(...edges), fc.integer({ min: -100, max: 100 })).map(([a, b]) => a + b),
  );

  /** The naive twin: the one number with these low bits from `near` - 2^31 up to, not including, `near` + 2^31. */
  function extendNaively(near: number, low: number): number {
    let full = BigInt(low >>> 0);
    while (full < BigInt(near) - WIDE / 2n) full += ((BigInt(near) - full) / WIDE + 1n) * WIDE;
    while (full >= BigInt(near) + WIDE / 2n) full -= WIDE;
    return Number(full);
  }

  test('a full count is known again from its low word and any count nearby', () => {
    fc.assert(
      fc.property(fulls, fc.integer({ min: -HALF + 1, max: HALF }), (full, away) => {
        expect(extend(full + away, full | 0)).toBe(full);
        expect(extend(full + away, full >>> 0)).toBe(full);
      }),
    );
  });

  test('extend agrees with its naive twin', () => {
    fc.assert(
      fc.property(fulls, fc.integer(), (near, low) => {
        expect(extend(near, low)).toBe(extendNaively(near, low));
      }),
    );
  });

  test('a distance is the way from one position to another, either way round', () => {
    fc.assert(
      fc.property(fulls, fc.integer({ min: -HALF, max: HALF - 1 }), (from, way) => {
        expect(distance((from + way) | 0, from | 0)).toBe(way);
      }),
    );
    expect(distance(0x7fffffff, -0x80000000)).toBe(-1);
    expect(distance(-0x80000000, 0x7fffffff)).toBe(1);
    expect(distance(0, -1)).toBe(1);
  });
});

const guesses = fc.record({
  check: fc.oneof(fc.constant(SALT.check), fc.integer()),
  tail: fc.oneof(fc.constant(SALT.tail), fc.integer()),
});

test('a payload that imitates the very next record is nothing, unless its maker knows both words of the salt', () => {
  fc.assert(
    fc.property(draws, guesses, ({ body, epoch, number, position }, guess) => {
      fc.pre(guess.check !== SALT.check || guess.tail !== SALT.tail);
      const forged = newRing([], guess);
      body.forEach((value, i) => {
        forged.words[place(forged, position + HEAD_WORDS + i)] = value;
      });
      seal(forged, position, body.length, epoch, number);
      const left = newRing([...forged.words.subarray(MARGIN, MARGIN + RING_WORDS)]);
      expect(wordsOf(left, position, epoch, number, RING_WORDS)).toBe(0);
    }),
  );
});

test('a copy of any length between any two places takes exactly its words, within one array or to another', () => {
  const SIZE = 400;
  for (const count of [0, 1, 2, 63, 64, 65, 66, 67, 128, 129]) {
    for (const [fromAt, toAt] of [
      [10, 200],
      [11, 200],
      [10, 201],
      [11, 201],
    ]) {
      const source = Int32Array.from({ length: SIZE }, (_, i) => i + 1);
      const expected = new Int32Array(SIZE);
      for (let i = 0; i < count; i++) expected[toAt + i] = source[fromAt + i];
      const target = new Int32Array(SIZE);
      copyPart(source, fromAt, target, toAt, count);
      expect(target).toEqual(expected);
      const same = source.slice();
      copyPart(same, fromAt, same, toAt, count);
      for (let i = 0; i < SIZE; i++) expect(same[i]).toBe(expected[i] || source[i]);
    }
  }
});
