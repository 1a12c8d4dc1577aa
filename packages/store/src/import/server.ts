/** Where a server is, and how to connect to it. */

import { connect, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { StoreError } from '../options.js';

export type Place =
  | { readonly host: string; readonly port: number }
  /** That of a Unix socket. */
  | { readonly path: string };

export interface Server {
  readonly place: Place;
  /** What AUTH is sent. Both are strings of bytes. */
  readonly username?: string;
  readonly password?: string;
  /** undefined: without TLS. */
  readonly tls?: TlsKeys;
  /** What to do if it cannot be reached. */
  readonly hint: string;
}

/** Without `ca`, the authorities are those that Node trusts. */
export interface TlsKeys {
  readonly ca?: Buffer;
  /** Ours. */
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** What a URL of a server says. */
export interface Source {
  readonly place: Place;
  readonly username?: string;
  readonly password?: string;
  readonly usesTls: boolean;
  readonly database?: number;
}

const PORT = 6379;
const CONNECT_MS = 10_000;

/** @param text  such as `127.0.0.1:6379`, `[::1]:6379`, or the path of a Unix socket */
export function placeOf(text: string): Place {
  if (text.startsWith('/') || text.startsWith('.')) return { path: text };
  const [, inBraces, host, port = String(PORT)] =
    /^(?:\[([\da-fA-F:.]+)\]|([^\s:/@]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const name = inBraces ?? host;
  if (name === undefined || !isPort(port)) {
    const hint = 'Use HOST:PORT, such as 127.0.0.1:6379, or the path of a Unix socket.';
    throw new StoreError(`${JSON.stringify(text)} is not the address of a server`, hint);
  }
  return { host: name, port: Number(port) };
}

function isPort(digits: string): boolean {
  return Number(digits) >= 1 && Number(digits) <= 65_535;
}

/** @returns whether it is the URL of a server, and not the path of a file */
export function isUrl(text: string): boolean {
  return /^rediss?:\/\//i.test(text);
}

/** @param text  such as `redis://user:password@host:6379/0` */
export function sourceOf(text: string): Source {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const [, digits] = /^\/?(\d{0,5})$/.exec(url?.pathname ?? '-') ?? [];
  if (url === undefined || url.hostname === '' || digits === undefined) {
    const hint = 'Use redis://HOST:PORT, or rediss://HOST:PORT with TLS.';
    throw new StoreError('this is not the URL of a Redis server', hint);
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return {
    place: { host, port: Number(url.port || PORT) },
    usesTls: url.protocol.toLowerCase() === 'rediss:',
    ...(url.username !== '' && { username: bytesOf(decodeURIComponent(url.username)) }),
    ...(url.password !== '' && { password: bytesOf(decodeURIComponent(url.password)) }),
    ...(digits !== '' && { database: Number(digits) }),
  };
}

/** As clients send it. */
export function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

export function nameOf(place: Place): string {
  if ('path' in place) return place.path;
  return isIP(place.host) === 6 ? `[${place.host}]:${place.port}` : `${place.host}:${place.port}`;
}

/** The other side has ended the connection, or something between. */
export class ConnectionLost extends StoreError {
  override name = 'ConnectionLost';
}

/** What comes from a server. @throws ConnectionLost when it ends */
export async function* received(
  socket: Socket,
  server: string,
  hint: string,
): AsyncGenerator<Buffer, never> {
  let reason = 'the other side has closed it';
  try {
    for await (const chunk of socket) yield chunk;
  } catch (error) {
    reason = messageOf(error);
  }
  throw new ConnectionLost(`the connection to ${server} has ended: ${reason}`, hint);
}

/** @throws StoreError */
export async function openSocket({ place, tls, hint }: Server): Promise<Socket> {
  try {
    return await connected(place, tls);
  } catch (error) {
    throw new StoreError(`no connection to ${nameOf(place)}: ${messageOf(error)}`, hint, {
      cause: error,
    });
  }
}

function connected(place: Place, tls: TlsKeys | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket =
      tls === undefined ? connect(place) : connectTls({ ...place, ...tls, ...serverName(place) });
    const timer = setTimeout(() => socket.destroy(new Error('it does not answer')), CONNECT_MS);
    socket.once('error', reject);
    socket.once('close', () => clearTimeout(timer));
    socket.once(tls === undefined ? 'connect' : 'secureConnect', () => {
      clearTimeout(timer);
      socket.off('error', reject);
      socket.setNoDelay(true);
      socket.setKeepAlive(true, CONNECT_MS);
      resolve(socket);
    });
  });
}

/** TLS has names of servers, but no addresses. */
function serverName(place: Place): ConnectionOptions {
  return 'host' in place && isIP(place.host) === 0 ? { servername: place.host } : {};
}

/** Those of several addresses of a name have none themselves. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map(messageOf).join('; ');
  }
  return error instanceof Error ? error.message : String(error);
}
