/**
 * Whoever is none of the hosts of a cluster across machines, a client or somebody who only looks: an arena of its own,
 * with the same places as those of the hosts, and a network to all of them.
 */
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MachinesConfig } from '../../config/config.js';
import { TramError } from '../../errors.js';
import { ARENA, ARENA_STATE, type ArenaMap } from '../../memory/arena.js';
import { Network } from '../../memory/machines/network.js';
import {
  type ArenaFile,
  createArenaFile,
  removeArenaFile,
} from '../../memory/processes/arena-file.js';
import { Layout } from '../../protocol/layout.js';
import { nowUs } from '../clock.js';
import { ClusterContext } from '../cluster-context.js';
import { bufferWordsOf } from './buffer-words.js';
import type { Credentials } from './cluster-file.js';

export interface RemoteAttachment {
  readonly config: MachinesConfig;
  readonly context: ClusterContext;
  readonly network: Network;
  close(): void;
}

/** A host that does not answer for so many suspicion times is given up, but nobody here is in a hurry. */
const PATIENCE = 2;
const PATIENCE_US_MIN = 1_000_000;
/** The longest that the event loop is held up while nothing comes. */
const LOOK_US = 500;

/** @param address  of this machine  @param caller  one of `CALLER` */
export function attachRemotely(
  config: MachinesConfig,
  credentials: Credentials,
  address: string,
  caller: number,
): RemoteAttachment {
  const { machines, provider, timing, sizes } = config;
  let network!: Network;
  let file!: ArenaFile;
  const context = ClusterContext.onMachines(config, credentials.digest, (map) => {
    file = temporaryArena(map);
    file.words[ARENA.state] = ARENA_STATE.running;
    // Without the locks of the file, which tell of nobody.
    const { words, address: start, parking } = file;
    const arena = { words, address: start, parking, close: () => file.close() };
    try {
      network = new Network({
        map,
        arena,
        self: { caller, number: 0 },
        address,
        hosts: machines.map(({ address: host, port }) => ({ host, port })),
        ...credentials,
        provider,
        patienceUs: Math.max(timing.suspectAfterUs * PATIENCE, PATIENCE_US_MIN),
        bufferWords: (other) => bufferWordsOf(new Layout(sizes), map, map.hosts, other),
        log: () => undefined,
        nowUs,
      });
    } catch (error) {
      file.close();
      throw error;
    }
    return { arena, network };
  });
  const close = (): void => {
    network.close();
    file.close();
  };
  return { config, context, network, close };
}

/** Nobody else maps it, and only what is touched takes memory. */
function temporaryArena(map: ArenaMap): ArenaFile {
  const directory = mkdtempSync(join(tmpdir(), 'tram-'));
  const path = join(directory, 'arena');
  try {
    const file = createArenaFile(path, map.words, []);
    removeArenaFile(path);
    return file;
  } finally {
    rmdirSync(directory);
  }
}

/** Let the network do what it can now, or soon. */
export function turn(network: Network): void {
  network.flush(nowUs(), 0);
  network.wait(LOOK_US);
  network.poll(nowUs());
}

export function unreachable({ network, config }: RemoteAttachment): TramError {
  const complaints = network.missingHosts().map((host) => {
    const { name, address, port } = config.machines[host]!;
    return `${name} (${address}:${port}): ${network.complaintOf(host) ?? NO_ANSWER}`;
  });
  return new TramError('TRAM_UNREACHABLE', `can't reach the cluster. ${complaints.join('; ')}`, {
    hint: 'Are the hosts running (`tram host NAME`), and is this the configuration and the secret that they have?',
    retry: 'safe',
  });
}

export const NO_ANSWER = 'no answer';
