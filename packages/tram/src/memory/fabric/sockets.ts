/**
 * The sockets of the provider `tcp`. libfabric does not tell them, so they are looked for among all descriptors of
 * this process. Other providers have none, and then there is nothing to do.
 */
import { readdirSync } from 'node:fs';
import type { NativeFunction } from '../koffi.js';
import { CONSTANTS, FIELDS, SIZES } from './binary-interface.js';
import { Block } from './block.js';
import type { Libfabric } from './libfabric.js';
import { describe, readSocketAddress, type SocketAddress } from './socket-address.js';

/** That of one connection. */
export interface Socket {
  /** Keep what is sent from now on … */
  hold(): void;
  /** … until now: it goes in as few packets as it fits into. */
  release(): void;
}

const { SOL_SOCKET, SO_ACCEPTCONN, SO_RCVTIMEO, IPPROTO_TCP, SHUT_RDWR } = CONSTANTS;

/** The block: a value or two, a length, and an address. */
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

  /** Descriptors of sockets whose own address is like this. */
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
      // To look takes one. If there is none left, nearly all that there can be are in use.
      return Array.from({ length: this.descriptorsMax() }, (_, descriptor) => descriptor);
    }
  }

  between(own: SocketAddress, peer: SocketAddress): Socket | undefined {
    const descriptor = this.find((address) => describe(address) === describe(own)).find((each) => {
      const other = this.peerOf(each);
      return other !== undefined && describe(other) === describe(peer);
    });
    if (descriptor === undefined) return undefined;
    return {
      hold: () => this.set(descriptor, CONSTANTS.TCP_CORK, 1),
      release: () => this.set(descriptor, CONSTANTS.TCP_CORK, 0),
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

  /** @param option  one of those of TCP */
  set(descriptor: number, option: number, value: number): void {
    const { block } = this;
    block.setWord(VALUE, value);
    this.setOption(descriptor, IPPROTO_TCP, option, block.address + VALUE, 4);
  }

  /** A read that brings nothing ends after so long. */
  limitReads(descriptor: number, us: number): void {
    const { block } = this;
    block.setWide(VALUE, Math.floor(us / 1e6));
    block.setWide(SECOND_VALUE, us % 1e6);
    this.setOption(descriptor, SOL_SOCKET, SO_RCVTIMEO, block.address + VALUE, 16);
  }

  /** Both sides see the end of the connection. */
  end(descriptor: number): void {
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
