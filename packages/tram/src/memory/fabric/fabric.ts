/**
 * The network of one host: everything that libfabric makes for it, used by one thread.
 *
 * Nothing happens unless `poll` is called: it sends, receives, serves what peers read and write, and tells the
 * handler. Nothing blocks but `wait`. A peer that hangs, or a network that swallows everything, is not told of:
 * who waits must have a patience of its own, and `close` the connection.
 */
import { TramError } from '../../errors.js';
import { CONSTANTS, FIELDS, SIZES } from './binary-interface.js';
import { Block } from './block.js';
import { CompletionQueue } from './completion-queue.js';
import type { Connection } from './connection.js';
import { Connections } from './connections.js';
import { EventQueue } from './event-queue.js';
import { Extents } from './extents.js';
import type { FabricHandler } from './handler.js';
import { findInformation, type Information } from './information.js';
import { type Libfabric, libfabric } from './libfabric.js';
import { Listener } from './listener.js';
import { type Access, type Registration, register } from './registration.js';
import { Request } from './request.js';
import { Segments } from './segments.js';
import {
  addressError,
  putSocketAddress,
  readSocketAddress,
  type SocketAddress,
} from './socket-address.js';
import { Sockets } from './sockets.js';
import { Waiting } from './waiting.js';

export interface FabricOptions {
  /** The IPv4 address of this host that we listen at and connect from. */
  readonly address: string;
  /** As libfabric calls it. `verbs` is prepared for and untried. */
  readonly provider?: string;
}

/**
 * A look at the events costs as much as one at the completions, a third of a microsecond. While nothing is being
 * connected, events are the ends of connections and requests of new ones: not urgent.
 */
const POLLS_PER_LOOK = 64;
/** What goes with `connect`, `accept` and `reject`. The limit of `tcp`; that of `verbs` is 56. */
const DATA_BYTES_MAX = 256;

const { FI_TRANSMIT, FI_RECV, FI_SELECTIVE_COMPLETION } = CONSTANTS;

export class Fabric {
  /** How many extents one `write` or `read` can have. */
  readonly extentsMax: number;
  private readonly address: string;
  private readonly library: Libfabric;
  private readonly information: Information;
  private readonly fabric: number;
  private readonly domain: number;
  private readonly completions: CompletionQueue;
  private readonly events: EventQueue;
  private readonly waiting: Waiting;
  private readonly connections: Connections;
  private readonly sockets: Sockets;
  private readonly segments: Segments;
  private readonly registrations = new Set<Registration>();
  private listener: Listener | undefined;
  /** For what `connect`, `accept` and `reject` take. */
  private readonly target: Block;
  private readonly data: Block;
  /** How to close what was opened, from the first to the last. */
  private readonly closers: (() => void)[] = [];
  private pollsUntilLook = 0;

