/** Where the page that watches a cluster is served, and what it may do. */
import { ConfigError, mustBe } from '../config/mistakes.js';
import { requireKnown } from '../config/nearest-name.js';

export interface PageOptions {
  /** 0: any that is free. Default 7420. */
  readonly port?: number | undefined;
  /** Default 127.0.0.1. At an address that others reach, the page needs the token that is in `Cluster.page`. */
  readonly address?: string | undefined;
  /** May the page crash and restart hosts, and choose leaders? Default false. */
  readonly control?: boolean | undefined;
}

/** All of them. */
export interface ResolvedPage {
  readonly port: number;
  readonly address: string;
  readonly control: boolean;
}

export const PAGE_DEFAULTS: ResolvedPage = { port: 7420, address: '127.0.0.1', control: false };

const PORT_MAX = 65_535;

/** @throws TRAM_INVALID_ARGUMENT, TRAM_INVALID_CONFIG */
export function resolvePage(options: PageOptions): ResolvedPage {
  requireKnown(options, Object.keys(PAGE_DEFAULTS));
  const { port, address, control } = PAGE_DEFAULTS;
  const page = {
    port: options.port ?? port,
    address: options.address ?? address,
    control: options.control ?? control,
  };
  const isPort = Number.isInteger(page.port) && page.port >= 0 && page.port <= PORT_MAX;
  if (!isPort) throw wrong('port', `an integer from 0 to ${PORT_MAX}`, page.port);
  if (typeof page.address !== 'string') throw wrong('address', 'a string', page.address);
  if (typeof page.control !== 'boolean') throw wrong('control', 'true or false', page.control);
  return page;
}

function wrong(option: string, expected: string, value: unknown): ConfigError {
  const { path, message } = mustBe(['page', option], expected, value);
  return new ConfigError(path, message);
}
