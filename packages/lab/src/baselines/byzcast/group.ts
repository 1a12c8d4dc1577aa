/**
 * A group of ByzCast (Coelho et al., 2018) without failures: one process for each group. Where the groups of the original agree
 * on an order by consensus, here it is the order of arrival.
 *
 *   client ── multicast ──▶ lowest common ancestor of the destinations
 *              group ── the same ──▶ each child at or below which there is a destination
 *              group ── reply ──▶ client, if it is a destination itself
 *
 * Two messages that meet in two groups have met before in a common ancestor, and links are FIFO, so all groups deliver them in
 * the same order. A group handles each message at once; no message is ever pending.
 */
import { contains, type Overlay } from 'tram-multicast/internal/protocol/overlay.js';
import { Replies } from '../passing/client.js';
import { Kind, type Message } from '../passing/message.js';
import type { Network, Observer, Participant } from '../passing/network.js';

export class ByzcastGroup implements Participant {
  private readonly children: readonly number[];
  private readonly replies: Replies;

  constructor(
    private readonly group: number,
    private readonly overlay: Overlay,
    private readonly network: Network,
    private readonly observer: Observer,
  ) {
    this.children = overlay.children(group);
    this.replies = new Replies(network, overlay.groups);
  }

  receive(from: number, message: Message): void {
    this.check(from, message);
    this.forward(message);
    if (contains(message.low, message.high, this.group)) this.deliver(message);
    else this.observer.relayed(message);
  }

  private forward(message: Message): void {
    for (let i = 0; i < this.children.length; i++) {
      const child = this.children[i];
      if (this.overlay.reaches(child, message.low, message.high)) this.network.send(child, message);
    }
  }

  private deliver(message: Message): void {
    this.observer.delivered(message);
    this.replies.send(message.client, message.slot, message.number);
  }

  private check(from: number, message: Message): void {
    const { group, overlay } = this;
    const isFromClient = from >= overlay.groups;
    const mayCome = isFromClient
      ? overlay.entryGroup(message.low, message.high) === group
      : overlay.parent(group) === from && overlay.reaches(group, message.low, message.high);
    if (message.kind !== Kind.multicast || !mayCome) {
      throw new Error(
        `group ${group} received a message of client ${message.client} from ${from}, which must not send it`,
      );
    }
  }
}
