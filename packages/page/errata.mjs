/** Reads the table of holes in docs/paper-errata.md, for the page. Called by `build.mjs`. */

/** @returns one object for each hole, in the order of the table: see `Hole` in `src/sim/holes.ts` */
export function holesOf(text, mutations, judged) {
  const holes = [];
  for (const line of text.split('\n')) {
    const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    const [, name, title, story, correction] = cells;
    if (!/^H\d+$/.test(name ?? '')) continue;
    const { caughtBy } = mutations[name] ?? {};
    const shown = judged[name];
    holes.push({ name, title, story, correction, run: caughtBy ?? null, shown: shown ?? null });
  }
  const missing = Object.keys(mutations).filter(
    (name) => !holes.some((hole) => hole.name === name),
  );
  if (holes.length === 0 || missing.length > 0) {
    throw new Error(`docs/paper-errata.md has no row for ${missing.join(', ') || 'any hole'}`);
  }
  return holes;
}
