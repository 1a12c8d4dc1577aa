/**
 * Mutants: copies of the built library, with mutations applied, and of the built lab beside them. Modules of such a
 * copy form a module graph of their own, so that a process can run several mutants next to the protocol as it is. The
 * copy is also instrumented, so that steps can be interrupted: a mutant without mutations is the protocol as seeds
 * run it.
 *
 *   <temporary folder>/node_modules/tram-multicast/   the library, mutated and instrumented
 *   <temporary folder>/node_modules/tram-lab/         the lab, which imports that library
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { instrument, isToBeInstrumented } from './instrument.js';
import { WITHOUT_ASSERTIONS } from './judged.js';
import { applyEdit, type Edit } from './mutation.js';
import { MUTATIONS } from './table.js';

export type Subject = typeof import('./subject.js');

/** The same place from `src` and from `dist`. */
const LAB = fileURLToPath(new URL('../../../', import.meta.url));
const LIBRARY = dirname(createRequire(import.meta.url).resolve('tram-multicast/package.json'));

/** Below the folder of packages. */
const LIBRARY_CODE = '/tram-multicast/dist';
const POINTS = '/tram-lab/dist/sim/points.js';

/** In memory where there is such a place: a mutant is a few hundred files, and they are soon removed. */
const TEMPORARY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** All that a simulation is made of. */
const LIBRARY_FOLDERS = ['check', 'journal', 'memory', 'protocol'];
const LIBRARY_FILES = ['errors.js'];
const LAB_FOLDERS = ['sim', 'explore'];

/** The text of a file as it was built. @param file  path below the library's `dist` */
export function builtText(file: string): string {
  return readFileSync(join(LIBRARY, 'dist', file), 'utf8');
}

/** The simulator around a mutant. Its modules stay in this process; its files do not stay on disk. */
export function loadMutant(...names: readonly string[]): Promise<Subject> {
  return withMutant(names, loadSubject);
}

/** The same, without the assertions of the protocol. */
export function loadUnassertedMutant(...names: readonly string[]): Promise<Subject> {
  return withMutant(names, loadSubject, [WITHOUT_ASSERTIONS]);
}

function loadSubject(lab: URL): Promise<Subject> {
  return import(new URL('sim/mutations/subject.js', lab).href);
}

/**
 * Make a mutant, and remove it when `use` is done.
 * @param use  gets the `dist` of the lab's copy
 * @throws {MutationError} if the mutations do not fit together
 */
export async function withMutant<Result>(
  names: readonly string[],
  use: (lab: URL) => Promise<Result>,
  furtherEdits: readonly Edit[] = [],
): Promise<Result> {
  const edits = names.flatMap((name) => MUTATIONS[name].edits);
  const mutated = mutatedTexts([...edits, ...furtherEdits]);
  const folder = mkdtempSync(join(TEMPORARY, 'tram-mutant-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  try {
    const modules = join(folder, 'node_modules');
    copyPackage(LIBRARY, LIBRARY_FOLDERS, LIBRARY_FILES, join(modules, 'tram-multicast'));
    copyPackage(LAB, LAB_FOLDERS, [], join(modules, 'tram-lab'));
    const library = join(modules, 'tram-multicast', 'dist');
    for (const [file, text] of mutated) writeFileSync(join(library, file), text);
    instrumentFiles(library);
    return await use(pathToFileURL(join(modules, 'tram-lab', 'dist', '/')));
  } finally {
    process.off('exit', remove);
    remove();
  }
}

function mutatedTexts(edits: readonly Edit[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const edit of edits) {
    texts.set(edit.file, applyEdit(texts.get(edit.file) ?? builtText(edit.file), edit));
  }
  return texts;
}

function instrumentFiles(library: string): void {
  for (const name of readdirSync(library, { recursive: true, encoding: 'utf8' })) {
    const file = name.replaceAll('\\', '/');
    if (!isToBeInstrumented(file)) continue;
    const path = join(library, file);
    const points = posix.relative(posix.dirname(`${LIBRARY_CODE}/${file}`), POINTS);
    writeFileSync(path, instrument(readFileSync(path, 'utf8'), points));
  }
}

/** The code in these folders and files, and what Node needs to find it. */
function copyPackage(
  from: string,
  folders: readonly string[],
  files: readonly string[],
  to: string,
): void {
  mkdirSync(to, { recursive: true });
  copyFileSync(join(from, 'package.json'), join(to, 'package.json'));
  for (const folder of folders) copyCode(join(from, 'dist', folder), join(to, 'dist', folder));
  for (const file of files) copyFileSync(join(from, 'dist', file), join(to, 'dist', file));
}

function copyCode(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const { name } = entry;
    if (entry.isDirectory()) copyCode(join(from, name), join(to, name));
    else if (name.endsWith('.js')) copyFileSync(join(from, name), join(to, name));
  }
}
