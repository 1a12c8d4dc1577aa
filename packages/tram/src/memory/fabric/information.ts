/** The `fi_info` of a provider at an address: all other objects of libfabric are opened from it. Called by `fabric.ts`. */
import { constants as systemConstants } from 'node:os';
import { TramError } from '../../errors.js';
import { CONSTANTS, FIELDS } from './binary-interface.js';
import type { Libfabric } from './libfabric.js';
import { checkHost } from './socket-address.js';

const { fi_info: INFO, fi_tx_attr: TRANSMIT, fi_domain_attr: DOMAIN } = FIELDS;

/** The requirements for registered memory that we meet, if a provider has them. */
const MEMORY_MODES =
  CONSTANTS.FI_MR_LOCAL |
  CONSTANTS.FI_MR_VIRT_ADDR |
  CONSTANTS.FI_MR_ALLOCATED |
  CONSTANTS.FI_MR_PROV_KEY;

/** Writes take effect in the order of posting, and reads after the writes before them. */
const ORDER = CONSTANTS.FI_ORDER_WAW | CONSTANTS.FI_ORDER_RAW;

export interface Information {
  /** Of the structure, which the caller frees. */
  readonly address: number;
  readonly extentsMax: number;
  /** The `MEMORY_MODES` that the provider requires. */
  readonly memoryMode: number;
}

export function findInformation(library: Libfabric, provider: string, host: string): Information {
  checkHost(host);
  const hints = makeHints(library, provider);
  const code = library.findInfo(host, CONSTANTS.FI_SOURCE, hints);
  library.freeInfo(hints);
  if (code === -systemConstants.errno.ENODATA) {
    throw new TramError(
      'TRAM_ADDRESS_UNAVAILABLE',
      `libfabric's provider ${provider} offers nothing at ${host}.`,
      {
        hint: 'Check the addresses of this machine (ip address), and the providers of libfabric (fi_info -l).',
      },
    );
  }
  library.check(code, `Can't ask libfabric for the provider ${provider}`);
  return describe(library, library.result.getWide(0));
}

function makeHints(library: Libfabric, provider: string): number {
  const hints = library.duplicateInfo(0);
  const transmit = library.pointer(hints + INFO.tx_attr);
  const endpoint = library.pointer(hints + INFO.ep_attr);
  const domain = library.pointer(hints + INFO.domain_attr);
  const fabric = library.pointer(hints + INFO.fabric_attr);
  library.setWide(hints + INFO.caps, CONSTANTS.FI_MSG | CONSTANTS.FI_RMA);
  library.setWord(hints + INFO.addr_format, CONSTANTS.FI_SOCKADDR_IN);
  library.setWide(transmit + TRANSMIT.msg_order, ORDER);
  library.setWord(endpoint + FIELDS.fi_ep_attr.type, CONSTANTS.FI_EP_MSG);
  library.setWord(domain + DOMAIN.threading, CONSTANTS.FI_THREAD_DOMAIN);
  library.setWord(domain + DOMAIN.mr_mode, MEMORY_MODES);
  library.setWide(fabric + FIELDS.fi_fabric_attr.prov_name, library.newString(provider));
  return hints;
}

function describe(library: Libfabric, address: number): Information {
  const transmit = library.pointer(address + INFO.tx_attr);
  return {
    address,
    extentsMax: Math.min(
      library.pointer(transmit + TRANSMIT.iov_limit),
      library.pointer(transmit + TRANSMIT.rma_iov_limit),
    ),
    memoryMode: library.word(library.pointer(address + INFO.domain_attr) + DOMAIN.mr_mode),
  };
}
