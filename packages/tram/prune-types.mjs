/**
 * Removes from dist/types all declarations that the public ones do not import, directly or indirectly.
 *
 * Users read these files when they follow a type in their editor, so internals are only in the way. The closure is
 * computed, because a list in package.json would be wrong after every new import; test/package.test.ts type-checks a
 * program against the packed result with `skipLibCheck: false`, so a declaration that is missing is noticed.
 */
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const types = fileURLToPath(new URL('./dist/types', import.meta.url));
const ENTRIES = ['index.d.ts', join('check', 'index.d.ts')];
/** `from './x.js'`, `import './x.js'` and `import('./x.js')`. */
const IMPORT = /\b(?:from|import)\s*\(?\s*['"](\.[^'"]+)\.js['"]/g;

const needed = new Set();
for (const entry of ENTRIES) visit(join(types, entry));
prune(types);

function visit(file) {
  if (needed.has(file)) return;
  needed.add(file);
  for (const [, path] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
    const imported = join(dirname(file), `${path}.d.ts`);
    if (!existsSync(imported))
      throw new Error(`${file} imports ${path}, which has no declarations`);
    visit(imported);
  }
}

function prune(directory) {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) prune(path);
    else if (!needed.has(path)) rmSync(path);
  }
  if (readdirSync(directory).length === 0) rmdirSync(directory);
}
