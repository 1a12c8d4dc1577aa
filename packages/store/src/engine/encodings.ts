/** The forms in which Redis would keep values: OBJECT ENCODING names them, and tools look at them. */

import type { Stream } from './stream.js';
import type { List, Members, ScoredMembers } from './values.js';

export function encodingOfCollection(value: List | Members | ScoredMembers | Stream): string {
  switch (value.type) {
    case 'list':
      return 'quicklist';
    case 'set':
      return value.isCompact ? 'intset' : 'hashtable';
    case 'zset':
      return value.isCompact ? 'listpack' : 'skiplist';
    case 'stream':
      return 'stream';
  }
}
