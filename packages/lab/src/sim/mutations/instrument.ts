/**
 * Instruments built code of the library: puts a point (`points.ts`) before every load and store of an array element,
 * between the loads and the store of an assignment, before every atomic access, and into every bulk copy. Called by
 * `mutant.ts`, for the copies of the library that the simulator runs.
 *
 * The code otherwise stays as it was built, line for line. Private arrays get points too: a thread can be interrupted
 * anywhere, so a point too many is never wrong.
 */

/** What participants share, and everything that reads or writes it. Paths below the library's `dist`. */
const INSTRUMENTED = /^(?:protocol\/.*|memory\/(?:hash|places|record|shared))\.js$/;

/** A name, or names with dots between them: what an element access or a call of a method starts with. */
const NAME = String.raw`(?<![\w$.])((?:[\w$]+\.)*[\w$]+)`;
const ELEMENT = new RegExp(String.raw`${NAME}\[`, 'g');
const ASSIGNMENT = /(\] (?:[-+|&^]|<<|>>>?)?=) ([^;]+);/g;
const ATOMIC = /\bAtomics\.(?=\w+\()/g;
const BULK = new RegExp(String.raw`${NAME}\.(set|fill|copyWithin)\(`, 'g');

const IMPORTED = ['at', 'stored', 'set', 'fill', 'copyWithin', 'markInstrumented'];

export function isToBeInstrumented(file: string): boolean {
  return INSTRUMENTED.test(file);
}

/** @param points  how the file imports `points.js` */
export function instrument(text: string, points: string): string {
  const names = IMPORTED.map((name) => `${name} as $${name}`).join(', ');
  const body = text
    .replace(ASSIGNMENT, '$1 $$stored($2);')
    .replace(BULK, '$$$2($1, ')
    .replace(ELEMENT, '$$at($1)[')
    .replace(ATOMIC, '$$at(Atomics).');
  return `import { ${names} } from ${JSON.stringify(points)}; $markInstrumented(); ${body}`;
}
