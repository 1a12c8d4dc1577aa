/** Runs the program `redis-benchmark`, with the requests of `loads.ts` that it can send. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { LOOPBACK } from '../systems/ports.js';
import { findProgram } from '../systems/servers.js';
import { KEYS, type LoadId, type Pipeline, VALUE } from './loads.js';
import type { StoreReport } from './store.js';

const PROGRAM = 'redis-benchmark';
/** It sends a number of requests, not for a time: so many for each second that it should take, as it takes at 100,000 a second. */
const REQUESTS_PER_SECOND: Readonly<Record<Pipeline, number>> = { 1: 50_000, 16: 300_000 };

export function redisBenchmark(): string | undefined {
  return findProgram(PROGRAM);
}

export async function runRedisBenchmark(
  program: string,
  port: number,
  { load, pipeline, connections, seconds, signal }: RedisBenchmarkJob,
): Promise<Pick<StoreReport, 'requestsPerSecond' | 'latencyNsP50' | 'latencyNsP99'>> {
  const requests = Math.max(1000, Math.round(seconds * REQUESTS_PER_SECOND[pipeline]));
  const { stdout } = await promisify(execFile)(
    program,
    [
      ...['-h', LOOPBACK, '-p', String(port), '-t', load, '-c', String(connections)],
      ...['-P', String(pipeline), '-n', String(requests), '-r', String(KEYS)],
      ...['-d', String(VALUE.length), '--csv'],
    ],
    { signal },
  );
  return reportIn(stdout);
}

export interface RedisBenchmarkJob {
  readonly load: LoadId;
  readonly pipeline: Pipeline;
  readonly connections: number;
  readonly seconds: number;
  readonly signal: AbortSignal;
}

/** @param csv  a line of names, and one of figures */
export function reportIn(csv: string) {
  const [names = [], figures = []] = csv
    .trim()
    .split('\n')
    .map((line) => line.split(',').map((cell) => cell.replaceAll('"', '')));
  const figure = (name: string): number => {
    const value = Number.parseFloat(figures[names.indexOf(name)]);
    if (Number.isNaN(value)) throw new Error(`redis-benchmark printed no ${name}: ${csv}`);
    return value;
  };
  return {
    requestsPerSecond: figure('rps'),
    latencyNsP50: figure('p50_latency_ms') * 1e6,
    latencyNsP99: figure('p99_latency_ms') * 1e6,
  };
}
