/** All experiments, in the order of the paper, then those beyond it. */
import type { Experiment } from '../experiment.js';
import { adjacent, random } from './destinations.js';
import { failover } from './failover.js';
import { machines } from './machines.js';
import { passing } from './passing.js';
import { payload } from './payload.js';
import { replication } from './replication.js';
import { scaling } from './scaling.js';
import { writeLatency } from './write-latency.js';

export const EXPERIMENTS: readonly Experiment[] = [
  writeLatency,
  random,
  adjacent,
  payload,
  replication,
  passing,
  failover,
  scaling,
  machines,
];
