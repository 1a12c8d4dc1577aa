import { describe, expect, test } from 'vitest';
import { ErrorReply } from '../../src/resp/reply.js';
import { Engine } from './engine.js';

describe('HyperLogLogs', () => {
  test('estimate within a few per cent, sparse and dense', () => {
    const tested = new Engine();
    for (const count of [10, 1_000, 3_000, 100_000]) {
      for (let i = 0; i < count; i += 500) {
        const elements = Array.from({ length: Math.min(500, count - i) }, (_, j) => `e${i + j}`);
        tested.run(`PFADD n${count} ${elements.join(' ')}`);
      }
      const estimate = tested.run(`PFCOUNT n${count}`) as number;
      expect(Math.abs(estimate / count - 1)).toBeLessThan(0.03);
    }
    // A sparse one is short, a dense one has all registers.
    expect(tested.keyspace.readString('n10')!.length).toBeLessThan(60);
    expect(tested.keyspace.readString('n100000')).toHaveLength(12_304);
  });

  test('a merged one counts what any of them has', () => {
    const tested = new Engine();
    tested.run('PFADD a 1 2 3');
    tested.run('PFADD b 3 4 5 6');
    tested.run('PFMERGE c a b');
    expect(tested.run('PFCOUNT c')).toBe(6);
    expect(tested.run('PFCOUNT a b')).toBe(6);
    // What they were made from is as before.
    expect(tested.run('PFCOUNT a')).toBe(3);
  });

  test('keep their expiry times', () => {
    const tested = new Engine();
    tested.run('PFADD a 1');
    tested.keyspace.expireAt('a', 5_000);
    tested.run('PFADD a 2');
    expect(tested.keyspace.find('a')!.expiresAtMs).toBe(5_000);
  });

  test.each([
    ['HYLL', 'WRONGTYPE'],
    [`HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x40`, 'INVALIDOBJ'],
    [`HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xff\x00`, 'INVALIDOBJ'],
    [`HYLL\0\0\0\0\0\0\0\0\0\0\0\x80\0`, 'WRONGTYPE'],
  ])('%j is none', (text, code) => {
    const tested = new Engine();
    tested.keyspace.set('a', text);
    for (const line of ['PFCOUNT a', 'PFMERGE b a']) {
      expect(String(tested.run(line))).toContain(code);
    }
    expect(tested.keyspace.readString('a')).toBe(text);
  });
});

describe('places', () => {
  function cities(): Engine {
    const tested = new Engine();
    tested.run('GEOADD it 13.361389 38.115556 Palermo 15.087269 37.502669 Catania');
    return tested;
  }

  test('distances', () => {
    expect(cities().run('GEODIST it Palermo Catania')).toBe('166274.1516');
    expect(cities().run('GEODIST it Palermo Catania km')).toBe('166.2742');
    expect(cities().run('GEODIST it Palermo Rome')).toBeNull();
  });

  test('geohashes', () => {
    expect(cities().run('GEOHASH it Palermo Catania')).toEqual(['sqc8b49rny0', 'sqdtr74hyu0']);
  });

  test('a search finds what is inside', () => {
    const tested = cities();
    expect(tested.run('GEOSEARCH it FROMLONLAT 15 37 BYRADIUS 200 km ASC')).toEqual([
      'Catania',
      'Palermo',
    ]);
    expect(tested.run('GEOSEARCH it FROMLONLAT 15 37 BYBOX 200 200 km')).toEqual(['Catania']);
    expect(tested.run('GEOSEARCHSTORE near it FROMMEMBER Palermo BYRADIUS 1 km')).toBe(1);
    expect(tested.run('ZRANGE near 0 -1')).toEqual(['Palermo']);
  });

  test('every member is found from where it is, at the edges of the grid too', () => {
    const tested = new Engine();
    for (const longitude of [-180, -179.999, 0, 90, 179.999, 180]) {
      for (const latitude of [-85.05112878, -66.5, 0, 45, 80.5, 85.05112878]) {
        const member = `${longitude},${latitude}`;
        tested.run(`GEOADD all ${longitude} ${latitude} ${member}`);
        for (const radius of ['1 m', '10 km', '3000 km']) {
          const found = tested.run(`GEOSEARCH all FROMMEMBER ${member} BYRADIUS ${radius}`);
          expect(found).toContain(member);
        }
      }
    }
  });

  test('a place has to be on the map', () => {
    const tested = cities();
    expect(tested.run('GEOADD it 181 0 x')).toBeInstanceOf(ErrorReply);
    expect(tested.run('GEOADD it 0 86 x')).toBeInstanceOf(ErrorReply);
    expect(tested.run('ZCARD it')).toBe(2);
  });
});
