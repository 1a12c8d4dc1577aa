/**
 * The network interface of one host: it owns all objects of libfabric, and one thread uses it.
 *
 * Nothing makes progress unless `poll` is called: it sends, receives, serves what peers read and write, and calls the
 * handler. Only `wait` blocks. A peer that hangs, or a network that drops everything, is not detected here: the caller
 * needs timeouts of its own, and closes the connection.
 */
import { TramError } from '../../errors.js';
import { CONSTANTS, FIELDS, SIZES } from './binary-interface.js';
import { Block } from './block.js';
import type { Calls } from './calls.js';
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
  /** The IPv4 address of this machine at which we listen and from which we connect. */
  readonly address: string;
  /** libfabric's name of the provider. `tcp` is tested; `verbs` is supported in principle, but untested. */
  readonly provider?: string;
}

/**
 * Reading the event queue costs as much as reading the completion queue, a third of a microsecond. While no connection is
 * being established, events are only ends of connections and new requests, which are not urgent: so the event queue is
 * read less often.
 */
const POLLS_PER_EVENT_READ = 64;
/** The limit of the data that goes with `connect`, `accept` and `reject`: that of `tcp`. The limit of `verbs` is 56. */
const DATA_BYTES_MAX = 256;

const { FI_TRANSMIT, FI_RECV, FI_SELECTIVE_COMPLETION } = CONSTANTS;

export class Fabric {
  /** How many extents one operation can have. */
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
  /** Arguments of `connect`, `accept` and `reject`: an address, and data. */
  private readonly target: Block;
  private readonly data: Block;
  /** Close what was opened, in the order of opening. */
  private readonly closers: (() => void)[] = [];
  private pollsUntilEventRead = 0;

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
      this.closers.push(() => this.waiting.close());
    } catch (error) {
      this.close();
      throw error;
    }
  }

  static open(options: FabricOptions): Fabric {
    return new Fabric(options);
  }

  /** Accept connections from now on. @param port  0: any free one  @returns the port */
  listen(port: number): number {
    if (this.listener !== undefined) throw new Error('it listens already');
    const { library, fabric, information, events, sockets, address: host } = this;
    const info = information.address;
    this.listener = new Listener(library, fabric, info, events.handle, sockets, { host, port });
    this.segments.align();
    return this.listener.port;
  }

  /**
   * Connect to a listener. The handler gets `connected` or `refused`.
   *
   * @param host  an IPv4 address
   * @param data  for the peer's `requested`
   * @throws if this machine has lost its address, or has no descriptors left
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
    // Some networks refuse at once: the next poll reports it like any other refusal.
    if (code < 0) this.connections.markBroken(connection, code);
    return connection;
  }

  /**
   * Register memory outside of the heap, which must not move. Local access is for operations that we post; with remote
   * access peers that know the key, which is random and new, can read and write the memory too.
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

  /** Make progress, and tell the handler what has happened. @returns how many completions and events there were */
  poll(handler: FabricHandler): number {
    const { connections } = this;
    connections.handler = handler;
    connections.calls.poll++;
    let count = this.completions.read();
    if (this.pollsUntilEventRead-- <= 0 || connections.connecting > 0) {
      this.pollsUntilEventRead = POLLS_PER_EVENT_READ;
      count += this.events.read();
    }
    return count + connections.reportBroken();
  }

  /** So far. */
  get calls(): Readonly<Calls> {
    return this.connections.calls;
  }

  /** What another thread writes to (`wake`) to end a `wait`. */
  get wakeDescriptor(): number {
    return this.waiting.wakeDescriptor;
  }

  /** Sleep until `poll` has something to do, another thread wakes us, or the time is over. May return early. */
  wait(timeoutUs: number): void {
    if (this.connections.hasBroken) return;
    this.pollsUntilEventRead = 0;
    this.connections.calls.wait++;
    this.waiting.wait(timeoutUs);
  }

  /**
   * Disconnect peers that connected before the last call of this and have not been accepted since. All they could do is
   * to hold descriptors. To be called every few seconds.
   */
  closeUnauthenticated(): void {
    this.listener?.closeUnauthenticated(this.connections.peers);
  }

  /** Close all connections and registrations. The handler is not called any more. */
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
    // The peer has closed its end meanwhile.
    if (code < 0) this.connections.markBroken(connection, code);
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

  /** `close` closes this object of libfabric. */
  private keep(object: number): number {
    this.closers.push(() => this.library.close(object));
    return object;
  }
}
