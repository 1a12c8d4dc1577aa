/** Draws one panel of a figure: axes, a reference line, and a line with whiskers for each series. Called by `figure.ts`. */
import { drawMarker } from './marker.js';
import { type Scale, type ScaleKind, scaleOf, tickLabel } from './scale.js';
import { type Style, styleOf } from './style.js';
import { element, group, line, text, widthOf } from './svg.js';

export interface PlotPoint {
  readonly x: number;
  /** The median of several rounds; the least and the greatest. */
  readonly y: number;
  readonly low: number;
  readonly high: number;
}

export interface Series {
  readonly name: string;
  readonly points: readonly PlotPoint[];
}

export interface Axis {
  /** Includes the unit: `latency (µs)`. */
  readonly label: string;
  readonly kind: ScaleKind;
  readonly ticks?: readonly number[];
  readonly format?: (value: number) => string;
}

export interface Panel {
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly Series[];
  /** A horizontal line to compare with. */
  readonly reference?: { readonly y: number; readonly label: string };
  /** Draw no lines between points. */
  readonly isUnconnected?: boolean;
  /** The text of a panel without points. */
  readonly empty?: string;
}

export const PANEL_HEIGHT = 280;
/** Margins within a panel, around the plot area. */
const ABOVE = 34;
const BELOW = 46;
const LEFT = 56;
const RIGHT = 10;
const WHISKER = 3;
/** Horizontal distance between markers of different lines at the same x, so that whiskers do not overlap. */
const DODGE = 3;
const DODGE_UNCONNECTED = 12;

interface Area {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

interface Place {
  readonly x: number;
  readonly y: number;
}

export function drawPanel(panel: Panel, width: number, names: readonly string[]): string {
  const area: Area = { left: LEFT, right: width - RIGHT, top: ABOVE, bottom: PANEL_HEIGHT - BELOW };
  const heading = text(panel.title, 0, 14, 'heading');
  const points = panel.series.flatMap((series) => series.points);
  if (points.length === 0) {
    const middle = (area.top + area.bottom) / 2;
    const words = panel.empty ?? 'nothing was measured';
    return heading + text(words, width / 2, middle, 'empty', { 'text-anchor': 'middle' });
  }
  const x = scaleX(panel, points, area);
  const y = scaleY(panel, points, area);
  return [
    heading,
    drawAxes(panel, x, y, area),
    drawReference(panel, y, area, takenPlaces(panel, x, y)),
    ...panel.series.map((series) =>
      drawSeries(panel, series, { x, y }, styleOf(series.name, names.indexOf(series.name))),
    ),
  ].join('');
}

function scaleX({ x }: Panel, points: readonly PlotPoint[], area: Area): Scale {
  const values = points.map((point) => point.x);
  // Room for the markers at both ends.
  const inset = 10;
  return scaleOf({
    kind: x.kind,
    least: Math.min(...values, ...(x.ticks ?? [])),
    greatest: Math.max(...values, ...(x.ticks ?? [])),
    from: area.left + inset,
    to: area.right - inset,
    ...(x.ticks !== undefined && { ticks: x.ticks }),
  });
}

function scaleY({ y, reference }: Panel, points: readonly PlotPoint[], area: Area): Scale {
  const values = points.flatMap(({ low, high }) => [low, high]);
  if (reference !== undefined) values.push(reference.y);
  // A linear axis starts at zero, so that lengths are comparable.
  if (y.kind === 'linear') values.push(0);
  return scaleOf({
    kind: y.kind,
    least: Math.min(...values),
    greatest: Math.max(...values),
    from: area.bottom,
    to: area.top,
    ...(y.ticks !== undefined && { ticks: y.ticks }),
  });
}

function drawAxes(panel: Panel, x: Scale, y: Scale, area: Area): string {
  const { left, right, top, bottom } = area;
  const formatX = panel.x.format ?? tickLabel;
  const formatY = panel.y.format ?? tickLabel;
  const middle = (top + bottom) / 2;
  return group(
    { class: 'axes' },
    ...y.ticks.map((tick) => line(left, y.at(tick), right, y.at(tick), 'grid')),
    ...y.ticks.map((tick) =>
      text(formatY(tick), left - 7, y.at(tick) + 4, 'tick', { 'text-anchor': 'end' }),
    ),
    line(left, bottom, right, bottom, 'axis'),
    ...x.ticks.map((tick) => line(x.at(tick), bottom, x.at(tick), bottom + 4, 'axis')),
    ...x.ticks.map((tick) =>
      text(formatX(tick), x.at(tick), bottom + 17, 'tick', { 'text-anchor': 'middle' }),
    ),
    text(panel.x.label, (left + right) / 2, bottom + 36, 'label', { 'text-anchor': 'middle' }),
    text(panel.y.label, 10, middle, 'label', {
      'text-anchor': 'middle',
      transform: `rotate(-90 10 ${middle})`,
    }),
  );
}

/** Places the label above the line, where it covers the fewest points. */
function drawReference(
  { reference }: Panel,
  y: Scale,
  { left, right }: Area,
  taken: readonly Place[],
): string {
  if (reference === undefined) return '';
  const at = y.at(reference.y);
  const width = widthOf(reference.label, 11);
  const crowd = (from: number): number =>
    taken.filter(
      (place) =>
        place.x > from - 8 && place.x < from + width + 8 && Math.abs(place.y - at + 8) < 14,
    ).length;
  const room = right - left - width - 8;
  const starts = Array.from({ length: 11 }, (_, i) => left + 4 + (room * i) / 10);
  const start = starts.reduce((best, next) => (crowd(next) < crowd(best) ? next : best));
  return line(left, at, right, at, 'reference') + text(reference.label, start, at - 5, 'tick');
}

/** Closely spaced places along all lines and whiskers. */
function takenPlaces({ series, isUnconnected }: Panel, x: Scale, y: Scale): Place[] {
  return series.flatMap(({ points }) =>
    points.flatMap((point, i) => {
      const here = { x: x.at(point.x), y: y.at(point.y) };
      const next = points[isUnconnected ? i : i + 1] ?? point;
      const there = { x: x.at(next.x), y: y.at(next.y) };
      const whisker = [point.low, point.high].map((end) => ({ x: here.x, y: y.at(end) }));
      return [...between(here, there), ...between(whisker[0], whisker[1])];
    }),
  );
}

function between(from: Place, to: Place): Place[] {
  const steps = Math.max(1, Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / 6));
  return Array.from({ length: steps + 1 }, (_, i) => ({
    x: from.x + ((to.x - from.x) * i) / steps,
    y: from.y + ((to.y - from.y) * i) / steps,
  }));
}

