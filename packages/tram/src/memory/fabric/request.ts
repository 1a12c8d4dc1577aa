/** A peer wants to connect. The handler decides at once: a request that it does not accept is rejected. */
import type { Connection } from './connection.js';
import type { SocketAddress } from './socket-address.js';

export class Request {
  private accepted: Connection | undefined;
  private answer: Uint8Array = new Uint8Array(0);

  /** @param data  of the peer's `connect`: only its length has been checked */
  constructor(
    readonly peer: SocketAddress,
    readonly data: Uint8Array,
    private readonly open: (data: Uint8Array) => Connection,
  ) {}

  /** The connection is open once the handler gets `connected`. @param data  for the peer's `connected` */
  accept(data: Uint8Array): Connection {
    this.accepted ??= this.open(data);
    return this.accepted;
  }

  /** @param data  for the peer's `refused`, which gets none without this */
  reject(data: Uint8Array): void {
    this.answer = data;
  }

  get isAccepted(): boolean {
    return this.accepted !== undefined;
  }

  /** The data of the rejection. */
  get rejection(): Uint8Array {
    return this.answer;
  }
}
