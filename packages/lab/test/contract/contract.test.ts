/**
 * The promises of `memory/contract.ts`, over every memory: simulated, threads, processes and machines. On the real memories the
 * counterparts are real threads and processes, which run the built dist/.
 *
 * Participant 0 owns the region that is written to, 1 writes, 2 is a third one. The promises are in promise-*.ts, the actions
 * of participants in play-*.mjs, and the memories in backends.ts. All of it is one test file, because two would compete for the
 * same cores.
 */
import { describe } from 'vitest';
import { backends } from './backends.js';
import { promiseHints } from './promise-hints.js';
import { promiseLoss } from './promise-loss.js';
import { promiseOrder } from './promise-order.js';
import { promisePermission } from './promise-permission.js';
import { promiseRecords } from './promise-records.js';
import { promiseRestart } from './promise-restart.js';

describe.each(backends)('$name', (backend) => {
  promiseOrder(backend);
  promiseRecords(backend);
  promisePermission(backend);
  promiseLoss(backend);
  promiseRestart(backend);
  promiseHints(backend);
});
