/**
 * `tram-lab bench order`: the throughput of a cluster, and the latency of a message, from the offer of a client until the
 * replies of all destinations are back. Beside them, from the same run, the limits of the memory itself: a bare ring with
 * records of the same size, and a bare ping-pong.
 */
import { cpus } from 'node:os';
import { FRAME_WORDS } from 'tram-multicast/internal/memory/record.js';
import { MESSAGE } from 'tram-multicast/internal/protocol/layout.js';
import { Overlay, parseTree } from 'tram-multicast/internal/protocol/overlay.js';
import { destinationSets } from './load/destinations.js';
import type { BenchMemory } from './load/run.js';
import { measurePingPong } from './raw/ping-pong.js';
import { measureRawRing } from './raw/ring.js';
import type { Load, Measurement } from './systems/system.js';
import { type TramOptions, tram } from './systems/tram.js';

export interface OrderOptions {
  readonly memory: BenchMemory;
  readonly groups: number;
  readonly replicas: number;
  readonly tree: string;
  readonly hosts?: number;
  readonly leaders?: TramOptions['leaders'];
  readonly destinations: number;
  readonly clients: number;
  readonly outstanding: number;
  readonly payloadBytes: number;
  readonly seconds: number;
}

export interface OrderResult {
  readonly options: OrderOptions;
  readonly machine: { readonly cores: number; readonly model: string; readonly node: string };
  readonly messagesPerSecond: number;
  /** With the configured number of messages in flight. */
  readonly loaded: Measurement;
  /** With one client and one message at a time. */
  readonly alone: Measurement;
  /** Cores busy on average while loaded. */
  readonly coresUsed: number;
  readonly ring: {
    readonly recordBytes: number;
    readonly messagesPerSecond: number;
    readonly batchedMessagesPerSecond: number;
  };
  readonly pingPong: { readonly roundTripNsP50: number };
  /** The bare ring's throughput divided by the cluster's; the cluster's median latency divided by the ping-pong's. */
  readonly ringsPerMessage: number;
  readonly pingPongsPerMessage: number;
}

const RAW_SECONDS = 0.5;
const WARM_UP_SECONDS = 1.5;

export async function benchOrder(
  options: OrderOptions,
  progress: (step: string) => void,
): Promise<OrderResult> {
  const recordBytes = (FRAME_WORDS + MESSAGE.payload) * 4 + options.payloadBytes;
  progress('bare ring and ping-pong');
  const before = await rawLimits(options.memory, recordBytes);
  const { loaded, alone } = await measureCluster(options, progress);
  progress('bare ring and ping-pong, again');
  const after = await rawLimits(options.memory, recordBytes);
  const ringRate = Math.max(before.ring.messagesPerSecond, after.ring.messagesPerSecond);
  const pingPongNs = Math.min(before.pingPong.roundTripNsP50, after.pingPong.roundTripNsP50);
  const messagesPerSecond = loaded.messages / loaded.seconds;
  return {
    options,
    machine: { cores: cpus().length, model: cpus()[0]?.model ?? 'unknown', node: process.version },
    messagesPerSecond,
    loaded,
    alone,
    coresUsed: loaded.coresUsed,
    ring: {
      recordBytes,
      messagesPerSecond: ringRate,
      batchedMessagesPerSecond: Math.max(
        before.ring.batchedMessagesPerSecond,
        after.ring.batchedMessagesPerSecond,
      ),
    },
    pingPong: { roundTripNsP50: pingPongNs },
    ringsPerMessage: ringRate / messagesPerSecond,
    pingPongsPerMessage: alone.latencyNsP50 / pingPongNs,
  };
}

async function rawLimits(memory: BenchMemory, recordBytes: number) {
  const ring = await measureRawRing({ memory, recordBytes, seconds: RAW_SECONDS });
  const pingPong = await measurePingPong({ memory, seconds: RAW_SECONDS });
  return { ring, pingPong };
}

async function measureCluster(options: OrderOptions, progress: (step: string) => void) {
  const { memory, groups, replicas, tree, hosts, leaders, payloadBytes, clients, outstanding } =
    options;
  const system = tram({
    ...{ tree, memory },
    ...(hosts !== undefined && { hosts }),
    ...(leaders !== undefined && { leaders }),
  });
  const running = await system.start({
    ...{ groups, replicas, clientsMax: clients, outstandingMax: outstanding },
    payloadBytesMax: payloadBytes,
  });
  try {
    const overlay = new Overlay(parseTree(tree, groups));
    const sets = destinationSets(overlay, 'rotating', options.destinations);
    const load: Load = {
      ...{ sets, clients, outstanding, payloadBytes, seconds: options.seconds },
      warmUpSeconds: WARM_UP_SECONDS,
    };
    progress('one message at a time');
    const alone = await running.measure({ ...load, clients: 1, outstanding: 1 });
    progress(`${clients} clients with ${outstanding} messages in flight each`);
    const loaded = await running.measure(load);
    return { loaded, alone };
  } finally {
    await running.close();
  }
}
