/** `tram send` beside other clients. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useCommandLine } from './command-line.js';

const INDEX = new URL('../../dist/index.js', import.meta.url).href;

const line = useCommandLine();

test('a client that is killed gives its slot back; its crash is told in the history', async () => {
  const trace = join(line.folder, 'clients');
  await line.up('--clients', '1', '--trace', trace);
  const source = `
    const { Client } = await import(${JSON.stringify(INDEX)});
    const client = await Client.connect(${JSON.stringify(line.name)});
    console.log('connected');
    for (;;) await client.multicast([0, 2], new Uint8Array(9));
  `;
  const holder = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  line.kill(holder);
  await once(holder.stdout!, 'data');
  expect(await line.tram('send', '--to', '1', '--text', 'x')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('all 1 client slots are taken'),
  });
  const holderEnds = once(holder, 'exit');
  holder.kill('SIGKILL');
  await holderEnds;
  expect((await line.status()).clients.connected).toBe(0);
  expect((await line.tram('send', '--to', '1', '--text', 'x')).code).toBe(0);
  expect(await line.json('down')).toMatchObject({ drained: true });
  const verdict = await line.json<{ outcome: string; counts: unknown }>('check', trace);
  expect(verdict).toMatchObject({ outcome: 'holds', counts: { clients: 2, clientCrashes: 1 } });
});
