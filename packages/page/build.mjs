/**
 * Builds the page: `dist/sim` and `dist/live`, each a folder of its own that needs nothing outside of it.
 *
 * A browser loads no ES modules from disk, so every script is a classic one, and the HTML is copied as it is written.
 */
import { copyFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const here = fileURLToPath(new URL('.', import.meta.url));

rmSync(`${here}dist`, { recursive: true, force: true });
await buildView('sim');
await buildView('live');

/** `src/<view>/main.tsx` and all that it imports, as one script and one style sheet beside `index.html`. */
async function buildView(view) {
  await buildScript({ entry: `src/${view}/main.tsx`, folder: `dist/${view}`, name: 'page' });
  copyFileSync(`${here}src/${view}/index.html`, `${here}dist/${view}/index.html`);
}

function buildScript({ entry, folder, name }) {
  return build({
    configFile: false,
    root: here,
    logLevel: 'warn',
    define: { 'process.env.NODE_ENV': '"production"' },
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
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
