/** The simulated memory keeps every promise of the contract, in any weather. */
import fc from 'fast-check';
import { NO_TAG, OPEN, type Outcome, RETIRED } from 'tram-multicast/internal/memory/contract.js';
import { describe, expect, test } from 'vitest';
import { Random } from '../../src/sim/random.js';
import {
  Killed,
  SimulatedFabric,
  type SimulatedMemory,
  type Weather,
} from '../../src/sim/simulated-memory.js';

const CALM: Weather = { delayUs: 2, jitterUs: 0, tornPercent: 0, lateCompletionPercent: 0 };
const REGION_WORDS = 64;
const RUNS = { numRuns: 300 };

const weathers: fc.Arbitrary<Weather> = fc.record({
  delayUs: fc.integer({ min: 1, max: 5 }),
  jitterUs: fc.nat(20),
  tornPercent: fc.constantFrom(0, 50, 100),
  lateCompletionPercent: fc.constantFrom(0, 30, 100),
});
const seeds = fc.nat();

interface Done {
  peer: number;
  tag: number;
  outcome: Outcome;
}

function newFabric(weather: Weather, seed: number, participants = 3) {
  const fabric = new SimulatedFabric(participants, { ...weather }, new Random(seed));
  const memories = Array.from({ length: participants }, (_, p) => fabric.start(p, REGION_WORDS));
  return { fabric, memories };
}

function takeCompletions(memory: SimulatedMemory): Done[] {
  const done: Done[] = [];
  while (memory.poll()) {
    const { peer, tag, outcome } = memory.completion;
    done.push({ peer, tag, outcome });
  }
  return done;
}

/** Run until nothing is in flight. Calls `look` after every event. */
function runAll(fabric: SimulatedFabric, look: () => void = () => {}): void {
  while (fabric.nextUs() < Number.POSITIVE_INFINITY) {
    fabric.runNext();
    look();
  }
}

const filled = (count: number, value: number) => new Int32Array(count).fill(value);

describe('order', () => {
  test('operations that one participant posts to one peer take effect, and complete, in order', () => {
    const operations = fc.array(
      fc.record({
        peer: fc.constantFrom(1, 2),
        isRead: fc.boolean(),
        words: fc.integer({ min: 1, max: 8 }),
      }),
      { maxLength: 30, size: 'max' },
    );
    fc.assert(
      fc.property(weathers, seeds, operations, (weather, seed, drawn) => {
        const { fabric, memories } = newFabric(weather, seed);
        const [poster] = memories;
        const reads: { peer: number; after: number; into: Int32Array }[] = [];
        const written = [0, 0, 0];
        for (const [tag, { peer, isRead, words }] of drawn.entries()) {
          if (isRead) {
            const into = new Int32Array(1);
            reads.push({ peer, after: written[peer], into });
            poster.read(peer, 0, 1, into, 0, tag);
          } else {
            written[peer] = tag + 1;
            poster.write(peer, 0, filled(words, tag + 1), 0, words, OPEN, tag);
          }
        }
        const last = [0, 0, 0];
        runAll(fabric, () => {
          for (const peer of [1, 2]) {
            const now = memories[peer].own[0];
            expect(now).toBeGreaterThanOrEqual(last[peer]);
            last[peer] = now;
          }
        });
        // A read takes effect after the writes before it, and before the writes after it.
        for (const { after, into } of reads) expect(into[0]).toBe(after);
        const done = takeCompletions(poster);
        for (const peer of [1, 2]) {
          const posted = drawn.flatMap((operation, tag) => (operation.peer === peer ? [tag] : []));
          expect(done.filter((one) => one.peer === peer).map(({ tag }) => tag)).toEqual(posted);
        }
        expect(done.every(({ outcome }) => outcome === 'ok')).toBe(true);
      }),
      RUNS,
    );
  });

  test('a slow link keeps its order, and does not delay other links', () => {
    const { fabric, memories } = newFabric(CALM, 1);
    const [poster, slow, fast] = memories;
    fabric.slowDown(0, 1, 1000);
    poster.write(1, 0, filled(1, 1), 0, 1, OPEN, 1);
    fabric.slowDown(0, 1, 0);
    poster.write(1, 0, filled(1, 2), 0, 1, OPEN, 2);
    poster.write(2, 0, filled(1, 3), 0, 1, OPEN, 3);
    fabric.runNext();
    expect([slow.own[0], fast.own[0]]).toEqual([0, 3]);
    runAll(fabric);
    expect(slow.own[0]).toBe(2);
    expect(takeCompletions(poster).map(({ tag }) => tag)).toEqual([3, 1, 2]);
  });
});

