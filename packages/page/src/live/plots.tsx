/** Throughput and latency over the last minutes, drawn by uPlot. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Sample } from 'tram-multicast/internal/page/wire.js';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { samples } from './link.js';
import { clock, count, duration } from './words.js';

const HEIGHT = 150;
/** The least that the axis of time shows. */
const LEAST_S = 30;
const TABLE_ROWS = 20;

interface Line {
  readonly title: string;
  /** A variable of the theme. */
  readonly color: string;
  readonly dash?: number[];
  value(sample: Sample): number | null;
}

interface PlotProps {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly isLogarithmic?: boolean;
  text(value: number): string;
}

export function Plots() {
  return (
    <>
      <Plot
        title="Messages answered per second"
        lines={[
          { title: 'answered', color: '--accent', value: (sample) => sample.answeredPerSecond },
        ]}
        text={count}
      />
      <Plot
        title="Latency"
        isLogarithmic
        lines={[
          { title: 'p50', color: '--good', value: ({ latency }) => latency?.p50Ns ?? null },
          {
            title: 'p99',
            color: '--accent',
            dash: [6, 3],
            value: ({ latency }) => latency?.p99Ns ?? null,
          },
          {
            title: 'p999',
            color: '--bad',
            dash: [2, 3],
            value: ({ latency }) => latency?.p999Ns ?? null,
          },
        ]}
        text={duration}
      />
    </>
  );
}

function Plot({ title, lines, isLogarithmic = false, text }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const [isTable, setIsTable] = useState(false);
  const all = samples.value;
  useEffect(() => {
    const element = place.current!;
    const options = optionsFor(lines, isLogarithmic, text, element);
    const drawn = new uPlot(options, dataOf(samples.peek(), lines), element);
    plot.current = drawn;
    const observer = new ResizeObserver(() =>
      drawn.setSize({ width: element.clientWidth, height: HEIGHT }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      drawn.destroy();
    };
    // The lines of a plot never change.
  }, []);
  useEffect(() => plot.current?.setData(dataOf(all, lines)), [all]);
  const last = all[all.length - 1];
  return (
    <figure class="panel plot">
      <figcaption>
        <span class="plot-title">{title}</span>
        <span class="keys">
          {lines.map((line) => (
            <Key key={line.title} line={line} last={last} text={text} hasTitle={lines.length > 1} />
          ))}
        </span>
      </figcaption>
      <div ref={place} class="canvas" aria-hidden="true" />
      <details onToggle={(event) => setIsTable(event.currentTarget.open)}>
        <summary>As a table</summary>
        {isTable ? <Figures title={title} lines={lines} text={text} all={all} /> : null}
      </details>
    </figure>
  );
}

interface KeyProps {
  readonly line: Line;
  readonly last: Sample | undefined;
  readonly hasTitle: boolean;
  text(value: number): string;
}

function Key({ line, last, text, hasTitle }: KeyProps) {
  const value = last === undefined ? null : line.value(last);
  return (
    <span class="line-key">
      <svg width="18" height="8" aria-hidden="true">
        <path
          d="M0 4H18"
          stroke={`var(${line.color})`}
          stroke-width="2"
          stroke-dasharray={line.dash?.join(' ')}
        />
      </svg>
      {hasTitle ? `${line.title} ` : ''}
      <b>{value === null ? '–' : text(value)}</b>
    </span>
  );
}

interface FiguresProps extends Pick<PlotProps, 'title' | 'lines' | 'text'> {
  readonly all: readonly Sample[];
}

function Figures({ title, lines, text, all }: FiguresProps) {
  return (
    <table aria-label={`${title}, the newest first`}>
      <thead>
        <tr>
          <th scope="col">Time</th>
          {lines.map((line) => (
            <th key={line.title} scope="col" class="number">
              {line.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {all
          .slice(-TABLE_ROWS)
          .toReversed()
          .map((sample) => (
            <tr key={sample.atMs}>
              <th scope="row">{clock(sample.atMs)}</th>
              {lines.map((line) => {
                const value = line.value(sample);
                return (
                  <td key={line.title} class="number">
                    {value === null ? '–' : text(value)}
                  </td>
                );
              })}
            </tr>
          ))}
      </tbody>
    </table>
  );
}

function dataOf(all: readonly Sample[], lines: readonly Line[]): uPlot.AlignedData {
  return [
    all.map(({ atMs }) => atMs / 1000),
    ...lines.map((line) => all.map((sample) => line.value(sample))),
  ];
}

function optionsFor(
  lines: readonly Line[],
  isLogarithmic: boolean,
  text: (value: number) => string,
  element: HTMLElement,
): uPlot.Options {
  const color = (name: string) => () => resolved(element, name);
  // On a logarithmic axis only powers of ten have room.
  const shownTick = (tick: number): number | null =>
    !isLogarithmic || isPowerOfTen(tick) ? tick : null;
  const font = '12px system-ui, "DejaVu Sans", sans-serif';
  const axis = {
    stroke: color('--faint'),
    font,
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [8, 28, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { range: (_, first, last) => timeRange(first, last) },
      y: isLogarithmic
        ? { distr: 3, range: (_, least, most) => powersAround(least, most) }
        : { range: (_, __, most) => [0, Math.max(1, most * 1.1)] },
    },
    axes: [
      {
        ...axis,
        size: 24,
        space: 70,
        values: (_, ticks) => ticks.map((tick) => clock(tick * 1000)),
      },
      {
        ...axis,
        size: 66,
        grid: { ...axis.grid, filter: (_, ticks) => ticks.map(shownTick) },
        filter: (_, ticks) => ticks.map(shownTick),
        values: (_, ticks) => ticks.map((tick) => (tick === null ? '' : text(tick))),
      },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        stroke: color(line.color),
        width: 2,
        ...(line.dash && { dash: line.dash }),
        points: { show: false },
      })),
    ],
  };
}

function isPowerOfTen(value: number): boolean {
  return Number.isInteger(Math.round(Math.log10(value) * 1e6) / 1e6);
}

/** All that is known, but not less than half a minute. */
function timeRange(first: number | null, last: number | null): [number, number] {
  const until = last ?? Date.now() / 1000;
  return [Math.min(first ?? until, until - LEAST_S), until];
}

function powersAround(least: number | null, most: number | null): [number, number] {
  const low = 10 ** Math.floor(Math.log10(Math.max(1, least ?? 1e4)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(1, most ?? 1e6)));
  return [low, Math.max(high, low * 10)];
}

/** A colour of the theme at hand: a canvas knows no variables. */
function resolved(element: HTMLElement, name: string): string {
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = '';
  return color;
}
