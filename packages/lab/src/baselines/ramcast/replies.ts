/**
 * The replies of a leader, as in TRAM: a record with a checksum in the slot that the client named, one write each, and a
 * notification after each batch. The notification is a count, because the client does not know the order of replies.
 */
import { OPEN } from 'tram-multicast/internal/memory/contract.js';
import {
  HEAD_WORDS,
  packBytes,
  seal,
  slotAt,
  type Window,
} from 'tram-multicast/internal/memory/record.js';
import { type Edges, Todo } from './edges.js';
import { REPLY, TOO_LARGE } from './layout.js';

export const REPLY_EPOCH = 1;

export class Replies {
  private readonly record: Window;
  /** The number of replies to each client, and the clients with replies since their last notification. */
  private readonly counts: Int32Array;
  private readonly written: Todo;
  private readonly callsMax: number;

  constructor(
    private readonly edges: Edges,
    private readonly group: number,
  ) {
    const { clients, callsMax, firstIndex } = edges.layout.sizes;
    this.callsMax = callsMax;
    this.record = slotAt(new Int32Array(edges.layout.replySlotWords), 0);
    this.counts = new Int32Array(clients).fill(firstIndex);
    this.written = new Todo(clients);
  }

  send(slot: number, sequence: number, reply: Uint8Array | undefined): void {
    const { memory, layout } = this.edges;
    const { record } = this;
    const client = Math.floor(slot / this.callsMax);
    let bytes = reply === undefined ? 0 : reply.length;
    if (bytes > layout.sizes.replyBytesMax) bytes = TOO_LARGE;
    record.words[HEAD_WORDS + REPLY.bytes] = bytes;
    if (bytes > 0) packBytes(reply!, record, HEAD_WORDS + REPLY.payload);
    const bodyWords = REPLY.payload + (bytes > 0 ? (bytes + 3) >> 2 : 0);
    const words = seal(record, 0, bodyWords, REPLY_EPOCH, sequence);
    const to = layout.reply(this.group, slot - client * this.callsMax);
    memory.write(layout.clientParticipant(client), to, record.words, 0, words, OPEN, 0);
    this.counts[client] = (this.counts[client] + 1) | 0;
    this.written.add(client);
  }

  /** Writes the reply count to every client with new replies. */
  notifyClients(): void {
    const { memory, layout } = this.edges;
    for (let i = 0; i < this.written.count; i++) {
      const client = this.written.at(i);
      const peer = layout.clientParticipant(client);
      memory.write(peer, layout.replied(this.group), this.counts, client, 1, OPEN, 0);
      memory.wake(peer, true);
    }
    this.written.clear();
  }
}