describe('words', () => {
  test('the words of a write land once, from the left or from the right, and a torn write can be seen', () => {
    const states = new Set<string>();
    fc.assert(
      fc.property(weathers, seeds, fc.integer({ min: 1, max: 20 }), (weather, seed, count) => {
        const { fabric, memories } = newFabric(weather, seed);
        const data = Int32Array.from({ length: count }, (_, i) => i + 1);
        memories[0].write(1, 10, data, 0, count, OPEN, 0);
        let landed = 0;
        runAll(fabric, () => {
          const { own } = memories[1];
          const now = own.filter((word) => word !== 0).length;
          const isForward = own[10] === 1;
          const first = isForward ? 0 : count - now;
          const expected = new Int32Array(own.length);
          expected.set(data.slice(first, first + now), 10 + first);
          expect(own).toEqual(expected);
          expect(now).toBeGreaterThanOrEqual(landed);
          landed = now;
          if (now < count) states.add(`${now} from the ${isForward ? 'left' : 'right'}`);
        });
        expect(landed).toBe(count);
      }),
      RUNS,
    );
    expect(states.size).toBeGreaterThan(30);
  });

  test('a read may return older words beside newer ones, on either side', () => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= 200; seed++) {
      const { fabric, memories } = newFabric({ ...CALM, tornPercent: 100 }, seed);
      const into = new Int32Array(4);
      memories[0].read(1, 0, 4, into, 0, 0);
      runAll(fabric, () => {
        memories[1].own.fill(1);
      });
      seen.add([...into].join(''));
    }
    expect(seen).toContain('0111');
    expect(seen).toContain('1110');
    for (const words of seen) expect(words).toMatch(/^(0+1*|1+0*)$/);
  });

  test('scratch is zero, has the requested size, and is private', () => {
    const { memories } = newFabric(CALM, 1);
    const one = memories[0].scratch(8);
    const other = memories[0].scratch(8);
    expect(one).toEqual(new Int32Array(8));
    one.fill(7);
    expect(other).toEqual(new Int32Array(8));
    expect(memories[0].own.every((word) => word === 0)).toBe(true);
  });

  test('the source is copied when it is posted', () => {
    const { fabric, memories } = newFabric(CALM, 1);
    const source = Int32Array.of(1, 2, 3, 4);
    memories[0].write(1, 0, source, 1, 2, OPEN, 0);
    source.fill(9);
    runAll(fabric);
    expect([...memories[1].own.slice(0, 3)]).toEqual([2, 3, 0]);
  });

  test('a read returns exactly the requested words', () => {
    const { fabric, memories } = newFabric(CALM, 1);
    memories[1].own.set([1, 2, 3, 4, 5]);
    const into = new Int32Array(5);
    memories[0].read(1, 1, 3, into, 1, 0);
    runAll(fabric);
    expect([...into]).toEqual([0, 2, 3, 4, 0]);
  });
});

