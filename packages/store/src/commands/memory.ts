/** Commands that are refused if memory is short. */

import { type Queued, readExecArgs } from './internal.js';
import { COMMANDS_BY_NAME } from './table.js';

/** Whether one of these commands may need more memory. */
export function needMemory(commands: readonly Queued[]): boolean {
  return commands.some(({ name, args }) =>
    name === '.exec'
      ? needMemory(readExecArgs(args).commands)
      : COMMANDS_BY_NAME.get(name)?.flags.includes('denyoom'),
  );
}
