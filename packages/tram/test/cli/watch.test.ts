/** `tram watch` on a cluster of processes. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { Loopback } from '../loopback.js';
import { needLibfabric } from '../memory/fabric/present.js';
import { textOf, until, useCommandLine } from './command-line.js';

const line = useCommandLine();

/** Starts it. @returns the process, and the address that it prints */
async function watch(...args: string[]): Promise<{ child: ChildProcess; url: URL }> {
  const child = line.start('watch', '--port', '0', '--json', ...args);
  return { child, url: await urlOf(child) };
}

async function urlOf(child: ChildProcess): Promise<URL> {
  const printed = textOf(child.stdout!);
  await until(() => printed.text.includes('\n'));
  return new URL(JSON.parse(printed.text).url);
}

/** Asks as the page does. @returns the status of the answer */
async function ask(url: URL, body: object): Promise<number> {
  const authorization = `Bearer ${url.hash.slice('#token='.length)}`;
  const headers = { origin: url.origin, authorization };
  const request = { method: 'POST', headers, body: JSON.stringify(body) };
  return (await fetch(new URL('/api/control', url), request)).status;
}

async function firstEvent(url: URL): Promise<string> {
  const headers = { authorization: `Bearer ${url.hash.slice('#token='.length)}` };
  const response = await fetch(new URL('/api/events', url), { headers });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes('\n\n')) text += (await reader.read()).value ?? '';
  await reader.cancel();
  return text;
}

test('it shows the cluster, and what is wrong with it, until the cluster ends', async () => {
  await line.up();
  const { child, url } = await watch();
  const ended = once(child, 'close');
  const errors = textOf(child.stderr!);
  expect(url.href).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
  expect(await firstEvent(url)).toContain(`"name":"${line.name}","state":"running"`);
  const control = {
    method: 'POST',
    headers: { origin: url.origin },
    body: '{"action":"crash","host":0}',
  };
  expect((await fetch(new URL('/api/control', url), control)).status).toBe(404);
  // Two of three: no group can elect a leader any more.
  for (const replica of ['g0/1', 'g0/2']) await line.tram('kill', replica);
  await until(async () =>
    (await firstEvent(url)).includes(`tram restart g0/1 --name ${line.name}`),
  );
  await line.tram('down', '--force');
  expect(await ended).toEqual([0, null]);
  expect(errors.text).toContain('is being taken down');
});

test('with --control it crashes and restarts hosts; Ctrl-C ends it, and the cluster goes on', async () => {
  await line.up();
  const { child, url } = await watch('--control');
  const ended = once(child, 'close');
  expect(await ask(url, { action: 'crash', host: 2 })).toBe(200);
  expect((await line.status()).hosts[2].state).toBe('down');
  expect(await ask(url, { action: 'restart', host: 2 })).toBe(200);
  expect(await ask(url, { action: 'lead', group: 1, member: 1 })).toBe(200);
  expect((await line.status()).groups[1].leader).toBe(1);
  child.kill('SIGINT');
  expect(await ended).toEqual([130, null]);
  expect((await line.status()).state).toBe('running');
});

test('mistakes are explained', async () => {
  const nothing = await line.tram('watch', '--port', '0');
  expect(nothing).toMatchObject({ code: 1, stdout: '' });
  expect(nothing.stderr).toContain(`there is no cluster "${line.name}"`);
  expect(nothing.stderr).toContain(`tram up --name ${line.name}`);
  await line.up();
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const inUse = await line.tram('watch', '--port', String(port));
  other.close();
  expect(inUse).toMatchObject({ code: 1, stdout: '' });
  expect(inUse.stderr).toContain(`can't serve the page at 127.0.0.1:${port}`);
  expect(inUse.stderr).toContain('Choose another one');
  expect(await line.tram('watch', '--port', '70000')).toMatchObject({ code: 2 });
  const elsewhere = await line.tram('watch', '--port', '0', '--address', '192.0.2.1');
  expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringContaining('192.0.2.1') });
});

test('across machines it shows the hosts by their names, and asks them', async (context) => {
  needLibfabric(context);
  const machines = await Loopback.make();
  try {
    await machines.startAll('--respawn');
    const options = ['--port', '0', '--json', '--control'];
    const url = await urlOf(machines.command('watch', '--config', machines.far, ...options));
    const seen = await firstEvent(url);
    for (const name of ['alpha', 'beta', 'gamma'])
      expect(seen).toContain(`"title":"${name}","state":"up"`);
    expect(await ask(url, { action: 'lead', group: 1, member: 2 })).toBe(200);
    expect(await ask(url, { action: 'restart', host: 1 })).toBe(200);
    expect(await ask(url, { action: 'crash', host: 2 })).toBe(200);
    await until(async () =>
      /"title":"gamma","state":"(?:down|unreachable)"/.test(await firstEvent(url)),
    );
  } finally {
    await machines.clearUp();
  }
});
