/** Runs the same scripts at a real redis-server and at ours. */

import { startRedisServer } from './redis-server.js';
import { SCRIPT_COMMANDS, SCRIPTS } from './scripts.js';
import type { Target } from './target.js';
import { show } from './wire.js';

const LIBRARY = '#!lua name=dumped\nredis.register_function("d", function() return 5 end)';

/** @returns the commands whose replies differ, with both replies */
export async function differencesOfScripts(ours: Target, protocol: 2 | 3): Promise<string[]> {
  const server = await startRedisServer();
  const real = server.connection;
  try {
    const commands = [
      ['FLUSHALL'],
      ['SCRIPT', 'FLUSH'],
      ['FUNCTION', 'FLUSH'],
      ...SCRIPTS.map((script) => ['EVAL', script, '2', 'k1', 'k2', 'a1', '17', '3.5']),
      ...SCRIPT_COMMANDS,
    ];
    const expected = await real.run(commands, protocol);
    const replies = await ours.run(commands, protocol);
    const differences = commands.flatMap((command, i) => {
      const [a, b] = [show(expected[i]), show(replies[i])];
      return a === b ? [] : [`${show(command)}\n  ${a}\n  ${b}`];
    });
    for (const [from, to] of [
      [real, ours],
      [ours, real],
    ]) {
      const load = ['FUNCTION', 'LOAD', 'REPLACE', LIBRARY];
      const [, [, dump]] = await from.run([load, ['FUNCTION', 'DUMP']], protocol);
      const restore = ['FUNCTION', 'RESTORE', dump as string, 'FLUSH'];
      const [, called] = await to.run([restore, ['FCALL', 'd', '0']], protocol);
      if (called[1] !== '5') differences.push(`a dumped library replies ${show(called)}`);
    }
    return differences;
  } finally {
    await server.stop();
  }
}
