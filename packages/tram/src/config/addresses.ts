/** Addresses and ports of machines, as users write them. */
import { isIPv4 } from 'node:net';
import { integer, type Scalar, text } from './kinds.js';

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

const LOOPBACK = '127.0.0.1';
export const ANY_ADDRESS = '0.0.0.0';

const NAME_CHARACTERS_MAX = 253;
const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
/** The last label is not a number: `10.0.0` is a mistyped address. */
const DNS_NAME = new RegExp(`^(?:${LABEL}\\.)*(?!\\d+$)${LABEL}$`, 'i');

export const PORT_MAX = 65_535;
export const PORT = integer(1, PORT_MAX);

/** Where other hosts reach a machine. */
export const ADDRESS = text(
  `an IPv4 address other than ${ANY_ADDRESS}, or a name that resolves to one`,
  (address) => address !== ANY_ADDRESS && isAddress(address),
);

/** Where a host listens. */
export const LISTENING_ENDPOINT: Scalar = {
  expected: 'a port from 1 to 65535, or an address and a port such as "10.0.0.1:7412"',
  accepts: (value) => PORT.accepts(value) || (typeof value === 'string' && isEndpoint(value)),
};

function isAddress(text: string): boolean {
  return isIPv4(text) || (text.length <= NAME_CHARACTERS_MAX && DNS_NAME.test(text));
}

function isEndpoint(text: string): boolean {
  const { address, port } = parseEndpoint(text);
  return isAddress(address) && PORT.accepts(port);
}

/** A port alone is one of the loopback address. */
export function parseEndpoint(endpoint: number | string): Endpoint {
  if (typeof endpoint === 'number') return { address: LOOPBACK, port: endpoint };
  const [, address = '', digits = ''] = /^(.+):(\d{1,5})$/.exec(endpoint) ?? [];
  return { address, port: Number(digits) };
}
