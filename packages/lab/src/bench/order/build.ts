/**
 * Measures TRAM as a build has it: this one, or that of another checkout. Each measurement has a process of its own
 * (`build-process.ts`), so all of them begin alike, with code that the engine has not compiled yet.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ForkedProcess } from '../load/forked.js';
import type { Load, Setup } from '../systems/system.js';
import type { TramOptions } from '../systems/tram.js';
import type { ClusterFigures } from './order.js';

/** The address of the module that starts clusters of that build. */
export type Build = string & { readonly build: unique symbol };

/** What the process gets. */
export interface BuildJob {
  readonly build: Build;
  readonly options: TramOptions;
  readonly setup: Setup;
  readonly alone: Load;
  readonly loaded: Load;
}

const MODULE = 'bench/systems/tram.js';
const SCRIPT = new URL('./build-process.js', import.meta.url);
/** For the start and the end of a cluster, and for messages that are still under way. */
const SLACK_SECONDS = 60;

export const THIS_BUILD: Build = new URL(`../../${MODULE}`, import.meta.url).href as Build;

/** @throws if there is no checkout with a build */
export function buildIn(checkout: string): Build {
  const path = resolve(checkout, 'packages/lab/dist', MODULE);
  if (!existsSync(path)) throw new Error(`${checkout} has no build of tram-lab: run npm run build`);
  return pathToFileURL(path).href as Build;
}

export async function measureTram(
  build: Build,
  job: Omit<BuildJob, 'build'>,
  signal: AbortSignal,
): Promise<ClusterFigures> {
  const loads = [job.alone, job.loaded];
  const seconds = loads.reduce((sum, load) => sum + load.warmUpSeconds + load.seconds, 0);
  const child = new ForkedProcess(`the cluster of ${fileURLToPath(build)}`, SCRIPT);
  let interrupt: (() => void) | undefined;
  const interruption = new Promise<never>((_, reject) => {
    interrupt = () => reject(signal.reason);
    signal.addEventListener('abort', interrupt);
  });
  try {
    const limitMs = (seconds + SLACK_SECONDS) * 1000;
    const figures = child.ask<ClusterFigures>('measure', { ...job, build }, limitMs);
    return await Promise.race([figures, interruption]);
  } finally {
    if (interrupt !== undefined) signal.removeEventListener('abort', interrupt);
    await child.end();
  }
}
