/**
 * The connections of one host, or of one client, to all others. One thread owns it: it calls `poll` before it works,
 * `flush` after, and `wait` when there is nothing to do.
 *
 * - `dialer.ts` dials hosts, `admission.ts` accepts calls; both authenticate the peer (`handshake.ts`).
 * - `link-table.ts` keeps a link to every host, open or not. What is posted goes over links (`link.ts`).
 * - After a connection has ended, dialing begins anew, with new keys.
 */
import { HOST } from '../arena.js';
import type { ParticipantId } from '../contract.js';
import type { Calls } from '../fabric/calls.js';
import type { Connection } from '../fabric/connection.js';
import { Fabric } from '../fabric/fabric.js';
import type { FabricHandler } from '../fabric/handler.js';
import type { Request } from '../fabric/request.js';
import { Admission } from './admission.js';
import { Dialer } from './dialer.js';
import { CALLER, Handshake, type Welcome } from './handshake.js';
import { KnownHosts, NO_ADDRESSES } from './known-hosts.js';
import type { Link, LinkOwner } from './link.js';
import { LinkTable } from './link-table.js';
import { MachinesMemory } from './machines-memory.js';
import { type NetworkOptions, nameOfHost } from './network-options.js';

/**
 * Non-urgent writes are batched for up to 1 ms: what followers learn to be decided, and the copies that a client leaves
 * with them in case their leader fails.
 */
const BATCH_US = 1000;
/** How often timeouts are checked. */
const CHECK_US = 5000;
/** How often unauthenticated peers are disconnected. */
const UNAUTHENTICATED_US = 5_000_000;

export class Network implements FabricHandler, LinkOwner {
  /** Where we listen; 0 if we do not. */
  readonly port: number;
  private readonly fabric: Fabric;
  private readonly knownHosts: KnownHosts;
  private readonly table: LinkTable;
  private readonly dialer: Dialer;
  private readonly admission: Admission;
  /** Links with something to send. */
  private readonly scheduled: Link[] = [];
  private checkedUs = 0;
  private hasLostHost = false;
  private closedUnauthenticatedUs = 0;
  private patienceUs: number;

  constructor(private readonly options: NetworkOptions) {
    const { map, arena, address, port, provider } = options;
    const { self, addresses = NO_ADDRESSES } = options;
    this.patienceUs = options.patienceUs;
    const handshake = new Handshake(options.secret, options.digest, self.number);
    this.fabric = Fabric.open({ address, ...(provider !== undefined && { provider }) });
    this.port = port === undefined ? 0 : this.fabric.listen(port);
    this.knownHosts = new KnownHosts(arena.words, map, self.number, addresses);
    this.table = new LinkTable(options, this.fabric, this);
    const { knownHosts, table, fabric } = this;
    const onOpen = (host: number): void => this.exchange(host);
    const close = (connection: Connection): void => this.closeConnection(connection);
    this.dialer = new Dialer(options, handshake, table, knownHosts, fabric, onOpen);
    this.admission = new Admission(options, handshake, table, knownHosts, close, onOpen);
  }

  /** The memory of a participant of this host. */
  memory(participant: ParticipantId): MachinesMemory {
    const { arena, map } = this.options;
    return new MachinesMemory(participant, arena, map, this.linkOf);
  }

  // --- who is connected ------------------------------------------------------------------------

  /** By host, clients after the hosts of replicas: undefined for ourselves. */
  get links(): readonly (Link | undefined)[] {
    return this.table.byHost;
  }

  /** By participant: the link to its host, undefined for our own. */
  get linkOf(): readonly (Link | undefined)[] {
    return this.table.byParticipant;
  }

  /** Has the connection to a host of replicas ended since the last call? Its replicas may have to be replaced at once. */
  takeLostHost(): boolean {
    const { hasLostHost } = this;
    this.hasLostHost = false;
    return hasLostHost;
  }

  isConnected(host: number): boolean {
    return this.links[host]?.isOpen === true;
  }

  /** Hosts of replicas, other than ours, to which we are not connected. */
  missingHosts(): number[] {
    const hosts = Array.from({ length: this.options.map.hosts }, (_, host) => host);
    return hosts.filter((host) => this.links[host]?.isOpen === false);
  }

  /** Why we are not connected to a host that we dial, if we have tried. */
  complaintOf(host: number): string | undefined {
    return this.dialer.of(host)?.complaint || undefined;
  }

  /** One of `REFUSAL` if that host has refused us, else 0. */
  refusalOf(host: number): number {
    return this.dialer.of(host)?.refusal ?? 0;
  }

