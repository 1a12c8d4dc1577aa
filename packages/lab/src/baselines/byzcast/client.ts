/** A client of ByzCast: sends each message to the lowest common ancestor of its destinations. */
import type { Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { type CallListener, Client } from '../passing/client.js';
import type { Message } from '../passing/message.js';
import type { Network, Sizes } from '../passing/network.js';

export class ByzcastClient extends Client {
  constructor(
    client: number,
    sizes: Sizes,
    private readonly overlay: Overlay,
    private readonly network: Network,
    listener: CallListener,
  ) {
    super(client, sizes, listener);
  }

  protected override enter(message: Message): void {
    this.network.send(this.overlay.entryGroup(message.low, message.high), message);
  }
}
