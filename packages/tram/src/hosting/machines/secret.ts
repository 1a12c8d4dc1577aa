/**
 * The secret of a cluster on machines. A peer that knows it is let in and may write to the memory of all hosts. It is
 * a file that only its owner may read. Called by hosts and clients, and by `tram secret`, which creates one.
 */
import { createHmac, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { TramError } from '../../errors.js';
import { type Salt, saltFrom } from '../../memory/record.js';

const SECRET_BYTES_MIN = 32;
const RANDOM_BYTES = 32;
const OWNERS_ALONE = 0o600;
/** The permission bits of everybody but the owner. */
const OTHERS = 0o077;

/** The file's content, trimmed. */
export function readSecret(path: string): Uint8Array {
  const file = openSecret(path);
  try {
    requirePrivate(path, file);
    const secret = trim(readFileSync(file));
    if (secret.length >= SECRET_BYTES_MIN) return secret;
    throw new TramError(
      'TRAM_SECRET_INVALID',
      `${path} holds ${secret.length} bytes, and a secret has at least ${SECRET_BYTES_MIN}`,
      {
        hint: `Remove it, make another with \`tram secret ${path}\`, and copy that to all machines.`,
      },
    );
  } finally {
    closeSync(file);
  }
}

function openSecret(path: string): number {
  try {
    // Opening a pipe would block until somebody writes into it.
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') {
      throw new TramError('TRAM_NOT_FOUND', `there is no file ${path} with the cluster's secret`, {
        hint: `Copy it from another machine of the cluster, or make the first one with \`tram secret ${path}\`.`,
        cause,
      });
    }
    throw new TramError('TRAM_SYSTEM', `${path} can't be read: ${message}`, { cause });
  }
}

function requirePrivate(path: string, file: number): void {
  const status = fstatSync(file);
  if (!status.isFile()) {
    throw new TramError('TRAM_SECRET_INVALID', `${path} is no file`, {
      hint: 'The secret is a regular file. `tram secret FILE` makes one.',
    });
  }
  if ((status.mode & OTHERS) === 0) return;
  const mode = (status.mode & 0o777).toString(8).padStart(4, '0');
  throw new TramError(
    'TRAM_SECRET_INVALID',
    `${path} is open to others than its owner: its mode is ${mode}`,
    { hint: `\`chmod 600 ${path}\`. If others may have read it, make another one.` },
  );
}

const WHITESPACE: ReadonlySet<number | undefined> = new Set(
  new TextEncoder().encode(' \t\n\v\f\r'),
);

/** Trims bytes, which need not be text. */
function trim(bytes: Uint8Array): Uint8Array {
  let start = 0;
  let end = bytes.length;
  while (WHITESPACE.has(bytes[start])) start++;
  while (end > start && WHITESPACE.has(bytes[end - 1])) end--;
  return new Uint8Array(bytes.subarray(start, end));
}

/** Creates a secret in a new file. */
export function makeSecret(path: string): void {
  const file = createSecret(path);
  try {
    writeFileSync(file, `${randomBytes(RANDOM_BYTES).toString('hex')}\n`);
  } catch (cause) {
    unlinkSync(path);
    throw cantMake(path, cause);
  } finally {
    closeSync(file);
  }
}

function createSecret(path: string): number {
  try {
    return openSync(path, 'wx', OWNERS_ALONE);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cantMake(path, cause);
    throw new TramError('TRAM_EXISTS', `${path} exists already, and stays as it is`, {
      hint: 'Choose another name. A cluster that uses the old secret must be stopped before it gets a new one.',
      cause,
    });
  }
}

function cantMake(path: string, cause: unknown): TramError {
  const { message } = cause as Error;
  return new TramError('TRAM_SYSTEM', `can't make ${path}: ${message}`, { cause });
}

/** For `Sizes.salt`: it follows from the secret and cannot be guessed without it. */
export function saltOf(secret: Uint8Array): Salt {
  return saltFrom(createHmac('sha256', secret).update('salt').digest());
}