describe('permission', () => {
  test('a write with another guard is refused; an open write needs no permission', () => {
    const { fabric, memories } = newFabric(CALM, 1);
    const [poster, target] = memories;
    target.permit(8);
    expect(target.permitted()).toBe(8);
    poster.write(1, 0, filled(1, 1), 0, 1, 7, 7);
    poster.write(1, 1, filled(1, 1), 0, 1, 8, 8);
    poster.write(1, 2, filled(1, 1), 0, 1, OPEN, 0);
    runAll(fabric);
    expect(takeCompletions(poster)).toEqual([
      { peer: 1, tag: 7, outcome: 'refused' },
      { peer: 1, tag: 8, outcome: 'ok' },
      { peer: 1, tag: 0, outcome: 'ok' },
    ]);
  });

  test('a write with an earlier guard succeeds only if its words could be read when permit returned', () => {
    const plans = fc.record({
      writes: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 10 }),
      stepsBefore: fc.nat(15),
    });
    const outcomes = { ok: 0, refused: 0, lost: 0 };
    fc.assert(
      fc.property(weathers, seeds, plans, (weather, seed, { writes, stepsBefore }) => {
        const { fabric, memories } = newFabric(weather, seed);
        const [poster, target] = memories;
        target.permit(8);
        // Every write has its own words.
        let at = 0;
        const places = writes.map((words, tag) => {
          const place = at;
          poster.write(1, place, filled(words, tag + 1), 0, words, 8, tag);
          at += words;
          return place;
        });
        for (let i = 0; i < stepsBefore && fabric.nextUs() < Number.POSITIVE_INFINITY; i++) {
          fabric.runNext();
        }
        target.permit(16);
        const sealed = target.own.slice();
        runAll(fabric);
        const done = takeCompletions(poster);
        expect(done).toHaveLength(writes.length);
        for (const { tag, outcome } of done) {
          outcomes[outcome]++;
          if (outcome !== 'ok') continue;
          const words = sealed.slice(places[tag], places[tag] + writes[tag]);
          expect(words).toEqual(filled(writes[tag], tag + 1));
        }
        // Once a write is refused, all later ones are refused too.
        const first = done.findIndex(({ outcome }) => outcome === 'refused');
        const rest = first < 0 ? [] : done.slice(first);
        expect(rest.every(({ outcome }) => outcome === 'refused')).toBe(true);
      }),
      RUNS,
    );
    expect(outcomes.ok).toBeGreaterThan(100);
    expect(outcomes.refused).toBeGreaterThan(100);
  });

  test('a prefix of the refused writes, in order of posting, may have landed, and sometimes has', () => {
    const landedCounts = new Set<number>();
    fc.assert(
      fc.property(seeds, (seed) => {
        const { fabric, memories } = newFabric(CALM, seed);
        const [poster, target] = memories;
        target.permit(16);
        for (let tag = 0; tag < 4; tag++) poster.write(1, tag, filled(1, 1), 0, 1, 8, tag);
        runAll(fabric);
        const landed = [...target.own.slice(0, 4)];
        const count = landed.indexOf(0) < 0 ? 4 : landed.indexOf(0);
        expect(landed).toEqual([1, 1, 1, 1].fill(0, count));
        landedCounts.add(count);
      }),
      RUNS,
    );
    expect([...landedCounts].sort()).toEqual([0, 1, 2, 3, 4]);
  });
});

describe('restart', () => {
  test('no post of an earlier incarnation lands after the restart', () => {
    let landedBetween = 0;
    fc.assert(
      fc.property(weathers, seeds, fc.nat(10), fc.nat(10), (weather, seed, before, between) => {
        const { fabric, memories } = newFabric(weather, seed);
        const some = (count: number) => {
          for (let i = 0; i < count && fabric.nextUs() < Number.POSITIVE_INFINITY; i++) {
            fabric.runNext();
          }
        };
        for (let tag = 0; tag < 8; tag++) {
          memories[0].write(1, tag * 4, filled(4, 1), 0, 4, OPEN, tag);
        }
        some(before);
        const atCrash = memories[1].own.slice();
        fabric.crash(0);
        some(between);
        if (atCrash.join() !== memories[1].own.join()) landedBetween++;
        const atRestart = memories[1].own.slice();
        const reborn = fabric.start(0, REGION_WORDS);
        runAll(fabric, () => expect(memories[1].own).toEqual(atRestart));
        expect(takeCompletions(reborn)).toEqual([]);
        // A prefix of the posts has landed; the last of them may have landed in part.
        const landed = Array.from({ length: 8 }, (_, tag) =>
          atRestart.slice(tag * 4, tag * 4 + 4).reduce((sum, word) => sum + word, 0),
        );
        const wholes = landed.lastIndexOf(4) + 1;
        expect(landed.slice(0, wholes).every((count) => count === 4)).toBe(true);
        expect(landed.slice(wholes + 1).every((count) => count === 0)).toBe(true);
      }),
      RUNS,
    );
    expect(landedBetween).toBeGreaterThan(20);
  });

  test('a participant restarts with empty memory, and operations in flight to it are gone', () => {
    fc.assert(
      fc.property(weathers, seeds, (weather, seed) => {
        const { fabric, memories } = newFabric(weather, seed);
        memories[1].own.fill(7);
        memories[0].write(1, 0, filled(4, 1), 0, 4, OPEN, 0);
        fabric.crash(1);
        const reborn = fabric.start(1, REGION_WORDS);
        runAll(fabric);
        expect(reborn.own.every((word) => word === 0)).toBe(true);
        memories[0].write(1, 0, filled(4, 2), 0, 4, OPEN, 1);
        runAll(fabric);
        expect([...reborn.own.slice(0, 5)]).toEqual([2, 2, 2, 2, 0]);
      }),
      RUNS,
    );
  });
});

