/** What a mutation is explored with: the search, around one copy of the protocol. */
export { SCOPES } from './scopes.js';
export { Search } from './search.js';
export { replay, shorten } from './shorten.js';
