/** What a mutation is judged by: the simulator and the stage of scripted attacks, around one copy of the protocol. */
export { simulate } from '../simulate.js';
export { Stage } from '../stage.js';