  private constructor({ address, provider = 'tcp' }: FabricOptions) {
    const library = libfabric();
    this.library = library;
    this.address = address;
    this.target = new Block(library.koffi, SIZES.sockaddr_in);
    this.data = new Block(library.koffi, DATA_BYTES_MAX);
    this.sockets = new Sockets(library);
    this.connections = new Connections(library, this.sockets);
    this.segments = new Segments(this.sockets, address);
    try {
      this.information = findInformation(library, provider, address);
      const info = this.information.address;
      this.closers.push(() => library.freeInfo(info));
      this.extentsMax = this.information.extentsMax;
      this.fabric = this.keep(library.makeFabric(info));
      this.domain = this.keep(library.open('openDomain', this.fabric, info));
      this.events = new EventQueue(library, this.fabric, this.connections, (info, data) =>
        this.answer(info, data),
      );
      this.keep(this.events.handle);
      this.completions = new CompletionQueue(library, this.domain, this.connections);
      this.keep(this.completions.handle);
      this.waiting = new Waiting(library, this.fabric, this.completions.handle, this.events.handle);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  static open(options: FabricOptions): Fabric {
    return new Fabric(options);
  }

  /** Let others connect. @param port  0: any that is free. @returns the port */
  listen(port: number): number {
    if (this.listener !== undefined) throw new Error('it listens already');
    const { library, fabric, information, events, sockets, address: host } = this;
    const info = information.address;
    this.listener = new Listener(library, fabric, info, events.handle, sockets, { host, port });
    this.segments.align();
    return this.listener.port;
  }

  /**
   * Connect to who listens there. The handler hears how it went.
   *
   * @param host  an IPv4 address
   * @param data  for the peer's `requested`
   * @throws if nothing can be sent at all: this machine has lost its address, or has no descriptors left
   */
  connect(host: string, port: number, data: Uint8Array): Connection {
    const peer = { host, port };
    putSocketAddress(this.target.bytes, peer);
    const bytes = this.putData(data);
    const endpoint = this.openEndpoint(this.information.address);
    try {
      this.segments.align();
    } catch (error) {
      this.library.close(endpoint);
      throw error;
    }
    const connect = this.library.operation('connect', endpoint);
    const code = connect(endpoint, this.target.address, this.data.address, bytes);
    const connection = this.connections.add(endpoint, peer);
    // Some networks say so at once: it is told like all other refusals.
    if (code < 0) this.connections.breakOff(connection, code);
    return connection;
  }

  /**
   * Let libfabric use memory outside of the heap that stays where it is: for what we post, and with `remote` also
   * for who knows the key, which is random and new.
   */
  register(address: number, bytes: number, access: Access): Registration {
    const { library, domain, information } = this;
    const registration = register(
      library,
      domain,
      information.memoryMode,
      address,
      bytes,
      access,
      () => this.registrations.delete(registration),
    );
    this.registrations.add(registration);
    return registration;
  }

  createExtents(): Extents {
    return new Extents(this.library, this.extentsMax);
  }

  /** Do what is to be done, and tell of what has happened. @returns how much that was */
  poll(handler: FabricHandler): number {
    const { connections } = this;
    connections.handler = handler;
    let count = this.completions.read();
    if (this.pollsUntilLook-- <= 0 || connections.connecting > 0) {
      this.pollsUntilLook = POLLS_PER_LOOK;
      count += this.events.read();
    }
    return count + connections.tellBreaks();
  }

  /** Sleep until there is something for `poll`, or the time is over. May also return for no reason. */
  wait(timeoutUs: number): void {
    if (this.connections.hasBreaks) return;
    this.pollsUntilLook = 0;
    this.waiting.wait(timeoutUs);
  }

  /**
   * End those who have called us and made no proper request since the last call of this: some seconds should be
   * between two. They could do no harm but hold descriptors.
   */
  endStrangers(): void {
    this.listener?.endStrangers(this.connections.peers);
  }

  /** End all connections and registrations. Nothing is told any more. */
  close(): void {
    this.connections.closeAll();
    for (const registration of this.registrations) registration.close();
    this.listener?.close();
    this.listener = undefined;
    for (const close of this.closers.splice(0).reverse()) close();
  }

  private answer(info: number, data: Uint8Array): void {
    const { library } = this;
    const peer = this.readPeer(library.pointer(info + FIELDS.fi_info.dest_addr));
    const request = new Request(peer, data, (answer) => this.accept(info, peer, answer));
    try {
      this.connections.handler.requested(request);
    } finally {
      if (!request.isAccepted) this.reject(info, request.rejection);
      library.freeInfo(info);
    }
  }

  private readPeer(address: number): SocketAddress {
    const { library, target } = this;
    for (let at = 0; at < SIZES.sockaddr_in; at += 4)
      target.setWord(at, library.word(address + at));
    return readSocketAddress(target.bytes);
  }

  private reject(info: number, data: Uint8Array): void {
    const bytes = this.putData(data);
    const request = this.library.pointer(info + FIELDS.fi_info.handle);
    this.listener?.reject(request, this.data, bytes);
  }

  private accept(info: number, peer: SocketAddress, data: Uint8Array): Connection {
    const bytes = this.putData(data);
    const endpoint = this.openEndpoint(info);
    const accept = this.library.operation('accept', endpoint);
    const code = accept(endpoint, this.data.address, bytes);
    const connection = this.connections.add(endpoint, peer);
    // The peer has gone meanwhile.
    if (code < 0) this.connections.breakOff(connection, code);
    return connection;
  }

  private openEndpoint(info: number): number {
    const { library, domain } = this;
    const endpoint = library.open('openEndpoint', domain, info, (code) =>
      addressError(library, `connect from ${this.address}`, code),
    );
    try {
      library.bind(endpoint, this.events.handle, 0);
      library.bind(endpoint, this.completions.handle, FI_TRANSMIT + FI_SELECTIVE_COMPLETION);
      library.bind(endpoint, this.completions.handle, FI_RECV + FI_SELECTIVE_COMPLETION);
      const enable = library.operation('control', endpoint);
      library.check(enable(endpoint, CONSTANTS.FI_ENABLE, 0), "libfabric can't enable an endpoint");
      return endpoint;
    } catch (error) {
      library.close(endpoint);
      throw error;
    }
  }

  private putData(data: Uint8Array): number {
    if (data.length > DATA_BYTES_MAX) {
      throw new TramError(
        'TRAM_INVALID_ARGUMENT',
        `At most ${DATA_BYTES_MAX} bytes go with a connection, and not ${data.length}.`,
      );
    }
    this.data.bytes.set(data);
    return data.length;
  }

  /** Close it when everything is closed. */
  private keep(object: number): number {
    this.closers.push(() => this.library.close(object));
    return object;
  }
}
