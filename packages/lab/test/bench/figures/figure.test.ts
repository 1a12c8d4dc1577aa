/** Figures are right: ticks are round, everything lies where it belongs, and nothing breaks the markup. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawFigure, type Figure, type Panel } from '../../../src/bench/figures/figure.js';
import { logTicks, roundTicks, scaleOf, tickLabel } from '../../../src/bench/figures/scale.js';
import { styleOf } from '../../../src/bench/figures/style.js';
import { escapeText, wrap } from '../../../src/bench/figures/svg.js';

describe('ticks', () => {
  test.each([
    [0, 10, [0, 2, 4, 6, 8, 10]],
    [0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]],
    [0, 97, [0, 20, 40, 60, 80, 100]],
    [0, 0.03, [0, 0.01, 0.02, 0.03]],
    [3, 3, [3, 4]],
  ])('from %d to %d', (least, greatest, ticks) => {
    expect(roundTicks(least, greatest, 5)).toEqual(ticks);
  });

  test.each([
    [1, 10, [1, 2, 5, 10]],
    [3, 40, [2, 5, 10, 20, 50]],
    [0.5, 900, [0.1, 1, 10, 100, 1000]],
    [7, 7, [5, 10]],
  ])('logarithmic from %d to %d', (least, greatest, ticks) => {
    expect(logTicks(least, greatest)).toEqual(ticks);
  });

  test('they are around all values, ascending, and few', () => {
    const value = fc.double({ min: 1e-6, max: 1e9, noNaN: true });
    fc.assert(
      fc.property(value, value, (a, b) => {
        const [least, greatest] = [Math.min(a, b), Math.max(a, b)];
        for (const ticks of [roundTicks(0, greatest, 5), logTicks(least, greatest)]) {
          expect(ticks.length).toBeLessThanOrEqual(17);
          expect(ticks.at(-1)).toBeGreaterThanOrEqual(greatest * (1 - 1e-6));
          expect([...ticks].sort((x, y) => x - y)).toEqual(ticks);
          expect(new Set(ticks).size).toBe(ticks.length);
        }
        expect(logTicks(least, greatest)[0]).toBeLessThanOrEqual(least * (1 + 1e-6));
      }),
    );
  });

  test.each([
    [1500, '1,500'],
    [0.05, '0.05'],
    [40_000_000, '40M'],
  ])('%d is labelled %s', (value, label) => {
    expect(tickLabel(value)).toBe(label);
  });
});

describe('a scale', () => {
  const place = { from: 0, to: 100 };

  test('is linear', () => {
    const { at } = scaleOf({ kind: 'linear', least: 0, greatest: 10, ...place });
    expect([0, 5, 10].map(at)).toEqual([0, 50, 100]);
  });

  test('is logarithmic', () => {
    const { at } = scaleOf({ kind: 'log', least: 1, greatest: 100, ...place });
    expect([1, 10, 100].map((value) => Math.round(at(value)))).toEqual([0, 50, 100]);
  });

  test('ends with the values where ticks are given', () => {
    const options = { kind: 'log', least: 1, greatest: 8, ticks: [1, 2, 8], ...place } as const;
    const { at, ticks } = scaleOf(options);
    expect(ticks).toEqual([1, 2, 8]);
    expect([1, 8].map(at)).toEqual([0, 100]);
  });
});

const panel: Panel = {
  title: 'Latency',
  x: { label: 'destinations', kind: 'linear', ticks: [1, 2, 4] },
  y: { label: 'latency (µs)', kind: 'linear' },
  series: [
    {
      name: 'TRAM base',
      points: [
        { x: 4, y: 9, low: 8, high: 11 },
        { x: 1, y: 2, low: 2, high: 2 },
      ],
    },
    { name: 'A < B & "C"', points: [{ x: 2, y: 5, low: 4, high: 6 }] },
  ],
  reference: { y: 12, label: 'in the paper' },
};
const figure: Figure = { name: 'one', title: 'One & all', caption: 'here, today', panels: [panel] };

describe('a figure', () => {
  const svg = drawFigure(figure);

  test('has title, caption, axes with units, ticks and a legend', () => {
    for (const words of ['One &amp; all', 'here, today', 'latency (µs)', 'destinations']) {
      expect(svg).toContain(`>${words}</text>`);
    }
    for (const tick of [0, 5, 10, 15, 1, 2, 4]) expect(svg).toContain(`>${tick}</text>`);
    expect(svg).toContain('>TRAM base</text>');
    expect(svg).toContain('>A &lt; B &amp; &quot;C&quot;</text>');
    expect(svg).toContain('>in the paper</text>');
  });

  test('has a line for each series, a marker for each point, a whisker where runs differ', () => {
    expect(svg.match(/<polyline /g)).toHaveLength(2);
    // And one of each in the legend.
    expect(svg.match(/class="marker"/g)).toHaveLength(3 + 2);
    expect(svg.match(/class="whisker"/g)).toHaveLength(2);
  });

  test('draws points from left to right, low values at the bottom', () => {
    const [, points] = /<polyline points="([^"]*)"/.exec(svg)!;
    const [[x1, y1], [x2, y2]] = points!.split(' ').map((pair) => pair.split(',').map(Number));
    expect(x1).toBeLessThan(x2);
    expect(y1).toBeGreaterThan(y2);
  });

  test('is well-formed, and needs nothing from elsewhere', () => {
    expect(unclosed(svg)).toEqual([]);
    expect(svg.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|url\(|@import/);
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  });

  test('has no lines where points do not follow from each other', () => {
    const apart = drawFigure({ ...figure, panels: [{ ...panel, isUnconnected: true }] });
    expect(apart).not.toContain('<polyline');
  });

  test('says that a panel is empty', () => {
    const empty = { ...panel, series: [], empty: 'RamCast was not measured' };
    expect(drawFigure({ ...figure, panels: [panel, empty] })).toContain('RamCast was not measured');
  });

  test('is narrower with one panel', () => {
    const width = (svgText: string): number => Number(/ width="(\d+)"/.exec(svgText)![1]);
    expect(width(svg)).toBeLessThan(width(drawFigure({ ...figure, panels: [panel, panel] })));
  });
});

test('systems differ in colour and in marker', () => {
  const names = ['TRAM base', 'TRAM breadth', 'TRAM depth', 'RamCast', 'ByzCast', 'Skeen'];
  const styles = names.map((name) => styleOf(name, 0));
  expect(new Set(styles.map(({ colour }) => colour)).size).toBe(names.length);
  expect(new Set(styles.map(({ marker }) => marker)).size).toBe(names.length);
  expect(styleOf('RamCast', 0)).toBe(styleOf('RamCast', 5));
});

test('long lines are broken between words', () => {
  expect(wrap('one two three', 1000, 10)).toEqual(['one two three']);
  expect(wrap('one two three', 45, 10)).toEqual(['one two', 'three']);
});

test('text is escaped', () => {
  expect(escapeText('<a href="x">&')).toBe('&lt;a href=&quot;x&quot;&gt;&amp;');
});

/** Elements that are opened and not closed, or the other way round. */
function unclosed(markup: string): string[] {
  const open: string[] = [];
  for (const [, slash, name, self] of markup.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (self === '/') continue;
    if (slash === '') open.push(name!);
    else if (open.pop() !== name) return [name];
  }
  return open;
}