describe('memory that outlives its participant', () => {
  /** Participant 1 permits 8 and is killed, with a write to it and one of its own in flight. */
  function killed(weather: Weather, seed: number) {
    const { fabric, memories } = newFabric(weather, seed);
    memories[1].permit(8);
    memories[1].own.fill(7, 40);
    memories[0].write(1, 0, filled(6, 1), 0, 6, 8, 1);
    memories[1].write(2, 0, filled(6, 1), 0, 6, OPEN, 2);
    fabric.kill(1);
    return { fabric, memories };
  }

  test('can still be written, and writes to it succeed', () => {
    fc.assert(
      fc.property(weathers, seeds, (weather, seed) => {
        const { fabric, memories } = killed(weather, seed);
        memories[0].write(1, 6, filled(2, 2), 0, 2, 8, 3);
        memories[0].write(1, 8, filled(2, 3), 0, 2, 9, 4);
        runAll(fabric);
        expect([...memories[1].own.slice(0, 8)]).toEqual([1, 1, 1, 1, 1, 1, 2, 2]);
        expect(takeCompletions(memories[0])).toEqual([
          { peer: 1, tag: 1, outcome: 'ok' },
          { peer: 1, tag: 3, outcome: 'ok' },
          { peer: 1, tag: 4, outcome: 'refused' },
        ]);
      }),
      RUNS,
    );
  });

  test('and its permission pass to the next incarnation; no post of the earlier one lands any more', () => {
    let landed = 0;
    fc.assert(
      fc.property(weathers, seeds, fc.nat(6), (weather, seed, between) => {
        const { fabric, memories } = killed(weather, seed);
        for (let i = 0; i < between && fabric.nextUs() < Number.POSITIVE_INFINITY; i++) {
          fabric.runNext();
        }
        const resumed = fabric.resume(1);
        expect(resumed.permitted()).toBe(8);
        expect(resumed.own).toBe(memories[1].own);
        expect(resumed.own[40]).toBe(7);
        const elsewhere = memories[2].own.slice();
        if (elsewhere[0] !== 0) landed++;
        runAll(fabric);
        expect(memories[2].own).toEqual(elsewhere);
        expect(takeCompletions(resumed)).toEqual([]);
        expect(takeCompletions(memories[0])).toEqual([{ peer: 1, tag: 1, outcome: 'ok' }]);
      }),
      RUNS,
    );
    expect(landed).toBeGreaterThan(20);
  });

  test('is emptied after all permissions are revoked; operations in flight may still land', () => {
    const after = new Set<number>();
    fc.assert(
      fc.property(weathers, seeds, (weather, seed) => {
        const { fabric, memories } = killed(weather, seed);
        const restarted = fabric.restart(1);
        expect(restarted.permitted()).toBe(RETIRED);
        expect(restarted.own.slice(40).every((word) => word === 0)).toBe(true);
        runAll(fabric);
        const [{ outcome }] = takeCompletions(memories[0]);
        expect(outcome).toBe('refused');
        after.add(restarted.own.reduce((sum, word) => sum + word, 0));
      }),
      RUNS,
    );
    expect(after).toContain(0);
    expect(after).toContain(6);
  });

  test('a participant is killed exactly at the chosen action, if it may die', () => {
    for (let deeds = 0; deeds <= 4; deeds++) {
      const { fabric, memories } = newFabric(CALM, 1);
      memories[0].dieAfter(deeds, () => true);
      let done = 0;
      const live = () => {
        memories[0].write(1, 0, filled(1, 1), 0, 1, OPEN, 1);
        done++;
        memories[0].permit(8);
        done++;
        memories[0].write(1, 1, filled(1, 1), 0, 1, OPEN, 1);
        done++;
      };
      if (deeds < 4) expect(live).toThrow(Killed);
      else live();
      runAll(fabric);
      // Before and after a change of permission are two different points.
      const permitted = deeds >= 2 ? 8 : 0;
      expect({ done, permitted: memories[0].permitted() }).toEqual({
        done: [0, 1, 1, 2, 3][deeds],
        permitted,
      });
      expect([...memories[1].own.slice(0, 2)]).toEqual([Math.min(deeds, 1), deeds === 4 ? 1 : 0]);
    }
    const { memories } = newFabric(CALM, 1);
    memories[0].dieAfter(0, () => false);
    memories[0].permit(8);
    expect(memories[0].permitted()).toBe(8);
  });
});

