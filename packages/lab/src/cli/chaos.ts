/** `tram-lab chaos` and `tram-lab soak`: run the scripts in `chaos/`, which parse their own options. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';

export function registerChaos(program: Command): void {
  register(
    program,
    'chaos',
    'main',
    'kill, stop and partition hosts and clients under load, and check the history',
  );
  register(
    program,
    'soak',
    'soak',
    'run load for many minutes, and watch memory, latency and leader changes',
  );
}

function register(program: Command, name: string, script: string, description: string): void {
  program
    .command(name)
    .description(description)
    .argument('[options...]', `see \`${program.name()} ${name} --help\``)
    .helpOption(false)
    .allowUnknownOption()
    .action(async (args: readonly string[]) => {
      const path = fileURLToPath(new URL(`../../chaos/${script}.mjs`, import.meta.url));
      const child = spawn(process.execPath, [path, ...args], { stdio: 'inherit' });
      // The child ends in order when it gets the signal. This process ends after it.
      for (const signal of ['SIGINT', 'SIGTERM'] as const)
        process.on(signal, () => child.kill(signal));
      const [code] = await once(child, 'exit');
      process.exitCode = code ?? 1;
    });
}
