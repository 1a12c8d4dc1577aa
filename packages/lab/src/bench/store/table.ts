/** The output of `tram-lab bench store` for people. */
import type { Spread } from '../load/spread.js';
import { align } from '../text/columns.js';
import { loadOf } from './loads.js';
import type { Figures, LoadResult, StoreResult } from './store.js';
import { STORE_SYSTEMS } from './systems.js';

const HEAD = ['', 'throughput', '', 'store/it', 'p50', 'p99', 'cores'];

export function formatStore(result: StoreResult): string {
  const { machine, options, redisVersion } = result;
  const { cores, model, node, loadAverage } = machine;
  const tables = result.results.map((one) => align(rowsOf(one), SIDES));
  const conditions = [
    `machine: ${cores} cores of ${model}, Node ${node}, load average before ${loadAverage.toFixed(1)}; all on the loopback`,
    `load: 50 connections; ${options.seconds} s each, in turn; medians of ${options.rounds} rounds (least to greatest)`,
    'keys: drawn from 100,000; values of 3 B, as redis-benchmark has them',
    'cores: those that servers and load keep busy together',
    `Redis: version ${redisVersion}`,
    ...STORE_SYSTEMS.map(({ name, conditions }) => `${name}: ${conditions}`),
  ];
  return `${[...tables, conditions.join('\n')].join('\n\n')}\n`;
}

const SIDES = ['left', 'right', 'left', 'right', 'right', 'right', 'right'] as const;

function rowsOf({ load, pipeline, sender, figures }: LoadResult): string[][] {
  const { name, keys } = loadOf(load);
  const by = sender === 'own' ? '' : `${sender}: `;
  const title = `${by}${name}${pipeline === 1 ? '' : `, pipelines of ${pipeline}`}`;
  const rows = STORE_SYSTEMS.flatMap(({ id, name }) => {
    const measured = figures[id];
    return measured === undefined ? [] : [[name, ...cellsOf(measured, keys)]];
  });
  return [[title, ...HEAD.slice(1)], ...rows];
}

function cellsOf(figures: Figures, keys: number): string[] {
  const { requestsPerSecond, latencyNsP50, latencyNsP99, cores, storeBy } = figures;
  const keysToo = keys > 1 ? `, ${rate(requestsPerSecond.median * keys)} keys` : '';
  return [
    `${rate(requestsPerSecond.median)}/s`,
    `(${rate(requestsPerSecond.least)} to ${rate(requestsPerSecond.greatest)})${keysToo}`,
    times(storeBy),
    `${millis(latencyNsP50)} ms`,
    `${millis(latencyNsP99)} ms`,
    cores === undefined ? '' : cores.median.toFixed(2),
  ];
}

function rate(perSecond: number): string {
  if (perSecond >= 1e6) return `${(perSecond / 1e6).toFixed(2)} M`;
  return `${(perSecond / 1e3).toFixed(perSecond >= 1e5 ? 0 : 1)} k`;
}

function millis({ median }: Spread): string {
  return (median / 1e6).toFixed(2);
}

function times({ median }: Spread): string {
  return `${median.toFixed(2)}×`;
}
