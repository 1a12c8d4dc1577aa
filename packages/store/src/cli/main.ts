#!/usr/bin/env node
/** The command `tram-store`. */

import { CommanderError } from 'commander';
import { StoreError } from '../options.js';
import { createProgram } from './program.js';

try {
  await createProgram().parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    process.exitCode = 1;
    process.stderr.write(`tram-store: ${describe(error)}\n`);
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const hint = error instanceof StoreError ? error.hint : hintOf(error);
  return hint === undefined ? error.message : `${error.message}\n  ${hint}`;
}

/** Errors of TRAM have a hint as well. */
function hintOf(error: Error): string | undefined {
  return 'hint' in error && typeof error.hint === 'string' ? error.hint : undefined;
}
