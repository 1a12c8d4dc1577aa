/** What the build makes one script of for each hole, and one without any: the simulator around one copy of the protocol. */
export { type Failure, type Line, Run } from './run.js';
