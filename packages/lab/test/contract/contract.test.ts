/**
 * The promises of `memory/contract.ts` hold on every real memory: threads, processes and machines. The counterparts are real
 * threads and processes, which run the built dist/. All of it is one test file, because two would compete for the same cores.
 */
import { realBackends } from './backends.js';
import { promisesHold } from './promises.js';

realBackends.forEach(promisesHold);
