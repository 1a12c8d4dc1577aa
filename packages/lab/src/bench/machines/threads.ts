/**
 * `tram-lab bench machines --threads n`: what several threads of a machine are worth. It compares clusters that differ only in
 * `threads`, in one run: a round measures each of them at saturation, one after the other.
 *
 * All machines share the cores of this one. Three of them keep two cores busy with one thread each, so they show only what
 * more threads cost. One machine, whose groups have one member each, has the cores to itself and the client.
 */
import { fileURLToPath } from 'node:url';
import { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { destinationSets } from '../load/destinations.js';
import { measure, rateOf } from '../load/measure.js';
import { inRounds } from '../load/rounds.js';
import { type Spread, spreadOf } from '../load/spread.js';
import { type ThisMachine, thisMachine } from '../this-machine.js';
import { type MachinesCluster, startCluster } from './cluster.js';
import { libfabricVersion } from './libfabric-version.js';
import { loadOn } from './system.js';

export interface ThreadsOptions {
  readonly threads: number;
  /** Duration of each measurement. */
  readonly seconds: number;
  readonly rounds: number;
}

interface Case {
  readonly machines: 1 | 3;
  /** Does each message keep its thread busy? */
  readonly isBusy: boolean;
}

export interface ThreadsFigures extends Case {
  /** Messages a second with one thread, and with several. */
  readonly single: Spread;
  readonly several: Spread;
  /** Of the two, round by round. */
  readonly ratio: Spread;
  /** Cores that hosts and client kept busy. */
  readonly coresUsed: { readonly single: number; readonly several: number };
}

export interface ThreadsResult {
  readonly options: ThreadsOptions;
  readonly machine: ThisMachine & { readonly libfabric: string };
  readonly figures: readonly ThreadsFigures[];
}

export const GROUPS = 8;
export const PAYLOAD_BYTES = 64;
export const IN_FLIGHT = 256;
const WARM_UP_SECONDS = 0.5;
const BUSY_SERVICE: string = fileURLToPath(new URL('./busy-service.js', import.meta.url));

const CASES: readonly Case[] = [
  { machines: 1, isBusy: true },
  { machines: 1, isBusy: false },
  { machines: 3, isBusy: false },
];

/** If interrupted, it ends everything that it has started, then throws the signal's reason. */
export async function benchThreads(
  options: ThreadsOptions,
  progress: (step: string) => void,
  signal: AbortSignal,
): Promise<ThreadsResult> {
  const machine = { libfabric: libfabricVersion(), ...thisMachine() };
  const figures: ThreadsFigures[] = [];
  for (const one of CASES) {
    const work = one.isBusy ? 'a service that computes' : 'no service';
    progress(`machines: ${one.machines}, threads: 1 and ${options.threads}, ${work}`);
    figures.push(await figuresOf(one, options, signal));
    signal.throwIfAborted();
  }
  return { options, machine, figures };
}

async function figuresOf(
  one: Case,
  { threads, seconds, rounds }: ThreadsOptions,
  signal: AbortSignal,
): Promise<ThreadsFigures> {
  const clusters: MachinesCluster[] = [];
  try {
    for (const count of [1, threads]) {
      const setup = { groups: GROUPS, replicas: one.machines, clientsMax: 1 };
      const sizes = { outstandingMax: IN_FLIGHT, payloadBytesMax: PAYLOAD_BYTES };
      const service = one.isBusy ? { service: BUSY_SERVICE } : {};
      clusters.push(
        await startCluster({ ...setup, ...sizes }, signal, { threads: count, ...service }),
      );
    }
    const measured = await inRounds(rounds, clusters, (cluster) =>
      measure(loadOn(cluster, signal), {
        clients: 1,
        outstanding: IN_FLIGHT,
        sets: destinationSets(new Overlay(cluster.config.parents), 'rotating', 1),
        payloadBytes: PAYLOAD_BYTES,
        warmUpSeconds: WARM_UP_SECONDS,
        seconds,
      }),
    );
    const spread = (read: (round: (typeof measured)[number]) => number): Spread =>
      spreadOf(measured.map(read))!;
    return {
      ...one,
      single: spread(([single]) => rateOf(single)),
      several: spread(([, several]) => rateOf(several)),
      ratio: spread(([single, several]) => rateOf(several) / rateOf(single)),
      coresUsed: {
        single: spread(([single]) => single.coresUsed).median,
        several: spread(([, several]) => several.coresUsed).median,
      },
    };
  } finally {
    await Promise.all(clusters.map((cluster) => cluster.close()));
  }
}
