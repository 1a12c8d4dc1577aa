/** Figures are complete, well-formed SVG, with points where they belong. */
import { describe, expect, test } from 'vitest';
import { drawFigure, type Figure } from '../../../src/bench/figures/figure.js';
import type { Panel } from '../../../src/bench/figures/panel.js';

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
    // The legend has one of each as well.
    expect(svg.match(/class="marker"/g)).toHaveLength(3 + 2);
    expect(svg.match(/class="whisker"/g)).toHaveLength(2);
  });

  test('draws points from left to right, low values at the bottom', () => {
    const [, points] = /<polyline points="([^"]*)"/.exec(svg)!;
    const [[x1, y1], [x2, y2]] = points!.split(' ').map((pair) => pair.split(',').map(Number));
    expect(x1).toBeLessThan(x2);
    expect(y1).toBeGreaterThan(y2);
  });

  test('is well-formed and self-contained', () => {
    expect(unclosed(svg)).toEqual([]);
    expect(svg.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|url\(|@import/);
    expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  });

  test('has no lines where points do not follow from each other', () => {
    const unconnected = drawFigure({ ...figure, panels: [{ ...panel, isUnconnected: true }] });
    expect(unconnected).not.toContain('<polyline');
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
