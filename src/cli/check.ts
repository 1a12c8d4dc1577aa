/** `tram check FILE`: reads a recorded history and prints the judge's verdict. */

import type { Command } from 'commander';

export function registerCheck(program: Command): void {
  program
    .command('check')
    .summary('judge a recorded history')
    .argument('<file>', 'history as JSON Lines; "-" reads stdin')
    .option('--json', 'print the verdict as JSON')
    .action(async () => {
      throw new Error('not there yet');
    });
}
