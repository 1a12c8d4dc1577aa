/** Draws the markers, which distinguish lines without colour. */
import type { Marker, Style } from './style.js';
import { element, escapeText } from './svg.js';

const SIZE = 4.2;

/** @param words  the tooltip */
export function drawMarker(
  { marker, colour }: Style,
  x: number,
  y: number,
  words?: string,
): string {
  const title = words === undefined ? [] : [element('title', {}, escapeText(words))];
  const outline = { stroke: '#ffffff', 'stroke-width': 1, fill: colour };
  if (marker === 'circle') {
    return element('circle', { cx: x, cy: y, r: SIZE, class: 'marker', ...outline }, ...title);
  }
  if (marker === 'ring') {
    const open = { stroke: colour, 'stroke-width': 1.6, fill: '#ffffff' };
    return element('circle', { cx: x, cy: y, r: SIZE - 0.6, class: 'marker', ...open }, ...title);
  }
  if (marker === 'cross') {
    const open = { stroke: colour, 'stroke-width': 2, fill: 'none' };
    const arm = SIZE - 0.8;
    const d = `M${at(x - arm, y - arm)}L${at(x + arm, y + arm)}M${at(x - arm, y + arm)}L${at(x + arm, y - arm)}`;
    return element('path', { d, class: 'marker', ...open }, ...title);
  }
  const corners = CORNERS[marker].map(([dx, dy]) => at(x + dx * SIZE, y + dy * SIZE)).join('L');
  return element('path', { d: `M${corners}Z`, class: 'marker', ...outline }, ...title);
}

function at(x: number, y: number): string {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}

const CORNERS: Readonly<Record<Exclude<Marker, 'circle' | 'ring' | 'cross'>, number[][]>> = {
  square: [
    [-0.95, -0.95],
    [0.95, -0.95],
    [0.95, 0.95],
    [-0.95, 0.95],
  ],
  triangle: [
    [0, -1.25],
    [1.15, 0.85],
    [-1.15, 0.85],
  ],
  wedge: [
    [0, 1.25],
    [1.15, -0.85],
    [-1.15, -0.85],
  ],
  diamond: [
    [0, -1.35],
    [1.35, 0],
    [0, 1.35],
    [-1.35, 0],
  ],
};
