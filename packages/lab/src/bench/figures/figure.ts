/**
 * Draws a figure: panels of lines side by side under one legend, as a self-contained SVG. A pure function from data to text.
 *
 *   title
 *   ● one system   ■ another                legend
 *   panel title        panel title
 *   │    ╱             │  ╲                 a line per series, whiskers from the least to the greatest
 *   │  ╱               │    ╲__
 *   └──────            └──────
 *     x label            x label
 *   caption
 */

import { drawMarker } from './marker.js';
import { drawPanel, PANEL_HEIGHT, type Panel } from './panel.js';
import { styleOf } from './style.js';
import { element, group, line, text, widthOf, wrap } from './svg.js';

export interface Figure {
  /** The name of its file. */
  readonly name: string;
  readonly title: string;
  /** Where and when it was measured. */
  readonly caption: string;
  readonly panels: readonly Panel[];
}

const WIDTH = 960;
/** For a figure with one panel. */
const WIDTH_OF_ONE = 640;
const MARGIN = 20;
const GAP = 26;
const TITLE_Y = 30;
const LEGEND_Y = 56;
const LEGEND_LINE = 20;
const CAPTION_LINE = 14;
const CAPTION_PIXELS = 10.5;
const SAMPLE = 26;
/** All rules are limited to figures, because the style sheet of an inlined SVG applies to the whole page. */
const CSS = [
  'text{font-family:"Helvetica Neue",Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;fill:#222}',
  '.title{font-size:16px;font-weight:600}',
  '.heading{font-size:13px;font-weight:600}',
  '.label{font-size:12px;fill:#444}',
  '.name{font-size:12px}',

  '.tick{font-size:11px;fill:#555}',
  '.caption{font-size:10.5px;fill:#777}',
  '.empty{font-size:12px;fill:#777;font-style:italic}',
  '.grid{stroke:#e6e6e6;stroke-width:1}',
  '.axis{stroke:#888;stroke-width:1}',
  '.reference{stroke:#222;stroke-width:1;stroke-dasharray:6 3}',
  '.line{fill:none;stroke-width:1.8;stroke-linejoin:round}',
  '.whisker{stroke-width:1;opacity:.65}',
]
  .map((rule) => `.figure ${rule}`)
  .join('');

export function drawFigure(figure: Figure): string {
  const { title, panels } = figure;
  const width = panels.length === 1 ? WIDTH_OF_ONE : WIDTH;
  const names = seriesNames(panels);
  const legend = drawLegend(names, width);
  const caption = wrap(figure.caption, width - 2 * MARGIN, CAPTION_PIXELS);
  const top = LEGEND_Y + legend.height;
  const panelWidth = (width - 2 * MARGIN - (panels.length - 1) * GAP) / panels.length;
  const captionY = top + PANEL_HEIGHT + CAPTION_LINE;
  const height = captionY + caption.length * CAPTION_LINE;
  return element(
    'svg',
    {
      class: 'figure',
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-label': title,
    },
    element('style', {}, CSS),
    element('rect', { width, height, fill: '#ffffff' }),
    text(title, MARGIN, TITLE_Y, 'title'),
    legend.drawing,
    ...panels.map((panel, i) => {
      const x = MARGIN + i * (panelWidth + GAP);
      const place = `translate(${x.toFixed(1)} ${top})`;
      return group({ class: 'panel', transform: place }, drawPanel(panel, panelWidth, names));
    }),
    ...caption.map((words, i) => text(words, MARGIN, captionY + i * CAPTION_LINE, 'caption')),
  );
}

/** In the order of their first appearance. */
function seriesNames(panels: readonly Panel[]): string[] {
  return [...new Set(panels.flatMap(({ series }) => series.map(({ name }) => name)))];
}

function drawLegend(
  names: readonly string[],
  figureWidth: number,
): { drawing: string; height: number } {
  let x = MARGIN;
  let y = LEGEND_Y;
  const entries = names.map((name, place) => {
    const width = SAMPLE + 8 + widthOf(name, 12) + 20;
    if (x + width > figureWidth - MARGIN && x > MARGIN) {
      x = MARGIN;
      y += LEGEND_LINE;
    }
    const { colour, dash } = styleOf(name, place);
    const middle = y - 4;
    const entry = group(
      {},
      line(x, middle, x + SAMPLE, middle, 'line', { stroke: colour, 'stroke-dasharray': dash }),
      drawMarker(styleOf(name, place), x + SAMPLE / 2, middle),
      text(name, x + SAMPLE + 8, y, 'name'),
    );
    x += width;
    return entry;
  });
  return { drawing: group({ class: 'legend' }, ...entries), height: y - LEGEND_Y + 16 };
}
