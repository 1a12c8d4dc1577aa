/**
 * `node own-imports.mjs FOLDER…`: in the built modules of these folders, makes what a module imports from others of its package a
 * constant of its own. The last step of a build. It changes no line numbers.
 *
 * V8 treats a constant of the same module as part of the compiled code. What is imported it loads and checks at each use, functions
 * too: that took a sixth of the time of a message (docs/bench.md).
 *
 * In a circle of imports, a module that is evaluated before the one from which it imports a constant or a class fails. So no module
 * imports itself by way of others. And no module exports a variable: a constant would keep its first value. Both are tested
 * (packages/lab/test/imports.test.ts).
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const IMPORT = /^import \{ ([^}]+) \} from ('\.[^']+');$/gm;

for (const folder of process.argv.slice(2)) {
  for (const file of readdirSync(folder, { recursive: true })) {
    if (file.endsWith('.js')) rewrite(join(folder, file));
  }
}

function rewrite(path) {
  const text = readFileSync(path, 'utf8');
  let imports = 0;
  const rewritten = text.replace(IMPORT, (_, names, module) => {
    const all = `$${imports++}`;
    return `import * as ${all} from ${module}; const { ${names.replaceAll(' as ', ': ')} } = ${all};`;
  });
  writeFileSync(path, rewritten);
}
