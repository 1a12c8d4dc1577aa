/** The configuration file and the secret of a cluster on machines, as hosts, clients and tools read them. */
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { dirname, resolve } from 'node:path';
import { isOnMachines, type MachinesConfig, resolveConfig } from '../../config/config.js';
import type { Machine } from '../../config/machines.js';
import { TramError } from '../../errors.js';
import type { AddressBook } from '../../memory/machines/known-hosts.js';
import { NO_SALT } from '../../memory/record.js';
import { addressBookOf, digestOf } from './digest.js';
import { readSecret, saltOf } from './secret.js';

/** What two hosts must share to let each other in. */
export interface Credentials {
  readonly secret: Uint8Array;
  readonly digest: Uint8Array;
  readonly addresses: AddressBook;
}

export interface ClusterFile {
  readonly config: MachinesConfig;
  readonly credentials: Credentials;
}

/** @param path  the path of the configuration file */
export async function readClusterFile(path: string): Promise<ClusterFile> {
  const { readConfigFile } = await import('../../config/file.js');
  const options = await readConfigFile(path);
  const config = resolveConfig(options, NO_SALT, dirname(resolve(path)));
  if (!isOnMachines(config)) {
    throw new TramError(
      'TRAM_INVALID_CONFIG',
      `${path} describes a cluster on ${config.memory}, not one across machines`,
      { hint: 'Start it with `tram up --config`, and connect to it by its name.' },
    );
  }
  const secret = readSecret(config.secretFile);
  const salted = {
    ...config,
    sizes: { ...config.sizes, salt: saltOf(secret) },
    machines: await Promise.all(config.machines.map(resolved)),
  };
  // Over the names in the file: they may resolve differently on different machines.
  const addresses = addressBookOf(config);
  return { config: salted, credentials: { secret, digest: digestOf(config), addresses } };
}

async function resolved(machine: Machine): Promise<Machine> {
  try {
    const { address } = await lookup(machine.address, 4);
    return { ...machine, address };
  } catch (cause) {
    throw new TramError(
      'TRAM_INVALID_CONFIG',
      `host ${machine.name}: ${machine.address} is no address, and no name that resolves to one`,
      { cause },
    );
  }
}

/** The address of this machine on the route to the cluster's first host. */
export function ownAddress({ machines }: MachinesConfig): Promise<string> {
  const { address, port } = machines[0];
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4');
    const end = (tell: () => void) => () => {
      tell();
      socket.close();
    };
    socket.once('error', (cause) =>
      end(() =>
        reject(new TramError('TRAM_UNREACHABLE', `there is no way to ${address}`, { cause })),
      )(),
    );
    // Connecting a UDP socket sends nothing: the kernel chooses a route, and with it an address.
    socket.connect(port, address, () => end(() => resolve(socket.address().address))());
  });
}
