/** The package as its users get it. Hosts are threads and processes of their own, which need built JavaScript. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type * as tram from '../src/index.js';

const entry = new URL('../dist/index.js', import.meta.url);
if (!existsSync(entry)) throw new Error('run `npm run build` first');

// The types are those of the sources, so that an old build does not confuse the compiler.
export const { Cluster, Client, ReplyError, TramError } = (await import(entry.href)) as typeof tram;
export type AttachedCluster = tram.AttachedCluster;
export type Cluster = tram.Cluster;
export type Client = tram.Client;
export type ReplyError = tram.ReplyError;
export type StartOptions = tram.StartOptions;

export const projectDirectory: string = fileURLToPath(new URL('../../../', import.meta.url));

export function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function decode(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
}

/** The TramError of a promise that rejects with one. */
export async function errorOf(promise: Promise<unknown>): Promise<tram.TramError> {
  const outcome = await promise.then(
    () => 'no error',
    (error: unknown) => error,
  );
  if (!(outcome instanceof TramError)) throw new Error(`no TramError: ${outcome}`);
  return outcome;
}

/** A logger that keeps what it is told. */
export function keeping() {
  const [infos, warnings, errors]: string[][] = [[], [], []];
  const logger: tram.Logger = {
    info: (text) => void infos.push(text),
    warn: (text) => void warnings.push(text),
    error: (text) => void errors.push(text),
  };
  return { logger, infos, warnings, errors };
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Wait until something is so; a test that waits in vain runs into its own time limit. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await pause(5);
}
