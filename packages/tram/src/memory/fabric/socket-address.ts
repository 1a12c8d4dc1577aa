/** IPv4 addresses as `sockaddr_in`. Callers resolve names. */
import { isIPv4 } from 'node:net';
import { constants as systemConstants } from 'node:os';
import { TramError } from '../../errors.js';
import { CONSTANTS, FIELDS, SIZES } from './binary-interface.js';
import { Block } from './block.js';
import type { Libfabric } from './libfabric.js';

const { sin_family, sin_port, sin_addr } = FIELDS.sockaddr_in;

const { EADDRINUSE, EADDRNOTAVAIL, EACCES } = systemConstants.errno;
const ADDRESS_ERRORS: Partial<Record<number, string>> = {
  [EADDRINUSE]: 'another process uses that address',
  [EADDRNOTAVAIL]: 'this machine does not have that address',
  [EACCES]: 'only root may use ports below 1024',
};

export interface SocketAddress {
  readonly host: string;
  readonly port: number;
}

/** @param bytes  start with a `sockaddr_in` */
export function putSocketAddress(bytes: Uint8Array, { host, port }: SocketAddress): void {
  checkHost(host);
  if (!Number.isInteger(port) || port < 0 || port > 0xffff) {
    throw new TramError('TRAM_INVALID_ARGUMENT', `Expected a port from 0 to 65535, got ${port}.`);
  }
  bytes[sin_family] = CONSTANTS.AF_INET;
  bytes[sin_family + 1] = 0;
  bytes[sin_port] = port >> 8;
  bytes[sin_port + 1] = port;
  const parts = host.split('.');
  for (let i = 0; i < 4; i++) bytes[sin_addr + i] = Number(parts[i]);
}

/** @param bytes  start with a `sockaddr_in` */
export function readSocketAddress(bytes: Uint8Array): SocketAddress {
  return {
    host: bytes.subarray(sin_addr, sin_addr + 4).join('.'),
    port: bytes[sin_port] * 256 + bytes[sin_port + 1],
  };
}

/** @param endpoint  listening or connected  @returns undefined if it has ended meanwhile */
export function ownAddress(library: Libfabric, endpoint: number): SocketAddress | undefined {
  const name = new Block(library.koffi, 8 + SIZES.sockaddr_in);
  name.setWide(0, SIZES.sockaddr_in);
  const getName = library.operation('getName', endpoint);
  if (getName(endpoint, name.address + 8, name.address) < 0) return undefined;
  return readSocketAddress(name.bytes.subarray(8));
}

export function describe({ host, port }: SocketAddress): string {
  return `${host}:${port}`;
}

export function checkHost(host: string): void {
  if (isIPv4(host)) return;
  throw new TramError(
    'TRAM_INVALID_ARGUMENT',
    `Expected an IPv4 address such as 10.0.0.1, got ${host}.`,
  );
}

/** @param what  can't be done at the address, for the message */
export function addressError(library: Libfabric, what: string, code: number): TramError {
  const why = ADDRESS_ERRORS[-code];
  if (why === undefined) return library.error(`Can't ${what}`, code);
  return new TramError('TRAM_ADDRESS_UNAVAILABLE', `Can't ${what}: ${why}.`);
}
