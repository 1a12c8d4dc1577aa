/** Somebody wants to connect. Whoever hears of it decides at once: what is not accepted is rejected. */
import type { Connection } from './connection.js';
import type { SocketAddress } from './socket-address.js';

export class Request {
  private accepted: Connection | undefined;
  private answer: Uint8Array = new Uint8Array(0);

  /** @param data  as the peer gave it to `connect`: nothing is known of it but its length */
  constructor(
    readonly peer: SocketAddress,
    readonly data: Uint8Array,
    private readonly open: (data: Uint8Array) => Connection,
  ) {}

  /** The connection can be used when `connected` tells of it. @param data  for the peer's `connected` */
  accept(data: Uint8Array): Connection {
    this.accepted ??= this.open(data);
    return this.accepted;
  }

  /** Without this, the peer's `refused` has no data. */
  reject(data: Uint8Array): void {
    this.answer = data;
  }

  get isAccepted(): boolean {
    return this.accepted !== undefined;
  }

  /** What a rejection tells. */
  get rejection(): Uint8Array {
    return this.answer;
  }
}
