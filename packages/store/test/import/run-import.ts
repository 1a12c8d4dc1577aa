/** Runs `tram-store import` in this process. */

import { createProgram } from '../../src/cli/program.js';

export interface Ended {
  readonly output: string;
  readonly exitCode: number;
}

/** @throws what the command throws */
export async function runImport(...args: string[]): Promise<Ended> {
  const { write } = process.stdout;
  let output = '';
  process.stdout.write = (text: unknown) => {
    output += String(text);
    return true;
  };
  try {
    const silent = { writeErr: () => undefined };
    const program = createProgram().configureOutput(silent);
    for (const command of program.commands) command.configureOutput(silent);
    await program.parseAsync(['import', ...args], { from: 'user' });
    return { output, exitCode: Number(process.exitCode ?? 0) };
  } finally {
    process.stdout.write = write;
    process.exitCode = 0;
  }
}
