/**
 * Loads koffi, which calls C functions. It is an optional package, so it is loaded on first use. Called by
 * `processes/native.ts` and `fabric/libfabric.ts`.
 */
import { createRequire } from 'node:module';
import { TramError } from '../errors.js';

/** Addresses and sizes are numbers: an address has fewer than 53 bits. */
export type NativeFunction = (...values: (number | bigint | string | null)[]) => number;

export interface NativeLibrary {
  func(name: string, result: string, parameters: readonly string[]): NativeFunction;
}

/** The part of koffi that we use. Our types must not refer to those of koffi, since it may not be installed. */
export interface Koffi {
  /** @param path  null: the libraries that Node itself has loaded */
  load(path: string | null): NativeLibrary;
  /** The type of a function, for `decode`. */
  proto(result: string, parameters: readonly string[]): unknown;
  decode(address: number, type: unknown): unknown;
  encode(address: number, type: string, value: number): void;
  alloc(type: string, count: number): bigint;
  free(address: bigint): void;
  view(address: number | bigint, bytes: number): ArrayBuffer;
  errno(): number;
}

/** @param feature  that needs koffi, for the error message: `memory: 'processes'` */
export function loadKoffi(feature: string): Koffi {
  try {
    return createRequire(import.meta.url)('koffi') as Koffi;
  } catch (cause) {
    throw new TramError(
      'TRAM_NATIVE_MISSING',
      `${feature} needs the package koffi, and it can not be loaded.`,
      { hint: 'npm install koffi', cause },
    );
  }
}
