/** The same scripts at a real redis-server and at the store: the replies have to be the same, in RESP 2 and 3. */

import { expect, test } from 'vitest';
import { EngineTarget } from './engine-target.js';
import { hasRedisServer, MISSING, startRedisServer } from './redis-server.js';
import { SCRIPT_COMMANDS, SCRIPTS } from './scripts.js';
import { show } from './wire.js';

test.for([2, 3] as const)(
  'scripts reply as they do in Redis, in RESP %i',
  { timeout: 60_000 },
  async (protocol, context) => {
    if (!hasRedisServer()) {
      if (process.env['CI']) throw new Error(MISSING);
      context.skip(true, MISSING);
    }
    const server = await startRedisServer();
    const ours = new EngineTarget();
    try {
      const commands = [
        ...SCRIPTS.map((script) => ['EVAL', script, '2', 'k1', 'k2', 'a1', '17', '3.5']),
        ...SCRIPT_COMMANDS,
      ];
      const real = await server.connection.run(commands, protocol);
      const own = await ours.run(commands, protocol);
      const differences = commands
        .map((command, i) => [show(command), show(real[i]), show(own[i])] as const)
        .filter(([, real, ours]) => real !== ours)
        .map((texts) => texts.join('\n  '));
      expect(differences).toEqual([]);

      const library = '#!lua name=dumped\nredis.register_function("d", function() return 5 end)';
      for (const [from, to] of [
        [server.connection, ours],
        [ours, server.connection],
      ]) {
        const load = ['FUNCTION', 'LOAD', 'REPLACE', library];
        const [, [, dump]] = await from.run([load, ['FUNCTION', 'DUMP']], protocol);
        const restore = ['FUNCTION', 'RESTORE', dump as string, 'FLUSH'];
        expect(await to.run([restore, ['FCALL', 'd', '0']], protocol)).toEqual([
          ['+', 'OK'],
          [':', '5'],
        ]);
      }
    } finally {
      await server.stop();
    }
  },
);
