/** redis-py, the client of Python programs. */

import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { startGateway } from './started.js';

/** Debian installs packages for this one only. */
const PYTHON = '/usr/bin/python3';
const MISSING = 'redis-py is not installed: apt-get install python3-redis';
const program = fileURLToPath(new URL('redis-py.py', import.meta.url));
const run = promisify(execFile);

it('redis-py', async (context) => {
  if (spawnSync(PYTHON, ['-c', 'import redis']).status !== 0) {
    if (process.env['CI']) throw new Error(MISSING);
    context.skip(true, MISSING);
  }
  const started = await startGateway();
  const closed = await startGateway({ requirepass: 'secret' });
  try {
    const ports = [started.port, closed.port].map(String);
    const { stdout } = await run(PYTHON, [program, ...ports]);
    expect(stdout).toContain('11 checks passed');
  } finally {
    await started.close();
    await closed.close();
  }
});
