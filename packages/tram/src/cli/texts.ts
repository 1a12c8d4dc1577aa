/** Durations, sizes and columns, as the commands print them. */
import { stripVTControlCharacters } from 'node:util';

/** The headings of the lines below the groups are this wide. */
export const HEADING_COLUMNS = 9;

/** `45 µs` */
export function duration(ns: number): string {
  if (ns < 1000) return `${ns} ns`;
  if (ns < 1e6) return `${figures(ns / 1000)} µs`;
  return ns < 1e9 ? `${figures(ns / 1e6)} ms` : `${figures(ns / 1e9)} s`;
}

function figures(value: number): string {
  return value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString('en-US');
}

export function widthOf(text: string): number {
  return stripVTControlCharacters(text).length;
}

export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

export function inRowsOf<Item>(length: number, items: readonly Item[]): Item[][] {
  const rows: Item[][] = [];
  for (let at = 0; at < items.length; at += length) rows.push(items.slice(at, at + length));
  return rows;
}

/** `12 MiB` */
export function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return power === 0 ? `${bytes} B` : `${figures(bytes / 1024 ** power)} ${units[power]}`;
}

/** Texts side by side, as many as fit, after a heading of the first line. */
export function inColumns(heading: string, texts: readonly string[], columns: number): string[] {
  const width = Math.max(...texts.map(widthOf)) + 3;
  const perRow = Math.max(1, Math.floor((columns - HEADING_COLUMNS) / width));
  return inRowsOf(perRow, texts).map((row, index) => {
    const line = row
      .map((text) => padEnd(text, width))
      .join('')
      .trimEnd();
    return `${(index === 0 ? heading : '').padEnd(HEADING_COLUMNS)}${line}`;
  });
}
