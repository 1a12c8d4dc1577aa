/** Where the page that watches a cluster is served, and what it may do. */
import { ConfigError, mustBe } from '../config/mistakes.js';
import { requireKnown } from '../config/nearest-name.js';

export interface PageOptions {
  /** 0: any that is free. Default 7420. */
  readonly port?: number;
  /** Default 127.0.0.1. At an address that others reach, the page needs the token that is in `Cluster.page`. */
  readonly address?: string;
  /** May the page crash and restart hosts, and choose leaders? Default false. */
  readonly control?: boolean;
}

export const PAGE_DEFAULTS: Required<PageOptions> = {
  port: 7420,
  address: '127.0.0.1',
  control: false,
};

const PORT_MAX = 65_535;

/** @throws TRAM_INVALID_ARGUMENT, TRAM_INVALID_CONFIG */
export function resolvePage(options: PageOptions): Required<PageOptions> {
  requireKnown(options, Object.keys(PAGE_DEFAULTS));
  const { port } = { ...PAGE_DEFAULTS, ...options };
  if (Number.isInteger(port) && port >= 0 && port <= PORT_MAX)
    return { ...PAGE_DEFAULTS, ...options };
  const { path, message } = mustBe(['page', 'port'], `an integer from 0 to ${PORT_MAX}`, port);
  throw new ConfigError(path, message);
}
