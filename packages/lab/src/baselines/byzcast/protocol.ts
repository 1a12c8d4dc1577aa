/** ByzCast on a tree, as a `Protocol`. */
import type { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import type { Sizes } from '../passing/network.js';
import type { Protocol } from '../passing/protocol.js';
import { ByzcastClient } from './client.js';
import { ByzcastGroup } from './group.js';

export function byzcast(overlay: Overlay, sizes: Sizes): Protocol {
  return {
    group: (group, network, observer) => new ByzcastGroup(group, overlay, network, observer),
    client: (client, network, listener) =>
      new ByzcastClient(client, sizes, overlay, network, listener),
    areLinked: (group, other) => overlay.parent(group) === other || overlay.parent(other) === group,
  };
}
