import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli/program.js';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'store-cli-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

function run(...args: string[]): Promise<unknown> {
  const silent = { writeErr: () => undefined, writeOut: () => undefined };
  return createProgram().configureOutput(silent).parseAsync(args, { from: 'user' });
}

describe('tram-store refuses, and says what to do', () => {
  it.each([
    [['--port', '70000'], 'integer from 0 to 65535'],
    [['--shards', '0'], 'integer from 1 to 64'],
    [['--memory', 'clouds'], 'Allowed choices are threads, processes'],
    [['--maxmemory', 'lots'], 'such as 500mb'],
    [['--maxmemory-policy', 'lru'], 'Allowed choices are volatile-lru, '],
    [['--nonsense'], 'unknown option'],
    [['--port', '0'], 'nothing to listen at'],
    [['--name', 'shop'], 'nobody else could reach threads'],
    [['--name', 'shop', '--attach', 'shop'], 'starts no cluster'],
    [['--durability', 'always'], 'needs a place for the journals'],
    [['--password', 'a', '--password-file', 'b'], 'two passwords'],
    [['--password-file', '/nowhere/at/all'], 'ENOENT'],
    [['--tls-cert', 'a.pem'], 'needs a certificate and its key'],
    [['--bind', '0.0.0.0'], 'could read and change all keys'],
  ])('%j', async (args, message) => {
    await expect(run(...args)).rejects.toThrow(message);
  });

  it('an empty file as a password', async () => {
    const file = join(folder, 'empty');
    writeFileSync(file, '\n');
    await expect(run('--password-file', file)).rejects.toThrow('is empty');
  });
});

it('tram-store --help ends with success', async () => {
  await expect(run('--help')).rejects.toMatchObject({ exitCode: 0 });
  await expect(run('--version')).rejects.toMatchObject({ exitCode: 0 });
});
