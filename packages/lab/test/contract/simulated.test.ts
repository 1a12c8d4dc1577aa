/** The promises of `memory/contract.ts` hold on the simulated memory. */
import { simulated } from './backends.js';
import { promisesHold } from './promises.js';

promisesHold(simulated);