describe('outcome', () => {
  test('posts to a crashed participant complete as lost, or never', () => {
    const heard = new Map<string, number>();
    fc.assert(
      fc.property(weathers, seeds, (weather, seed) => {
        const { fabric, memories } = newFabric(weather, seed);
        memories[0].write(1, 0, filled(1, 1), 0, 1, OPEN, 5);
        memories[0].read(1, 0, 1, new Int32Array(1), 0, 6);
        fabric.crash(1);
        memories[0].write(1, 0, filled(1, 1), 0, 1, OPEN, 7);
        runAll(fabric);
        const told = takeCompletions(memories[0])
          .map(({ tag, outcome }) => `${tag} ${outcome}`)
          .join(', ');
        heard.set(told, (heard.get(told) ?? 0) + 1);
      }),
      RUNS,
    );
    expect([...heard.keys()].sort()).toEqual(['', '5 lost, 6 lost']);
  });

  test('a broken link loses all posts until all losses are polled, and nothing else', () => {
    const { fabric, memories } = newFabric(CALM, 1);
    memories[0].write(1, 0, filled(1, 1), 0, 1, OPEN, 1);
    memories[0].write(2, 0, filled(1, 1), 0, 1, OPEN, 2);
    fabric.breakLink(0, 1);
    memories[0].write(1, 1, filled(1, 1), 0, 1, OPEN, 3);
    runAll(fabric);
    expect([...memories[1].own.slice(0, 2)]).toEqual([0, 0]);
    expect(takeCompletions(memories[0])).toEqual([
      { peer: 1, tag: 1, outcome: 'lost' },
      { peer: 1, tag: 3, outcome: 'lost' },
      { peer: 2, tag: 2, outcome: 'ok' },
    ]);
    memories[0].write(1, 1, filled(1, 1), 0, 1, OPEN, 4);
    runAll(fabric);
    expect([...memories[1].own.slice(0, 2)]).toEqual([0, 1]);
    expect(takeCompletions(memories[0])).toEqual([{ peer: 1, tag: 4, outcome: 'ok' }]);
  });

  test('a network may report as lost what has landed: any prefix in the order of posting', () => {
    const landed = new Set<string>();
    for (let seed = 1; seed <= 100; seed++) {
      const { fabric, memories } = newFabric(CALM, seed);
      for (let tag = 1; tag <= 3; tag++) memories[0].write(1, tag, filled(1, 1), 0, 1, OPEN, tag);
      fabric.breakAnywhere(0, 1);
      runAll(fabric);
      landed.add([...memories[1].own.slice(1, 4)].join(''));
      expect(takeCompletions(memories[0]).map(({ outcome }) => outcome)).toEqual([
        'lost',
        'lost',
        'lost',
      ]);
    }
    expect([...landed].sort()).toEqual(['000', '100', '110', '111']);
  });

  test('a link that is down loses all that is posted on it until it comes back', () => {
    const { fabric, memories } = newFabric(CALM, 1);
    fabric.goesDown(0, 1);
    for (let tag = 1; tag <= 2; tag++) {
      memories[0].write(1, tag, filled(1, 1), 0, 1, OPEN, tag);
      runAll(fabric);
      expect(takeCompletions(memories[0])).toEqual([{ peer: 1, tag, outcome: 'lost' }]);
    }
    memories[1].write(0, 0, filled(1, 1), 0, 1, OPEN, 3);
    fabric.comesBack(0, 1);
    memories[0].write(1, 3, filled(1, 1), 0, 1, OPEN, 3);
    runAll(fabric);
    expect([...memories[1].own.slice(1, 4)]).toEqual([0, 0, 1]);
    expect(memories[0].own[0]).toBe(1);
  });

  test('the loss of a fire-and-forget write is not reported', () => {
    const { fabric, memories } = newFabric(CALM, 1);
    memories[0].write(1, 0, filled(1, 1), 0, 1, OPEN, NO_TAG);
    memories[0].write(1, 1, filled(1, 1), 0, 1, 8, NO_TAG);
    fabric.breakLink(0, 1);
    runAll(fabric);
    expect(takeCompletions(memories[0])).toEqual([{ peer: 1, tag: NO_TAG, outcome: 'lost' }]);
  });

  test('a completion may come long after its write has landed, but never before', () => {
    let late = 0;
    fc.assert(
      fc.property(seeds, (seed) => {
        const { fabric, memories } = newFabric({ ...CALM, lateCompletionPercent: 50 }, seed);
        for (let tag = 0; tag < 5; tag++) memories[0].write(1, tag, filled(1, 1), 0, 1, OPEN, tag);
        let completed = 0;
        runAll(fabric, () => {
          completed += takeCompletions(memories[0]).length;
          const landed = memories[1].own.filter((word) => word === 1).length;
          expect(completed).toBeLessThanOrEqual(landed);
          if (completed < landed) late++;
        });
        expect(completed).toBe(5);
      }),
      RUNS,
    );
    expect(late).toBeGreaterThan(100);
  });
});

