/**
 * The links of this host to all others, and which connection each of them uses. Opens a link when its connection is ready
 * and loses it when the connection ends. Called by `network.ts`, `dialer.ts` and `admission.ts`.
 *
 * Our arena is registered anew for every connection, with a key that is valid as long as the connection is.
 */
import { type Arena, HOST, HOST_STATE, withHostState } from '../arena.js';
import type { Connection } from '../fabric/connection.js';
import type { Fabric } from '../fabric/fabric.js';
import type { Registration, RemoteRegion } from '../fabric/registration.js';
import { type LinkBuffers, makeBuffers } from './buffers.js';
import { CALLER } from './handshake.js';
import { Link, type LinkOwner } from './link.js';
import { type NetworkOptions, nameOfHost } from './network-options.js';
import { Parcels } from './parcels.js';

/** The provider for which parcels are made. */
const TCP = 'tcp';

export class LinkTable {
  /** By host, those of replicas first, then those of clients: undefined for ourselves. */
  readonly byHost: readonly (Link | undefined)[];
  /** By participant: the link to its host. */
  readonly byParticipant: readonly (Link | undefined)[];
  /** Those that are open. */
  readonly opened: Link[] = [];
  private readonly packs: boolean;
  private readonly byConnection = new Map<Connection, Link>();
  /** Of our arena, for connections that are open or about to be. */
  private readonly registrations = new Map<Connection, Registration>();
  /** By host: made once, and used again by its next connection. */
  private readonly buffers: (LinkBuffers | undefined)[] = [];
  /** Of hosts on this machine to which a link is open. */
  private readonly mapped = new Map<Link, Pick<Arena, 'words' | 'close'>>();

  constructor(
    private readonly options: NetworkOptions,
    private readonly fabric: Fabric,
    owner: LinkOwner,
  ) {
    const { map, self, provider = TCP } = options;
    this.packs = provider === TCP && map.parcelWords > 0;
    const count = map.hosts + map.layout.sizes.clients;
    const isSelf = (host: number): boolean => self.caller === CALLER.host && host === self.number;
    this.byHost = Array.from({ length: count }, (_, host) =>
      isSelf(host) ? undefined : new Link(host, map, options.arena, owner),
    );
    this.byParticipant = Array.from(
      { length: map.participants },
      (_, participant) => this.byHost[map.hostOf(participant)],
    );
  }

  /** How many keys to our arena are valid. */
  get keyCount(): number {
    return this.registrations.size;
  }

  /** Has another thread of this machine stored something for us? */
  get hasArrivals(): boolean {
    for (const link of this.opened) if (link.hasArrived) return true;
    return false;
  }

  get open(): Iterable<Link> {
    return this.byConnection.values();
  }

  /** Are we, together with the hosts that we are connected to, a majority of the hosts? */
  get hasMajority(): boolean {
    const { hosts } = this.options.map;
    const missing = this.byHost.slice(0, hosts).filter((link) => link?.isOpen === false);
    return 2 * missing.length < hosts;
  }

  of(connection: Connection): Link | undefined {
    return this.byConnection.get(connection);
  }

  /** Was there ever a connection to that host? */
  hasBeenOpen(host: number): boolean {
    return this.buffers[host] !== undefined;
  }

  connectionOf(link: Link): Connection | undefined {
    for (const [connection, other] of this.byConnection) if (other === link) return connection;
    return undefined;
  }

  /** Make a new key to our arena, for one connection. @param host  undefined: an observer */
  register(host: number | undefined): Registration {
    const { words, address } = this.options.arena;
    const registration = this.fabric.register(address, words.length * 4, 'remote');
    if (host !== undefined) this.byHost[host]!.prepare(registration.keyLow);
    return registration;
  }

  /** The key becomes invalid when the connection ends. */
  keep(connection: Connection, registration: Registration): void {
    this.registrations.set(connection, registration);
  }

  /** The host can be posted to from now on. @param remote  its arena  @param self  our number there */
  openLink(host: number, connection: Connection, remote: RemoteRegion, self: number): void {
    const { options } = this;
    const { parcelWords } = options.map;
    const link = this.byHost[host]!;
    this.buffers[host] ??= makeBuffers(this.fabric, options.bufferWords(host), parcelWords);
    this.byConnection.set(connection, link);
    options.arena.words[options.map.host(host) + HOST.farewell] = 0;
    const ownKeyLow = this.registrations.get(connection)?.keyLow;
    // An observer does not tell a key, so it can't get receipts.
    const route =
      this.packs && ownKeyLow !== undefined
        ? { self, ownKeyLow, mapped: this.mapArena(link, remote, self) }
        : undefined;
    link.open(connection, remote, this.buffers[host], options.nowUs(), route);
    this.opened.push(link);
    this.setState(host, HOST_STATE.running);
    options.log('info', `connected to ${nameOfHost(options, host)}`);
  }

  /** The arena of a host on this machine. @param self  our number there */
  private mapArena(link: Link, remote: RemoteRegion, self: number): Int32Array | undefined {
    const { mapArenaOf, map } = this.options;
    const arena = mapArenaOf?.(link.host);
    if (arena === undefined) return undefined;
    // The host may have begun anew meanwhile, with another arena.
    if (!Parcels.isArenaOf(arena.words, remote, map, self)) {
      arena.close();
      return undefined;
    }
    this.mapped.set(link, arena);
    return arena.words;
  }

  /** The connection has ended: what was in flight over it is lost. */
  forget(connection: Connection): void {
    this.registrations.get(connection)?.close();
    this.registrations.delete(connection);
    const link = this.byConnection.get(connection);
    this.byConnection.delete(connection);
    if (link === undefined) return;
    this.opened.splice(this.opened.indexOf(link), 1);
    this.lose(link);
  }

  private lose(link: Link): void {
    link.lose();
    this.mapped.get(link)?.close();
    this.mapped.delete(link);
  }

  /** All connections are about to end. */
  close(): void {
    for (const link of this.open) this.lose(link);
  }

  /** Has the peer said that it is about to close the connection? */
  hasSaidFarewell(host: number): boolean {
    const { map, arena } = this.options;
    return arena.words[map.host(host) + HOST.farewell] === 1;
  }

  /** The peer has ended the connection, or it broke: `hasEnded` tells participants so. */
  setEnded({ host }: Link): void {
    this.setState(host, HOST_STATE.ended);
  }

  private setState(host: number, state: number): void {
    const { map, arena } = this.options;
    const at = map.host(host) + HOST.state;
    Atomics.store(arena.words, at, withHostState(arena.words[at], state));
  }
}
