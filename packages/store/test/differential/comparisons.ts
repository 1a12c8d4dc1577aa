/** When two replies count as equal. */

import { isError, itemsOf, type Wire } from './wire.js';

export type Comparison = (real: Wire, ours: Wire, command: readonly string[]) => boolean;

const text = (wire: Wire): string => JSON.stringify(wire);

export const exact: Comparison = (real, ours) => text(real) === text(ours);

function sameItems(real: readonly string[], ours: readonly string[]): boolean {
  return text(['', [...real].sort().join('\n')]) === text(['', [...ours].sort().join('\n')]);
}

/** The order of the elements does not matter. */
export const unordered: Comparison = (real, ours) => {
  const a = itemsOf(real);
  const b = itemsOf(ours);
  if (a === undefined || b === undefined || real[0] !== ours[0]) return exact(real, ours, []);
  return sameItems(a.map(text), b.map(text));
};

/** Two elements belong together; the order of the pairs does not matter. */
export const unorderedPairs: Comparison = (real, ours) => {
  const a = itemsOf(real);
  const b = itemsOf(ours);
  if (a === undefined || b === undefined || real[0] !== ours[0]) return exact(real, ours, []);
  return sameItems(pairs(a), pairs(b));
};

function pairs(items: readonly Wire[]): string[] {
  const found: string[] = [];
  for (let i = 0; i < items.length; i += 2)
    found.push(
      items
        .slice(i, i + 2)
        .map(text)
        .join(),
    );
  return found;
}

/**
 * Of what SCAN and its relatives reply, the elements count, if all are visited; the cursors are our own.
 * @param position  of the cursor in the command
 */
export function scanned(elements: Comparison, position: number): Comparison {
  return (real, ours, command) => {
    const a = itemsOf(real);
    const b = itemsOf(ours);
    if (a === undefined || b === undefined) return exact(real, ours, command);
    const areAll = Number(command[position]) === 0 && [a, b].every(([cursor]) => cursor[1] === '0');
    return !areAll || elements(a[1], b[1], command);
  };
}

/** Times: the two servers do not run a command at the same moment. */
export const near: Comparison = (real, ours) => {
  const difference = Math.abs(Number(real[1]) - Number(ours[1]));
  return exact(real, ours, []) || (real[0] === ':' && ours[0] === ':' && difference <= 5_000);
};

/** Random picks: as many, of the same types, and the same errors. */
export const sameShape: Comparison = (real, ours) => {
  if (isError(real) || isError(ours)) return exact(real, ours, []);
  return text(shape(real)) === text(shape(ours));
};

function shape(wire: Wire): Wire {
  const items = itemsOf(wire);
  if (items !== undefined) return [wire[0], items.map(shape)];
  return [wire[0], wire[1] === null ? null : ''];
}
