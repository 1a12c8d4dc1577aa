/** Skeen's protocol, as a `Protocol`. */
import type { Sizes } from '../passing/network.js';
import type { Protocol } from '../passing/protocol.js';
import { SkeenClient } from './client.js';
import { SkeenGroup } from './group.js';

export function skeen(sizes: Sizes): Protocol {
  return {
    group: (group, network, observer) => new SkeenGroup(group, sizes, network, observer),
    client: (client, network, listener) => new SkeenClient(client, sizes, network, listener),
    areLinked: () => true,
  };
}
