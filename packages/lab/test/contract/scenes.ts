/** Helpers of the files promise-*.ts: the participants, and how a scene runs on the stages of a backend. */
import { availableParallelism } from 'node:os';
import type { Completion } from 'tram-multicast/internal/memory/contract.js';
import type { TestContext } from 'vitest';
import type { Backend } from './backends.js';
import { type Actor, isShared, type SharedStage, type Stage } from './stage.js';

export const OWNER = 0;
export const WRITER = 1;
export const THIRD = 2;

/** Runs a scene on every stage of a backend. */
export async function onStages(
  backend: Backend,
  scene: (stage: Stage, number: number) => Promise<void>,
): Promise<void> {
  for (let number = 0; number < backend.stages; number++) {
    await onStage(backend, number, (stage) => scene(stage, number));
  }
}

/** Runs a scene on stages where the region of a participant is out of reach while it is down. */
export async function onMachines(
  backend: Backend,
  context: TestContext,
  scene: (stage: Stage, number: number) => Promise<void>,
): Promise<void> {
  const { openOnMachines } = backend;
  if (openOnMachines === undefined) context.skip('regions are never out of reach');
  else await onStages({ ...backend, open: openOnMachines }, scene);
}

/** Runs a scene on shared memory only. */
export async function onShared(
  backend: Backend,
  context: TestContext,
  missing: string,
  scene: (stage: SharedStage) => Promise<void>,
): Promise<void> {
  if (!backend.isShared) context.skip(missing);
  await onStages(backend, async (stage) => {
    if (isShared(stage)) await scene(stage);
  });
}

/** Does `find` find a planted bug on one of the stages? */
export async function isCaught(
  backend: Backend,
  attempts: number,
  find: (stage: Stage, attempt: number) => Promise<number>,
): Promise<boolean> {
  let found = 0;
  for (let attempt = 0; attempt < attempts && found === 0; attempt++) {
    await onStage(backend, attempt, async (stage) => {
      found = await find(stage, attempt);
    });
  }
  return found > 0;
}

async function onStage(
  backend: Backend,
  number: number,
  scene: (stage: Stage) => Promise<void>,
): Promise<void> {
  const stage = await backend.open(number);
  try {
    await scene(stage);
  } catch (error) {
    if (backend.isSimulated) console.log(`on the simulated stage ${number}:`);
    throw error;
  } finally {
    await stage.close();
  }
}

/** A planted race shows only if two participants run at the same time. */
export function needsTwoCores(backend: Backend, context: TestContext): void {
  if (backend.isSimulated || availableParallelism() > 1) return;
  context.skip('a race needs two cores');
}

export async function begin(stage: Stage): Promise<[Actor, Actor]> {
  return Promise.all([stage.begin(OWNER), stage.begin(WRITER)]);
}

/** For example `1 ok`; without fire-and-forget writes. */
export function outcomes(completions: Completion[]): string[] {
  return completions.filter(({ tag }) => tag > 0).map(({ tag, outcome }) => `${tag} ${outcome}`);
}

/** Prints the figures of a real memory; those of a simulated one are always the same. */
export function tell(backend: Backend, text: string): void {
  if (!backend.isSimulated) console.log(`${backend.name}: ${text}`);
}
