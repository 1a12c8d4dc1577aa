/** Where the keys of most commands are. */

import type { KeyRange } from './spec.js';

export const ONE_KEY: KeyRange = { first: 1, last: 1, step: 1 };
export const TWO_KEYS: KeyRange = { first: 1, last: 2, step: 1 };
/** All arguments are keys. */
export const ALL_KEYS: KeyRange = { first: 1, last: -1, step: 1 };
/** Each key is followed by its value. */
export const KEYS_WITH_VALUES: KeyRange = { first: 1, last: -1, step: 2 };
/** Keys up to a last argument that is none. */
export const KEYS_BEFORE_LAST: KeyRange = { first: 1, last: -2, step: 1 };
