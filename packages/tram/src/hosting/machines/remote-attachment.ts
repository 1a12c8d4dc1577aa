/**
 * Attaches a client or an observer that is not one of the cluster's hosts: an arena of its own with the same layout as
 * the hosts' arenas, and a network to all hosts.
 */
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MachinesConfig } from '../../config/config.js';
import { TramError } from '../../errors.js';
import { ARENA, ARENA_STATE, type ArenaMap } from '../../memory/arena.js';
import { REFUSAL } from '../../memory/machines/handshake.js';
import { Network } from '../../memory/machines/network.js';
import { NO_ANSWER } from '../../memory/machines/network-options.js';
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

/** A host is given up after this many suspicion time-outs without an answer, and not before the minimum below. */
const PATIENCE = 2;
const PATIENCE_US_MIN = 1_000_000;
/** The longest time that a poll of the network blocks the event loop. */
const LOOK_US = 500;

/** @param address  this machine's address  @param caller  one of `CALLER` */
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
    // Without the locks of the file: nobody else maps it.
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

/** A file that nobody else maps. Only touched pages take memory. */
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

/** Sends, waits briefly, and receives. */
export function turn(network: Network): void {
  network.flush(nowUs(), 0);
  network.wait(LOOK_US);
  network.poll(nowUs());
}

export function unreachable({ network, config }: RemoteAttachment): TramError {
  const missing = network.missingHosts();
  const complaints = missing.map((host) => {
    const { name, address, port } = config.machines[host];
    return `${name} (${address}:${port}): ${network.complaintOf(host) ?? NO_ANSWER}`;
  });
  const message = `can't reach the cluster. ${complaints.join('; ')}`;
  return new TramError('TRAM_UNREACHABLE', message, {
    hint: hintFor(network, config, missing),
    retry: 'safe',
  });
}

function hintFor(network: Network, { machines }: MachinesConfig, missing: number[]): string {
  const refusals = new Set(missing.map((host) => network.refusalOf(host)));
  if (refusals.has(REFUSAL.wrongProof)) {
    return 'Copy the secret and the configuration file of the hosts to this machine.';
  }
  if (refusals.has(REFUSAL.otherCluster)) {
    return 'Use the configuration file of the hosts, and their version of TRAM.';
  }
  const silent = missing.filter((host) => network.refusalOf(host) === 0);
  if (silent.length === 0) return 'The hosts are starting: try again in a moment.';
  const names = silent.map((host) => machines[host].name).join(', ');
  const needed = refusals.has(REFUSAL.notReady)
    ? 'The first start of a cluster needs all hosts.'
    : 'A cluster needs a majority of its hosts.';
  return `Start the hosts that do not answer (\`tram host NAME\`): ${names}. ${needed}`;
}
