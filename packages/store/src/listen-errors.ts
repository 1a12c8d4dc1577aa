/** Why a store can't listen, and what to do about it. */

import { StoreError, type StoreOptions } from './options.js';

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\./.test(host);
}

/** @returns the error itself if there is nothing to say about it */
export function listenError(error: unknown, options: StoreOptions): unknown {
  const {
    code,
    address,
    port = options.port,
  } = error as NodeJS.ErrnoException & {
    readonly address?: string;
    readonly port?: number;
  };
  const where = address?.startsWith('/') ? address : `port ${port}`;
  if (code === 'EADDRINUSE') {
    return new StoreError(
      `${where} is in use`,
      'A Redis server, or another store? End it, or choose another one.',
      { cause: error },
    );
  }
  if (code === 'EACCES') {
    const hint =
      'Ports below 1024 need privileges; a Unix socket needs a directory that you may write to.';
    return new StoreError(`no permission to listen at ${where}`, hint, { cause: error });
  }
  if (code === 'EADDRNOTAVAIL') {
    const hint = 'Name an address of this machine, or 0.0.0.0 for all of them.';
    return new StoreError(`${address} is not an address of this machine`, hint, { cause: error });
  }
  return error;
}
