/** A client of Skeen's protocol: sends each message to all its destinations. */
import { type CallListener, Client } from '../passing/client.js';
import type { Message } from '../passing/message.js';
import type { Network, Sizes } from '../passing/network.js';
import { memberAfter } from '../passing/sets.js';

export class SkeenClient extends Client {
  constructor(
    client: number,
    sizes: Sizes,
    private readonly network: Network,
    listener: CallListener,
  ) {
    super(client, sizes, listener);
  }

  protected override enter(message: Message): void {
    const { low, high } = message;
    for (
      let group = memberAfter(low, high, -1);
      group >= 0;
      group = memberAfter(low, high, group)
    ) {
      this.network.send(group, message);
    }
  }
}
