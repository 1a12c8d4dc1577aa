/** What a mutation is explored with: all of the explorer, around one copy of the protocol. */
export { formatScript, parseScript, ScriptError } from './action.js';
export { hunt } from './hunt.js';
export { narrate } from './narrate.js';
export { SCOPES } from './scopes.js';
export { Search } from './search.js';
export { reduce, replay, shorten } from './shorten.js';
export { Verification, VerificationError } from './verify.js';
