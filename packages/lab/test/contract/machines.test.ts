/**
 * The promises of `memory/contract.ts` hold across machines, and between hosts of one machine. The counterparts are processes
 * that run the built dist/. They mostly wait for the network, and for libfabric to load.
 */
import { describe } from 'vitest';
import { machines, oneMachine } from './backends.js';
import { promisesHold } from './promises.js';

describe.skipIf(process.platform !== 'linux')('on Linux', () => {
  promisesHold(machines);
  promisesHold(oneMachine);
});
