/**
 * Which cluster a command is about: `--name`, or `--config` for one across machines. The memory of one that has a name is
 * a file in /dev/shm, and what its hosts print is in a state directory; both are the user's alone.
 */
import { lstatSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { TramError } from '../errors.js';

export const DEFAULT_NAME = 'default';
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function nameOption(): Option {
  return new Option('--name <name>', 'which cluster').default(DEFAULT_NAME).argParser(parseName);
}

/** For commands that also work from another machine. */
export function configOption(): Option {
  return new Option(
    '--config <file>',
    'a cluster across machines: its configuration, instead of --name',
  ).conflicts('name');
}

/** A cluster as the user names it. */
export interface Which {
  readonly name: string;
  /** The file, if it is a cluster across machines. */
  readonly config?: string | undefined;
}

export function parseName(text: string): string {
  if (NAME.test(text)) return text;
  throw new InvalidArgumentError(
    'Expected 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first.',
  );
}

/** A command for the same cluster, as the user would type it. */
export function commandFor({ name, config }: Which, words: string): string {
  if (config !== undefined) return `tram ${words} --config ${config}`;
  return `tram ${words}${name === DEFAULT_NAME ? '' : ` --name ${name}`}`;
}

/** For what the hosts of a cluster print. */
export function stateDirectory(name: string): string {
  return join(tmpdir(), `tram-${name}-${process.getuid!()}`);
}

/** Others may write to the directory above: what stands there may be somebody else's. */
export function makeStateDirectory(name: string): string {
  const directory = stateDirectory(name);
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code !== 'EEXIST') {
      throw new TramError('TRAM_SYSTEM', `can't make ${directory}: ${message}`, { cause });
    }
    if (!isOurs(directory)) {
      throw new TramError(
        'TRAM_SYSTEM',
        `${directory} is in the way: it is no directory that belongs to you alone`,
        { hint: 'Remove it, choose another --name, or set TMPDIR.' },
      );
    }
  }
  return directory;
}

/** True if there was one. */
export function removeStateDirectory(name: string): boolean {
  const directory = stateDirectory(name);
  if (!isOurs(directory)) return false;
  rmSync(directory, { recursive: true });
  return true;
}

function isOurs(directory: string): boolean {
  const file = lstatSync(directory, { throwIfNoEntry: false });
  return (
    file?.isDirectory() === true && file.uid === process.getuid!() && (file.mode & 0o077) === 0
  );
}
