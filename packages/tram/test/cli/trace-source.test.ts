/** Histories in directories, as `tram check` reads them. */
import { appendFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Verdict } from '../../src/check/judge.js';
import { openDirectory } from '../../src/cli/trace-source.js';
import { SMALL, useCommandLine } from './command-line.js';

const line = useCommandLine();

test('a history that was cut off is judged without its last line; a wrong line is named', async () => {
  const trace = join(line.folder, 'cut');
  await line.up('--trace', trace);
  await line.tram('send', '--to', '0,1', '--text', 'x');
  await line.tram('down');
  expect(await line.tram('up', ...SMALL, '--trace', trace)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('holds a history already'),
  });
  const file = join(trace, 'replica-1-2.jsonl');
  const lines = readFileSync(file, 'utf8').split('\n').length;
  appendFileSync(file, '{"event":"deli');
  const cut = await line.tram('check', trace);
  expect(cut).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('replica-1-2.jsonl is incomplete'),
  });
  appendFileSync(file, '\n');
  const wrong = await line.tram('check', trace);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain(`replica-1-2.jsonl, line ${lines}: this is not JSON`);
  expect(await line.tram('check', line.folder)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('there is no groups.jsonl'),
  });
});

test('clients of two processes read one clock, so the history decides real-time order', async () => {
  const trace = join(line.folder, 'clocks');
  await line.up('--trace', trace);
  await line.tram('send', '--to', '0,1', '--text', 'x', '--count', '5');
  await line.tram('send', '--to', '1,2', '--text', 'x', '--count', '5');
  await line.tram('down');
  // Whatever the cluster promises, one client after another gets it.
  const groups = join(trace, 'groups.jsonl');
  const event = JSON.parse(readFileSync(groups, 'utf8'));
  writeFileSync(groups, `${JSON.stringify({ ...event, order: 'strict' })}\n`);
  const verdict = await line.json<Verdict>('check', trace);
  expect(verdict.counts).toMatchObject({ clients: 2, messages: 10, answers: 20 });
  expect(verdict.properties).toContainEqual({ property: 'real-time-order', outcome: 'holds' });
});

test('a directory with a history is one text, and a line of it leads back to its file', async () => {
  const folder = mkdtempSync(join(line.folder, 'history-'));
  const files = {
    'replica-0-1.jsonl': 'r1\nr2\ncut',
    'end.jsonl': 'e1',
    'groups.jsonl': 'g1\n',
    'era-10.jsonl': 'era ten\n',
    'era-9.jsonl': 'era nine\n',
    'client-2.jsonl': '',
    'client-10.jsonl': 'c1\nc2\n',
    'notes.txt': 'none of it\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const source = await openDirectory(folder);
  let text = '';
  for await (const chunk of source.chunks) text += chunk;
  expect(text).toBe('g1\nera nine\nera ten\nc1\nc2\nr1\nr2\ne1\n');
  expect(source.unfinished).toEqual([join(folder, 'replica-0-1.jsonl')]);
  const places = [1, 2, 3, 4, 5, 6, 7, 8].map((line) => source.place(line));
  expect(places.map(({ name, line }) => `${name.slice(folder.length + 1)}:${line}`)).toEqual([
    'groups.jsonl:1',
    'era-9.jsonl:1',
    'era-10.jsonl:1',
    'client-10.jsonl:1',
    'client-10.jsonl:2',
    'replica-0-1.jsonl:1',
    'replica-0-1.jsonl:2',
    'end.jsonl:1',
  ]);
});