describe('a script can', () => {
  test('hold a link and release it: all operations arrive, in order', () => {
    const { fabric, memories } = newFabric(CALM, 1);
    memories[0].write(1, 0, filled(1, 1), 0, 1, OPEN, 1);
    fabric.hold(0, 1);
    memories[0].write(1, 0, filled(1, 2), 0, 1, OPEN, 2);
    runAll(fabric);
    expect(memories[1].own[0]).toBe(0);
    fabric.release(0, 1);
    runAll(fabric);
    expect(memories[1].own[0]).toBe(2);
    expect(takeCompletions(memories[0]).map(({ tag }) => tag)).toEqual([1, 2]);
  });

  test('stall a participant after a number of posts, until it resumes', () => {
    const { fabric, memories } = newFabric(CALM, 1);
    memories[0].stallAfter(2);
    for (let tag = 0; tag < 4; tag++) memories[0].write(1, tag, filled(1, 1), 0, 1, OPEN, tag);
    expect(memories[0].isStalled).toBe(true);
    runAll(fabric);
    expect([...memories[1].own.slice(0, 4)]).toEqual([1, 1, 0, 0]);
    memories[0].resume();
    runAll(fabric);
    expect([...memories[1].own.slice(0, 4)]).toEqual([1, 1, 1, 1]);
  });

  test('stall a participant before a write to a certain peer: reads and other writes are posted', () => {
    const { fabric, memories } = newFabric(CALM, 1);
    memories[0].stallBeforeWriteTo([2]);
    memories[0].read(2, 0, 1, new Int32Array(1), 0, 1);
    memories[0].write(1, 0, filled(1, 1), 0, 1, OPEN, 2);
    memories[0].write(2, 0, filled(1, 1), 0, 1, OPEN, 3);
    memories[0].write(1, 0, filled(1, 2), 0, 1, OPEN, 4);
    runAll(fabric);
    expect(takeCompletions(memories[0]).map(({ tag }) => tag)).toEqual([1, 2]);
    memories[0].resume();
    runAll(fabric);
    expect(takeCompletions(memories[0]).map(({ tag }) => tag)).toEqual([3, 4]);
  });
});
