/** The crashes of clients in the trace of a cluster, on which the checks of a round rely. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Cluster } from '../../../tram/test/built.js';

test('the trace has the crash of a client whose successor also crashed before it sent anything', async ({
  onTestFinished,
}) => {
  const directory = mkdtempSync(join(tmpdir(), 'tram-client-crash-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const trace = join(directory, 'trace');
  const cluster = await Cluster.start({ groups: 1, memory: 'processes', clients: 1, trace });
  const script = fileURLToPath(new URL('../../../tram/test/other-process.mjs', import.meta.url));
  try {
    for (let client = 0; client < 2; client++) {
      const child = fork(script, [String(cluster.address)]);
      await once(child, 'message');
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  } finally {
    await cluster.close();
  }
  const events = readdirSync(trace).flatMap((name) =>
    readFileSync(join(trace, name), 'utf8').trimEnd().split('\n').filter(Boolean),
  );
  const crashes = events
    .map((line) => JSON.parse(line))
    .filter(({ event }) => event === 'client-crash');
  expect(crashes.map(({ client }) => client).sort()).toEqual(['c1', 'c2']);
});
