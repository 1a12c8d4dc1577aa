/**
 * What `memory/contract.ts` promises, each promise once, over every memory: simulated, threads, processes
 * and hosts. On the real ones the counterparts are real threads and processes, which run the built dist/.
 *
 * Process 0 owns what is written to, 1 writes, 2 is a third one. The promises are in promise-*.ts, what
 * the processes do in play-*.mjs, and how they are run in backends.ts. All of it is one test file, because
 * two would race for the same cores.
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
