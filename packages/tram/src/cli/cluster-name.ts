/**
 * Which cluster a command works on: `--name`, or `--config` for the one that a file describes. A cluster of processes has
 * its memory in a file in /dev/shm and the output of its hosts in a state directory. Only the user can access them.
 */
import { lstatSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { TramError } from '../errors.js';

export const DEFAULT_NAME = 'default';
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function nameOption(): Option {
  return new Option('--name <name>', 'the name of the cluster')
    .default(DEFAULT_NAME)
    .argParser(parseName);
}

export function configOption(): Option {
  return new Option(
    '--config <file>',
    'the configuration file of the cluster, instead of --name',
  ).conflicts('name');
}

/** A cluster as the user names it. */
export interface Which {
  readonly name: string;
  /** The configuration file, if the user names the cluster by it. */
  readonly config?: string | undefined;
}

export function parseName(text: string): string {
  if (NAME.test(text)) return text;
  throw new InvalidArgumentError(
    'Expected 1 to 64 letters, digits, dots, dashes and underscores, starting with a letter or digit.',
  );
}

/** A command for the same cluster, as the user would type it. */
export function commandFor({ name, config }: Which, words: string): string {
  if (config !== undefined) return `tram ${words} --config ${config}`;
  return `tram ${words}${name === DEFAULT_NAME ? '' : ` --name ${name}`}`;
}

/** The directory with the output of the hosts of a cluster. */
export function stateDirectory(name: string): string {
  return join(tmpdir(), `tram-${name}-${process.getuid!()}`);
}

/** Other users may write to the directory above it, so an existing one may belong to another user. */
export function makeStateDirectory(name: string): string {
  const directory = stateDirectory(name);
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code !== 'EEXIST') {
      throw new TramError('TRAM_SYSTEM', `can't create ${directory}: ${message}`, { cause });
    }
    if (!isOurs(directory)) {
      throw new TramError(
        'TRAM_SYSTEM',
        `can't use ${directory} for logs: it is not a directory that only you can access`,
        { hint: 'Remove it, choose another --name, or set TMPDIR.' },
      );
    }
  }
  return directory;
}

/** @returns whether there was one */
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
