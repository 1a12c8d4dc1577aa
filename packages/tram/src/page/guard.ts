/**
 * Which requests the server of the page answers.
 *
 * - `Host` must name the address at which the request has arrived, or the name that the server was given. So a page of
 *   another site can't reach the server by a name that its owner points here (DNS rebinding).
 * - `Origin`, if there is one, must be the server itself, and so must be what `Sec-Fetch-Site` tells. Only a link may lead
 *   here from another site.
 * - A token, where one is needed, comes in a header. It is in the fragment of the address that the user opens, which
 *   browsers do not send.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|::1|localhost)$/;

export function isLoopback(address: string): boolean {
  return LOOPBACK.test(address);
}

/** Why a request is refused; undefined if it is not. @param name  the address of the server, as the user has given it */
export function refusalOf(request: IncomingMessage, name: string): string | undefined {
  const { host = '', origin } = request.headers;
  const hostname = hostnameOf(host);
  if (hostname === undefined || !isOwnName(hostname, request.socket.localAddress ?? '', name))
    return 'wrong Host: this server answers only to its own address';
  if (origin !== undefined && origin !== `http://${host}`)
    return 'wrong Origin: this server answers only its own page';
  return isForeign(request) ? 'this server answers only its own page' : undefined;
}

function hostnameOf(host: string): string | undefined {
  const [, literal, name] = /^(?:\[([\da-fA-F:.]+)\]|([\w.-]+))(?::\d{1,5})?$/.exec(host) ?? [];
  return (literal ?? name)?.toLowerCase();
}

function isOwnName(hostname: string, localAddress: string, name: string): boolean {
  // A socket for both versions of IP shows addresses of version 4 with a prefix.
  const own = localAddress.replace(/^::ffff:/, '');
  if (isIP(hostname) !== 0) return hostname === own;
  return hostname === name.toLowerCase() || (hostname === 'localhost' && isLoopback(own));
}

function isForeign({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  return headers['sec-fetch-mode'] !== 'navigate' || headers['sec-fetch-dest'] !== 'document';
}

/** Does the request carry the token? Takes the same time however much of it is right. */
export function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const [, given = ''] = /^Bearer (\S+)$/.exec(headers.authorization ?? '') ?? [];
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Uint8Array {
  return createHash('sha256').update(text).digest();
}