  /** The slot that a new client was assigned, once it was. */
  get slot(): Welcome | undefined {
    return this.dialer.slot;
  }

  /**
   * What the other hosts remember of us, who have no memory:
   *
   * - `lost`: we have run our replicas with this revision of the configuration.
   * - `replaced`: we have, with an older one only, so this may be another machine than before. All hosts are connected
   *   and have our revision.
   * - `none`: we have never run our replicas. All hosts are connected and have our revision.
   *
   * Undefined as long as none of this is certain.
   */
  get past(): 'lost' | 'replaced' | 'none' | undefined {
    const { areRemembered, areRememberedLately, differentHosts } = this.knownHosts;
    if (areRememberedLately) return 'lost';
    if (this.missingHosts().length > 0 || differentHosts.length > 0) return undefined;
    return areRemembered ? 'replaced' : 'none';
  }

  /** The hosts that have another revision of the configuration than we have. */
  differentHosts(): number[] {
    return this.knownHosts.differentHosts;
  }

  /** Demand of all hosts that they refuse hosts with an older revision than ours. */
  refuseOlder(): void {
    this.knownHosts.demandOurs();
  }

  /** Do all hosts refuse hosts with an older revision than ours from now on? */
  get areOlderRefused(): boolean {
    return this.missingHosts().length === 0 && this.knownHosts.isOursDemanded;
  }

  /** Tell all hosts that we run our replicas, also those that connect later. Those of another era are disconnected. */
  announce(): void {
    this.knownHosts.begin();
    this.disconnectOutdated();
    for (const link of this.openHosts()) this.knownHosts.publish(link);
  }

  /** After `announce`: do all hosts remember that we run our replicas? */
  get isAnnounced(): boolean {
    return this.missingHosts().length === 0 && this.isSettled;
  }

  /** Tell all hosts that we are about to close our connections in order. */
  sayFarewell(): void {
    const at = this.options.map.host(this.dialer.ownHost) + HOST.farewell;
    for (const link of this.links) link?.writeWords(at, Int32Array.of(1));
  }

  /** The highest era that another host has run its replicas in, as far as we know. */
  get newestEra(): number {
    return this.knownHosts.newestEra;
  }

  /** From now on, disconnect peers that owe us an answer for longer than this. By default, it is as in the options. */
  setPatience(us: number = this.options.patienceUs): void {
    this.patienceUs = us;
  }

  /** Has that host told us that it is about to close its connection? */
  hasSaidFarewell(host: number): boolean {
    return this.table.hasSaidFarewell(host);
  }

  /** Has everything that was posted over open links been sent, confirmed and reported? */
  get isSettled(): boolean {
    return this.links.every((link) => link === undefined || !link.isOpen || link.isSettled);
  }

  /** What we hold for peers, to see that nothing is left behind: accepted peers, and valid keys to our arena. */
  get holdings(): { readonly acceptedPeers: number; readonly keys: number } {
    return { acceptedPeers: this.admission.peerCount, keys: this.table.keyCount };
  }

  /** What was asked of libfabric so far. */
  get calls(): Readonly<Calls> {
    return this.fabric.calls;
  }

  // --- what its thread calls -------------------------------------------------------------------

  /**
   * Let the network make progress, and report outcomes to the memories of our participants.
   *
   * @returns whether a peer has got something that it was waiting for: it will probably ask for more
   */
  poll(nowUs: number): boolean {
    this.fabric.poll(this);
    this.admission.takeGreetings();
    const wasAwaited = this.exchangeParcels(nowUs);
    if (this.knownHosts.awaitsRecords) this.disconnectOutdated();
    if (nowUs - this.checkedUs >= CHECK_US) this.check(nowUs);
    return wasAwaited;
  }

  /**
   * Send what was posted, first where an outcome is awaited.
   *
   * @param batchUs  for how long non-urgent writes are batched
   */
  flush(nowUs: number, batchUs = BATCH_US): void {
    const { scheduled } = this;
    if (scheduled.length === 0) return;
    for (const link of scheduled) if (link.isAwaited) link.flush(nowUs, batchUs);
    let left = 0;
    for (const link of scheduled) if (link.flush(nowUs, batchUs)) scheduled[left++] = link;
    while (scheduled.length > left) scheduled.pop();
  }

  /** What another thread of this process writes to (`fabric/waiting.ts`) to end a `wait`. */
  get wakeDescriptor(): number {
    return this.fabric.wakeDescriptor;
  }

