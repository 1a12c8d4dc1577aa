/**
 * The promises of `memory/contract.ts` hold on shared memory, of threads and of processes. The counterparts are real threads
 * and processes, which run the built dist/. All of it is one test file, because two would compete for the same cores.
 */
import { sharedBackends } from './backends.js';
import { promisesHold } from './promises.js';

sharedBackends.forEach(promisesHold);
