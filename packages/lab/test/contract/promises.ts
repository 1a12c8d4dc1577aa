/**
 * The promises of `memory/contract.ts`, for one memory. Called by `contract.test.ts`, `machines.test.ts` and
 * `simulated.test.ts`.
 *
 * Participant 0 owns the region that is written to, 1 writes, 2 is a third one. The promises are in promise-*.ts, the actions
 * of participants in play-*.mjs, and the memories in backends.ts.
 */
import { describe } from 'vitest';
import type { Backend } from './backends.js';
import { promiseHints } from './promise-hints.js';
import { promiseLoss } from './promise-loss.js';
import { promiseOrder } from './promise-order.js';
import { promisePermission } from './promise-permission.js';
import { promiseRecords } from './promise-records.js';
import { promiseRestart } from './promise-restart.js';

export function promisesHold(backend: Backend): void {
  describe(backend.name, () => {
    promiseOrder(backend);
    promiseRecords(backend);
    promisePermission(backend);
    promiseLoss(backend);
    promiseRestart(backend);
    promiseHints(backend);
  });
}