function drawSeries(
  panel: Panel,
  series: Series,
  scales: { readonly x: Scale; readonly y: Scale },
  style: Style,
): string {
  const format = panel.y.format ?? tickLabel;
  const formatX = panel.x.format ?? tickLabel;
  const figures = (value: number): string => format(Number(value.toPrecision(3)));
  const distance = panel.isUnconnected ? DODGE_UNCONNECTED : DODGE;
  const dodge = (panel.series.indexOf(series) - (panel.series.length - 1) / 2) * distance;
  const points = [...series.points]
    .sort((a, b) => a.x - b.x)
    .map((point) => ({ point, x: scales.x.at(point.x) + dodge, y: scales.y.at(point.y) }));
  const path = points.map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`).join(' ');
  const { colour, dash } = style;
  const words = ({ x, y, low, high }: PlotPoint): string => {
    const spread = low < high ? ` (${figures(low)} to ${figures(high)})` : '';
    return `${series.name}, ${panel.x.label} ${formatX(x)}: ${figures(y)}${spread}`;
  };
  return group(
    { class: 'series', 'data-name': series.name },
    panel.isUnconnected
      ? ''
      : element('polyline', {
          ...{ points: path, class: 'line', stroke: colour, 'stroke-dasharray': dash },
        }),
    ...points.map(({ point, x }) => drawWhisker(point, x, scales.y, colour)),
    ...points.map(({ point, x, y }) => drawMarker(style, x, y, words(point))),
  );
}

function drawWhisker(point: PlotPoint, at: number, y: Scale, colour: string): string {
  if (point.low === point.high) return '';
  const [low, high] = [y.at(point.low), y.at(point.high)];
  const path = `M${at - WHISKER},${low}h${2 * WHISKER}M${at},${low}V${high}M${at - WHISKER},${high}h${2 * WHISKER}`;
  const rounded = path.replace(/\d+\.\d+/g, (number) => Number(number).toFixed(1));
  return element('path', { d: rounded, class: 'whisker', stroke: colour, fill: 'none' });
}
