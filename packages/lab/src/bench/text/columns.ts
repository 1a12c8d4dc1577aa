/** Plain text for a terminal: aligned columns and wrapped lines. */

export const WIDTH = 100;
export const GAP = '  ';

type Side = 'left' | 'right';

/** @param sides  one for each column */
export function align(rows: readonly (readonly string[])[], sides: readonly Side[]): string {
  const widths = sides.map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  return rows
    .map((row) =>
      row
        .map((cell, i) => (sides[i] === 'left' ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

/** Breaks a text into lines of at most `width` characters, between words. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = '';
    }
    line += line === '' ? word : ` ${word}`;
  }
  return [...lines, line];
}
