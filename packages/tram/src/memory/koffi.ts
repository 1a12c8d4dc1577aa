/**
 * koffi calls C. It is an optional package, so it is loaded with the first use and never before.
 * Called by `native.ts` and `fabric/libfabric.ts`.
 */
import { createRequire } from 'node:module';
import { TramError } from '../errors.js';

/** Addresses and sizes are plain numbers: an address has fewer than 53 bits. */
export type NativeFunction = (...values: (number | bigint | string | null)[]) => number;

export interface NativeLibrary {
  func(name: string, result: string, parameters: readonly string[]): NativeFunction;
}

/** What we use of koffi. Its own types must not show in ours: it may not be installed. */
export interface Koffi {
  /** @param path  null: the libraries that Node itself runs on */
  load(path: string | null): NativeLibrary;
  /** The type of a function, of which `decode` makes one that can be called. */
  proto(result: string, parameters: readonly string[]): unknown;
  decode(address: number, type: unknown): unknown;
  encode(address: number, type: string, value: number): void;
  alloc(type: string, count: number): bigint;
  free(address: bigint): void;
  view(address: number | bigint, bytes: number): ArrayBuffer;
  errno(): number;
}

/** @param who  needs it, in the words of an error: `memory: 'processes'` */
export function loadKoffi(who: string): Koffi {
  try {
    return createRequire(import.meta.url)('koffi') as Koffi;
  } catch (cause) {
    throw new TramError(
      'TRAM_NATIVE_MISSING',
      `${who} needs the package koffi, and it can not be loaded.`,
      { hint: 'npm install koffi', cause },
    );
  }
}
