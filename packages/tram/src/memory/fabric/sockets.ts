/**
 * The sockets of the provider `tcp`. libfabric does not expose them, so they are searched among all descriptors of this
 * process. Other providers have none.
 */
import { readdirSync } from 'node:fs';
import type { NativeFunction } from '../koffi.js';
import { CONSTANTS, FIELDS, SIZES } from './binary-interface.js';
import { Block } from './block.js';
import type { Libfabric } from './libfabric.js';
import { describe, readSocketAddress, type SocketAddress } from './socket-address.js';

/** The socket of one connection. */
export interface Socket {
  /** Hold back what is sent from now on. */
  cork(): void;
  /** Send what was held back, in as few packets as possible. */
  uncork(): void;
}

const { SOL_SOCKET, SO_ACCEPTCONN, SO_RCVTIMEO, IPPROTO_TCP, SHUT_RDWR } = CONSTANTS;

/** Layout of the block of arguments: two values, a length, and an address. */
const VALUE = 0;
const SECOND_VALUE = 8;
const LENGTH = 16;
const ADDRESS = 24;

const OUT_OF_DESCRIPTORS = new Set<string | undefined>(['EMFILE', 'ENFILE']);

export class Sockets {
  private readonly block: Block;
  private readonly getOption: NativeFunction;
  private readonly setOption: NativeFunction;
  private readonly getName: NativeFunction;
  private readonly getPeer: NativeFunction;
  private readonly shut: NativeFunction;
  private readonly descriptorsMax: NativeFunction;

  constructor({ koffi, system }: Libfabric) {
    this.block = new Block(koffi, ADDRESS + SIZES.sockaddr_in);
    const pointer = 'uintptr_t';
    this.getOption = system.func('getsockopt', 'int', ['int', 'int', 'int', pointer, pointer]);
    this.setOption = system.func('setsockopt', 'int', ['int', 'int', 'int', pointer, 'uint32_t']);
    this.getName = system.func('getsockname', 'int', ['int', pointer, pointer]);
    this.getPeer = system.func('getpeername', 'int', ['int', pointer, pointer]);
    this.shut = system.func('shutdown', 'int', ['int', 'int']);
    this.descriptorsMax = system.func('getdtablesize', 'int', []);
  }

  /** Descriptors of IPv4 sockets by their local address. */
  find(isWanted: (own: SocketAddress) => boolean): number[] {
    return this.descriptors().filter((descriptor) => {
      const own = this.addressBy(this.getName, descriptor);
      return own !== undefined && isWanted(own);
    });
  }

  private descriptors(): number[] {
    try {
      return readdirSync('/proc/self/fd').map(Number);
    } catch (error) {
      if (!OUT_OF_DESCRIPTORS.has((error as NodeJS.ErrnoException).code)) throw error;
      // Reading the directory takes a descriptor. If none is left, nearly all possible ones are in use.
      return Array.from({ length: this.descriptorsMax() }, (_, descriptor) => descriptor);
    }
  }

  /** The socket of the connection between two addresses, if there is one. */
  between(own: SocketAddress, peer: SocketAddress): Socket | undefined {
    const descriptor = this.find((address) => describe(address) === describe(own)).find((each) => {
      const other = this.peerOf(each);
      return other !== undefined && describe(other) === describe(peer);
    });
    if (descriptor === undefined) return undefined;
    return {
      cork: () => this.set(descriptor, CONSTANTS.TCP_CORK, 1),
      uncork: () => this.set(descriptor, CONSTANTS.TCP_CORK, 0),
    };
  }

  peerOf(descriptor: number): SocketAddress | undefined {
    return this.addressBy(this.getPeer, descriptor);
  }

  isListening(descriptor: number): boolean {
    const { block } = this;
    block.setWord(LENGTH, 4);
    const value = block.address + VALUE;
    this.getOption(descriptor, SOL_SOCKET, SO_ACCEPTCONN, value, block.address + LENGTH);
    return block.getWord(VALUE) === 1;
  }

  /** @param option  of level IPPROTO_TCP */
  set(descriptor: number, option: number, value: number): void {
    const { block } = this;
    block.setWord(VALUE, value);
    this.setOption(descriptor, IPPROTO_TCP, option, block.address + VALUE, 4);
  }

  /** A blocking read gives up after so long without data. */
  setReadTimeout(descriptor: number, us: number): void {
    const { block } = this;
    block.setWide(VALUE, Math.floor(us / 1e6));
    block.setWide(SECOND_VALUE, us % 1e6);
    this.setOption(descriptor, SOL_SOCKET, SO_RCVTIMEO, block.address + VALUE, 16);
  }

  /** End the connection in both directions. */
  shutDown(descriptor: number): void {
    this.shut(descriptor, SHUT_RDWR);
  }

  private addressBy(get: NativeFunction, descriptor: number): SocketAddress | undefined {
    const { block } = this;
    block.setWord(LENGTH, SIZES.sockaddr_in);
    if (get(descriptor, block.address + ADDRESS, block.address + LENGTH) !== 0) return undefined;
    const bytes = block.bytes.subarray(ADDRESS);
    const isIPv4 = bytes[FIELDS.sockaddr_in.sin_family] === CONSTANTS.AF_INET;
    return isIPv4 ? readSocketAddress(bytes) : undefined;
  }
}
