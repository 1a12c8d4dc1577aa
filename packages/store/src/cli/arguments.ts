/** Reads what the options of the commands say. */

import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { StoreError } from '../options.js';

/** The environment variable with the password of the store, used if no option has it. */
export const PASSWORD_VARIABLE = 'TRAM_STORE_PASSWORD';

export interface PasswordFlags {
  readonly password?: string;
  readonly passwordFile?: string;
}

/** @returns a string of bytes. @throws StoreError */
export function passwordOf({ password, passwordFile }: PasswordFlags): string | undefined {
  const given = [password, passwordFile].filter((one) => one !== undefined);
  if (given.length > 1) {
    throw new StoreError('there are two passwords', 'Use --password or --password-file, not both.');
  }
  // Clients send bytes.
  const bytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');
  if (passwordFile === undefined) {
    const text = password ?? process.env[PASSWORD_VARIABLE];
    return text === undefined || text === '' ? undefined : bytes(text);
  }
  const text = read(passwordFile, '--password-file')
    .toString('utf8')
    .replace(/\r?\n$/, '');
  if (text === '') throw new StoreError(`${passwordFile} is empty`, 'Put the password into it.');
  return bytes(text);
}

/** @param option  that names the file. @throws StoreError */
export function read(path: string, option: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const hint = `Check the path that ${option} names, and its permissions.`;
    throw new StoreError((error as Error).message, hint, { cause: error });
  }
}

export function integer(from: number, to: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= from && value <= to) return value;
    throw new InvalidArgumentError(`It has to be an integer from ${from} to ${to}.`);
  };
}
