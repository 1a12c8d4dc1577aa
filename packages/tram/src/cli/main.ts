#!/usr/bin/env node
/**
 * The `tram` command. The packages that the commands need are optional dependencies, so it loads the commands with
 * `import()`: a package that is not installed becomes a message that says how to install it.
 */
import { messageFor } from './missing-package.js';

try {
  const [{ createProgram }, { run }] = await Promise.all([
    import('./program.js'),
    import('./run.js'),
  ]);
  await run(createProgram(), process.argv);
} catch (error) {
  const message = messageFor(error);
  if (message === undefined) throw error;
  process.stderr.write(`tram: ${message}\n`);
  process.exitCode = 1;
}
