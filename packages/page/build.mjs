/**
 * Builds the page: `dist/sim` and `dist/live`, each a folder of its own that needs nothing outside of it.
 *
 * A browser loads no ES modules from disk, so every script is a classic one, and the HTML is copied as it is written.
 *
 * The simulator is apart from what shows it. `dist/sim/protocol.js` has the protocol as it is; for each hole of the paper,
 * `dist/sim/holes/<hole>.js` is the same script with the mutation of the lab that puts the hole back; where an assertion
 * would stop the run before any harm is done, there is one without assertions too. The page loads one of them when it is
 * asked for. All of them are built from the built library and the built lab, and instrumented as
 * the lab does it (`mutant.ts`), so a seed gives the same run here as on the command line.
 */
import { copyFileSync, cpSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { HOLES } from 'tram-lab/dist/sim/mutations/holes.js';
import { instrument, isToBeInstrumented } from 'tram-lab/dist/sim/mutations/instrument.js';
import { VIOLATIONS, WITHOUT_ASSERTIONS } from 'tram-lab/dist/sim/mutations/judged.js';
import { applyEdit } from 'tram-lab/dist/sim/mutations/mutation.js';
import { build } from 'vite';
import { holesOf } from './errata.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const library = fileURLToPath(new URL('../tram/dist/', import.meta.url));
const points = fileURLToPath(new URL('../lab/dist/sim/points.js', import.meta.url));
const errata = new URL('../../docs/paper-errata.md', import.meta.url);

rmSync(`${here}dist`, { recursive: true, force: true });
await buildView('sim');
copyFileSync(`${here}src/sim/icon.svg`, `${here}dist/sim/icon.svg`);
await buildView('live');
// `tram watch` serves it, so it is part of the published package.
cpSync(`${here}dist/live`, `${here}../tram/dist/page/built`, { recursive: true });
await buildSubject('protocol', 'dist/sim', []);
for (const [name, { edits }] of Object.entries(HOLES)) {
  await buildSubject(name, 'dist/sim/holes', edits);
  if (VIOLATIONS[name]?.isUnasserted) {
    await buildSubject(`${name}_unasserted`, 'dist/sim/holes', [...edits, WITHOUT_ASSERTIONS]);
  }
}

/** `src/<view>/main.tsx` and all that it imports, as one script and one style sheet beside `index.html`. */
async function buildView(view) {
  const plugins = view === 'sim' ? [holeTexts()] : [];
  await buildScript({
    entry: `src/${view}/main.tsx`,
    folder: `dist/${view}`,
    name: 'page',
    plugins,
  });
  copyFileSync(`${here}src/${view}/index.html`, `${here}dist/${view}/index.html`);
}

/** The simulator around the library with these edits. */
async function buildSubject(name, folder, edits) {
  const plugin = mutates(edits);
  await buildScript({ entry: 'src/run/subject.ts', folder, name, plugins: [plugin] });
  const unused = edits.filter(({ file }) => !plugin.hasLoaded(file));
  if (unused.length > 0) throw new Error(`${name} edits ${unused[0].file}, which is not loaded`);
}

function buildScript({ entry, folder, name, plugins }) {
  return build({
    configFile: false,
    root: here,
    logLevel: 'warn',
    // The memory of threads has fewer fences on x64, where the seeds of the lab were searched.
    define: { 'process.env.NODE_ENV': '"production"', 'process.arch': '"x64"' },
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    plugins,
    build: {
      outDir: folder,
      emptyOutDir: false,
      target: 'es2022',
      cssTarget: 'chrome123',
      lib: {
        entry,
        formats: ['iife'],
        name: `tram_${name}`,
        fileName: () => `${name}.js`,
        cssFileName: name,
      },
    },
  });
}

/** Loads the files of the library with edits and points in them, and what they need of Node from `src/node`. */
function mutates(edits) {
  const loaded = new Set();
  return {
    name: 'mutates',
    enforce: 'pre',
    hasLoaded: (file) => loaded.has(file),
    resolveId: (id) =>
      id.startsWith('node:') ? `${here}src/node/${id.slice('node:'.length)}.ts` : undefined,
    load(id) {
      if (!id.startsWith(library)) return undefined;
      const file = id.slice(library.length);
      loaded.add(file);
      const text = edits
        .filter((edit) => edit.file === file)
        .reduce(applyEdit, readFileSync(id, 'utf8'));
      return isToBeInstrumented(file) ? instrument(text, points) : text;
    },
  };
}

/** `virtual:holes`: what docs/paper-errata.md says of each hole, and the run that shows it. */
function holeTexts() {
  const id = 'virtual:holes';
  return {
    name: 'hole-texts',
    resolveId: (wanted) => (wanted === id ? `\0${id}` : undefined),
    load: (wanted) =>
      wanted === `\0${id}`
        ? `export default ${JSON.stringify(holesOf(readFileSync(errata, 'utf8'), HOLES, VIOLATIONS))};`
        : undefined,
  };
}