  /** Sleep until something arrives or the time is over. Batched writes should have been flushed before. */
  wait(timeoutUs: number): void {
    const { mapArenaOf, arena, map, self } = this.options;
    if (mapArenaOf === undefined) {
      this.fabric.wait(timeoutUs);
      return;
    }
    // What other threads of this machine store ends no sleep, so they must know of it, and nothing may be there already.
    const sleeps = map.host(self.number) + HOST.sleeps;
    Atomics.store(arena.words, sleeps, 1);
    if (!this.table.hasArrivals) this.fabric.wait(timeoutUs);
    Atomics.store(arena.words, sleeps, 0);
  }

  close(): void {
    this.table.close();
    this.fabric.close();
  }

  private exchangeParcels(nowUs: number): boolean {
    const { opened } = this.table;
    let wasAwaited = false;
    // A link may be abandoned meanwhile.
    for (let i = opened.length - 1; i >= 0; i--) {
      if (opened[i].exchange(nowUs)) wasAwaited = true;
    }
    return wasAwaited;
  }

  /** Everything that has a timeout. */
  private check(nowUs: number): void {
    this.checkedUs = nowUs;
    if (this.options.self.caller === CALLER.host) this.followHosts();
    for (const link of [...this.table.open]) {
      if (link.silentUs(nowUs) > this.patienceUs) this.abandon(link, 'it does not answer');
      else link.probe(nowUs);
    }
    this.dialer.run(nowUs);
    this.admission.closeUngreeted(nowUs);
    if (nowUs - this.closedUnauthenticatedUs >= UNAUTHENTICATED_US) {
      this.closedUnauthenticatedUs = nowUs;
      this.fabric.closeUnauthenticated();
    }
  }

  private exchange(host: number): void {
    this.disconnectOutdated();
    this.knownHosts.exchange(this.links[host]!);
  }

  /** Disconnect hosts that are outdated now, and only then publish that we refuse them. */
  private followHosts(): void {
    this.disconnectOutdated();
    for (const link of this.openHosts()) {
      if (this.knownHosts.mustPublish(link.host)) this.knownHosts.publish(link);
    }
  }

  private disconnectOutdated(): void {
    this.knownHosts.adopt();
    for (const link of this.openHosts()) {
      if (!this.knownHosts.isOutdated(link.host)) continue;
      this.abandon(link, 'its memory or revision is outdated, or it runs in another era');
    }
  }

  /** The links to hosts of replicas that are open. */
  private openHosts(): Link[] {
    return [...this.table.open].filter(({ host }) => host < this.options.map.hosts);
  }

  // --- LinkOwner -------------------------------------------------------------------------------

  scheduleFlush(link: Link): void {
    this.scheduled.push(link);
  }

  abandon(link: Link, why: string): void {
    const connection = this.table.connectionOf(link);
    if (connection === undefined) return;
    const name = nameOfHost(this.options, link.host);
    this.options.log('warn', `the connection to ${name} is given up: ${why}`);
    this.closeConnection(connection);
  }

  // --- FabricHandler ---------------------------------------------------------------------------

  requested(request: Request): void {
    this.admission.onRequest(request);
  }

  connected(connection: Connection, data: Uint8Array): void {
    const dialing = this.dialer.ofConnection(connection);
    if (dialing !== undefined) this.dialer.onConnected(dialing, connection, data);
  }

  refused(connection: Connection, data: Uint8Array, reason: string): void {
    const dialing = this.dialer.ofConnection(connection);
    if (dialing === undefined) this.forget(connection);
    else dialing.onRefused(data, reason);
  }

  completed(connection: Connection, context: number): void {
    this.table.of(connection)?.onCompleted(context, this.options.nowUs());
  }

  closed(connection: Connection): void {
    this.onEnd(connection, 'it has closed the connection');
  }

  failed(connection: Connection, reason: string): void {
    this.onEnd(connection, reason);
  }

  private onEnd(connection: Connection, why: string): void {
    const link = this.table.of(connection);
    this.forget(connection);
    if (link === undefined) return;
    this.table.setEnded(link);
    if (link.host < this.options.map.hosts) this.hasLostHost = true;
    const name = nameOfHost(this.options, link.host);
    if (this.table.hasSaidFarewell(link.host)) {
      this.options.log('info', `${name} has closed its connection`);
    } else this.options.log('warn', `the connection to ${name} broke: ${why}`);
  }

  private closeConnection(connection: Connection): void {
    connection.close();
    this.forget(connection);
  }

  private forget(connection: Connection): void {
    this.admission.forget(connection);
    this.table.forget(connection);
    this.dialer.ofConnection(connection)?.onEnd();
  }
}
