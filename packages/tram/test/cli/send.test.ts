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

test('a group without a leader is named while the command waits, and when it gives up', async () => {
  await line.up();
  await line.tram('kill', 'g0/0');
  await line.tram('kill', 'g0/1');
  const args = ['--to', '0,1', '--text', 'x', '--timeout-ms', '2500'];
  const given = await line.tram('send', ...args);
  expect(given.code).toBe(4);
  expect(given.stderr).toMatch(/^waiting for g0, g1: g0 has no leader: g0\/0, g0\/1 are down/);
  expect(given.stderr).toMatch(/\ntram: timeout .*No reply from g0, g1\. g0 has no leader/);

  const json = await line.tram('send', ...args, '--json');
  expect(json).toMatchObject({ code: 4, stdout: '' });
  expect(JSON.parse(json.stderr)).toEqual({
    error: {
      code: 'TRAM_OUTCOME_UNKNOWN',
      message: expect.stringContaining('No reply from g0, g1'),
      hint: expect.stringContaining('tram restart g0/'),
      retry: 'unsafe',
      missingGroups: [0, 1],
      failedGroups: {},
      replies: {},
    },
  });
});

test('with --json, errors are JSON: of commands and of wrong usage', async () => {
  const errorOf = async (code: number, command: string, ...args: string[]): Promise<unknown> => {
    const result = await line.tram(command, ...args, '--json');
    expect(result).toMatchObject({ code, stdout: '' });
    return (JSON.parse(result.stderr) as { error: unknown }).error;
  };
  const missing = { code: 'TRAM_NOT_FOUND', retry: 'safe', hint: expect.stringContaining('up') };
  expect(await errorOf(1, 'status')).toMatchObject(missing);
  expect(await errorOf(1, 'down')).toMatchObject(missing);
  expect(await errorOf(1, 'send', '--to', '0', '--text', 'x')).toMatchObject({
    code: 'TRAM_NOT_FOUND',
    hint: `Start it: tram up --name ${line.name}.`,
  });
  const wrong = { code: 'TRAM_INVALID_ARGUMENT', retry: 'useless' };
  expect(await errorOf(2, 'send')).toMatchObject({
    ...wrong,
    message: "required option '--to <groups>' not specified",
  });
  expect(await errorOf(2, 'status', '--bogus')).toMatchObject(wrong);
});
