/** Which cluster a command works on: `--name`, or `--config` for the one that a file describes. */
import { InvalidArgumentError, Option } from 'commander';
import { DEFAULT_NAME } from '../hosting/state-directory.js';

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
