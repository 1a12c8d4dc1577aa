/**
 * Which cluster a command works on: `--name`, or `--config` for the one that a file describes. A cluster of processes has
 * its memory in a file in /dev/shm and the output of its hosts in a state directory. Only the user can access them.
 *
 * The logs outlive the cluster: those of the last run are kept, and `tram down --force` removes them.
 */
import { lstatSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs';
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

/** Removes the logs of all runs. */
export function removeStateDirectory(name: string): void {
  const directory = stateDirectory(name);
  if (isOurs(directory)) rmSync(directory, { recursive: true });
}

const LOG = /^host-.*\.log$/;

/**
 * At the end of a run: its logs become `host-N.log.1`, and replace those of the run before it. The caller makes sure that
 * no cluster of that name runs.
 */
export function archiveLogs(name: string): void {
  const directory = stateDirectory(name);
  if (!isOurs(directory)) return;
  for (const file of readdirSync(directory)) {
    if (LOG.test(file)) renameSync(join(directory, file), join(directory, `${file}.1`));
  }
}

/** Removes the logs of a run that has failed to start. Those of the run before it stay. */
export function removeLastLogs(name: string): void {
  const directory = stateDirectory(name);
  if (!isOurs(directory)) return;
  for (const file of readdirSync(directory)) if (LOG.test(file)) rmSync(join(directory, file));
  if (readdirSync(directory).length === 0) rmdirSync(directory);
}

/** The directory with the logs of a cluster, `undefined` if there are none. */
export function keptLogs(name: string): string | undefined {
  const directory = stateDirectory(name);
  return isOurs(directory) && readdirSync(directory).length > 0 ? directory : undefined;
}

function isOurs(directory: string): boolean {
  const file = lstatSync(directory, { throwIfNoEntry: false });
  return (
    file?.isDirectory() === true && file.uid === process.getuid!() && (file.mode & 0o077) === 0
  );
}
