/** RamCast (`baselines/ramcast`) as a `System`, on threads or on processes, with the host starters and the load of TRAM. */
import { randomInt } from 'node:crypto';
import { resolveConfig } from 'tram-multicast/internal/config/config.js';
import {
  type HostHandle,
  processStarter,
  threadStarter,
} from 'tram-multicast/internal/hosting/starters.js';
import { TraceFile } from 'tram-multicast/internal/hosting/trace.js';
import { ARENA, ARENA_STATE, HOST } from 'tram-multicast/internal/memory/arena.js';
import {
  type ArenaFile,
  arenaPath,
  createArenaFile,
  removeArenaFile,
} from 'tram-multicast/internal/memory/processes/arena-file.js';
import { NO_SALT } from 'tram-multicast/internal/memory/record.js';
import { wakeParked } from 'tram-multicast/internal/memory/shared.js';
import { threadsArena } from 'tram-multicast/internal/memory/threads.js';
import { runLoad } from '../../load/run.js';
import type { Load, Measurement, RunningSystem, Setup, System } from '../system.js';
import { type RamcastConfig, RamcastContext } from './context.js';

export interface RamcastOptions {
  readonly memory: 'threads' | 'processes';
  /** Threads or processes that run the replicas. Default: as many as for TRAM. */
  readonly hosts?: number;
  /** Do replicas acknowledge timestamps, as published, or do leaders count completions, which costs less? */
  readonly acknowledges?: boolean;
  /** A directory for the trace, for tests. */
  readonly trace?: string;
}

const INBOX_BYTES = 1 << 16;
/** Size of all streams at one replica: with many streams each is shorter, so that they stay in the caches. */
const STREAMS_BYTES = 1 << 16;
const STREAM_BYTES_MIN = 1 << 10;
const STREAM_BYTES_MAX = 1 << 13;
const REPLY_BYTES_MAX = 16;
const START_MS = 30_000;
const END_MS = 2000;

const SCRIPT = new URL('./host.js', import.meta.url);

export function ramcast(options: RamcastOptions): System {
  const name = options.acknowledges === true ? 'RamCast' : 'RamCast lean';
  return { name, start: (setup) => RunningRamcast.start(options, setup) };
}

class RunningRamcast implements RunningSystem {
  private hosts: HostHandle[] = [];

  private constructor(
    private readonly memory: RamcastOptions['memory'],
    private readonly context: RamcastContext,
    private readonly address: ArrayBufferLike | string,
  ) {}

  static async start(options: RamcastOptions, setup: Setup): Promise<RunningRamcast> {
    const config = configOf(options, setup);
    const words = RamcastContext.wordsOf(config);
    const arena =
      options.memory === 'processes'
        ? createArenaFile(arenaPath(`ramcast-${process.pid}-${randomInt(2 ** 31)}`), words)
        : threadsArena(new SharedArrayBuffer(words * 4));
    const address = 'path' in arena ? (arena as ArenaFile).path : arena.words.buffer;
    const system = new RunningRamcast(
      options.memory,
      RamcastContext.create(config, arena),
      address,
    );
    try {
      await system.begin();
    } catch (error) {
      await system.close();
      throw error;
    }
    return system;
  }

  private async begin(): Promise<void> {
    const { context, address } = this;
    const { config } = context;
    if (config.trace !== undefined) beginTrace(config.trace, config);
    const starter =
      typeof address === 'string'
        ? processStarter(address, undefined, SCRIPT)
        : threadStarter(address as SharedArrayBuffer, SCRIPT);
    const events = { onReport: () => undefined, onExit: () => undefined };
    this.hosts = Array.from({ length: config.hosts }, (_, host) =>
      starter.start(host, false, events),
    );
    const deadlineMs = Date.now() + START_MS;
    await Promise.all(this.hosts.map((host) => host.ready(deadlineMs)));
  }

  measure(load: Load): Promise<Measurement> {
    return runLoad(this.memory, { ...load, address: this.address, system: 'ramcast' });
  }

  async close(): Promise<void> {
    const { arena, map, config } = this.context;
    Atomics.store(arena.words, ARENA.state, ARENA_STATE.closing);
    for (let host = 0; host < map.hosts; host++) {
      wakeParked(arena.words, arena.parking, map.host(host) + HOST.parked);
    }
    await Promise.all(this.hosts.map((host) => host.end(END_MS)));
    if (config.trace !== undefined) endTrace(config.trace);
    if (typeof this.address === 'string') removeArenaFile(this.address);
    arena.close();
  }
}

/** With the hosts and the timing of TRAM. */
function configOf(options: RamcastOptions, setup: Setup): RamcastConfig {
  const { memory, hosts, trace, acknowledges = false } = options;
  const { groups, replicas, clientsMax, outstandingMax, payloadBytesMax } = setup;
  const cluster = { memory, groups, replicas, ...(hosts !== undefined && { hosts }) };
  const usual = resolveConfig(cluster, NO_SALT);
  return {
    sizes: {
      groups,
      replicas,
      clients: clientsMax,
      payloadBytesMax,
      replyBytesMax: REPLY_BYTES_MAX,
      inboxBytes: INBOX_BYTES,
      streamBytes: Math.max(STREAM_BYTES_MIN, Math.min(STREAM_BYTES_MAX, STREAMS_BYTES / groups)),
      callsMax: outstandingMax,
      acknowledges,
      firstIndex: 0,
    },
    hosts: usual.hosts,
    timing: usual.timing,
    ...(trace !== undefined && { trace }),
  };
}

function beginTrace(directory: string, { sizes }: RamcastConfig): void {
  const groups: Record<string, string[]> = {};
  for (let group = 0; group < sizes.groups; group++) {
    groups[group] = Array.from({ length: sizes.replicas }, (_, member) => `${group}/${member}`);
  }
  const file = new TraceFile(directory, 'groups');
  file.add({ event: 'groups', groups });
  file.close();
}

function endTrace(directory: string): void {
  const file = new TraceFile(directory, 'end');
  file.add({ event: 'end', quiescent: true });
  file.close();
}
