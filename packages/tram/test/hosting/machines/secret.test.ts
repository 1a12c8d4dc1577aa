/** The secret of a cluster across machines: who may read it, and what comes of it. */

import { spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { TramError } from '../../../src/errors.js';
import { makeSecret, readSecret, saltOf } from '../../../src/hosting/machines/secret.js';

const folder = mkdtempSync(join(tmpdir(), 'tram-secret-'));
const path = join(folder, 'cluster.secret');

beforeEach(() => rmSync(path, { force: true, recursive: true }));
afterAll(() => rmSync(folder, { recursive: true }));

function write(bytes: string | Uint8Array, mode = 0o600): void {
  writeFileSync(path, bytes);
  chmodSync(path, mode);
}

function errorOf(action: () => unknown): TramError {
  try {
    action();
  } catch (error) {
    if (error instanceof TramError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

describe('a secret that is made', () => {
  test('is 64 digits for its owner alone', () => {
    makeSecret(path);
    expect(readFileSync(path, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('can be read, without its end of line', () => {
    makeSecret(path);
    const secret = readSecret(path);
    expect(Buffer.from(secret).toString()).toBe(readFileSync(path, 'utf8').trim());
    expect(Object.getPrototypeOf(secret)).toBe(Uint8Array.prototype);
    expect(secret.buffer.byteLength).toBe(64);
  });

  test('is another every time', () => {
    makeSecret(path);
    const first = readSecret(path);
    rmSync(path);
    makeSecret(path);
    expect(readSecret(path)).not.toEqual(first);
  });

  test('never takes the place of a file', () => {
    write('precious');
    expect(errorOf(() => makeSecret(path))).toMatchObject({
      code: 'TRAM_EXISTS',
      message: `${path} exists already, and stays as it is`,
    });
    expect(readFileSync(path, 'utf8')).toBe('precious');
  });

  test('nor follows a link to where nothing is', () => {
    const target = join(folder, 'nothing');
    symlinkSync(target, path);
    expect(errorOf(() => makeSecret(path)).code).toBe('TRAM_EXISTS');
    expect(existsSync(target)).toBe(false);
  });

  test('needs a directory that is there', () => {
    expect(errorOf(() => makeSecret(join(path, 'deeper')))).toMatchObject({
      code: 'TRAM_SYSTEM',
      message: expect.stringContaining(`can't make ${join(path, 'deeper')}: ENOENT`),
    });
  });
});

describe('a secret that is read', () => {
  test('may be any bytes; whitespace around them does not count', () => {
    const inner = fc.uint8Array({ minLength: 32, maxLength: 80 });
    const space = fc.array(fc.constantFrom(...' \t\n\v\f\r')).map((all) => all.join(''));
    fc.assert(
      fc.property(space, inner, space, (before, bytes, after) => {
        const solid = Buffer.from(`x${Buffer.from(bytes).toString('latin1')}\xa0`, 'latin1');
        write(Buffer.concat([Buffer.from(before), solid, Buffer.from(after)]));
        expect(Buffer.from(readSecret(path)).equals(solid)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  test('may be for its owner to read only', () => {
    write('s'.repeat(32), 0o400);
    expect(readSecret(path)).toHaveLength(32);
  });

  test('must not be missing', () => {
    expect(errorOf(() => readSecret(path))).toMatchObject({
      code: 'TRAM_NOT_FOUND',
      message: `there is no file ${path} with the cluster's secret`,
      hint: expect.stringContaining(`tram secret ${path}`),
    });
  });

  test.each([0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o666])('must not have mode %o', (mode) => {
    write('s'.repeat(64), mode);
    expect(errorOf(() => readSecret(path))).toMatchObject({
      code: 'TRAM_SECRET_INVALID',
      message: `${path} is open to others than its owner: its mode is 0${mode.toString(8)}`,
      hint: expect.stringContaining(`chmod 600 ${path}`),
    });
  });

  test.each(['', '\n', 's'.repeat(31), ` ${'s'.repeat(31)}\n`, ' '.repeat(64)])(
    'must not be short: %j',
    (text) => {
      write(text);
      expect(errorOf(() => readSecret(path))).toMatchObject({
        code: 'TRAM_SECRET_INVALID',
        message: `${path} holds ${text.trim().length} bytes, and a secret has at least 32`,
        hint: expect.stringContaining(`tram secret ${path}`),
      });
    },
  );

  test('must be a file', () => {
    expect(errorOf(() => readSecret(folder))).toMatchObject({
      code: 'TRAM_SECRET_INVALID',
      message: `${folder} is no file`,
    });
  });

  test.runIf(process.platform === 'linux')('must be no pipe, which nobody waits for', () => {
    expect(spawnSync('mkfifo', ['-m', '600', path]).status).toBe(0);
    expect(errorOf(() => readSecret(path)).message).toBe(`${path} is no file`);
  });
});

describe('the salt', () => {
  const secrets = fc.uint8Array({ minLength: 32, maxLength: 64 });

  test('comes from the secret alone, and has two words', () => {
    fc.assert(
      fc.property(secrets, (secret) => {
        const digest = createHmac('sha256', secret).update('salt').digest('hex');
        const [check, tail] = [0, 8].map((at) => Number.parseInt(digest.slice(at, at + 8), 16) | 0);
        expect(saltOf(secret)).toEqual({ check, tail });
      }),
    );
  });
});
