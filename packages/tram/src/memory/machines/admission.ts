/**
 * Accepts the calls of hosts, clients and observers that prove that they know the secret, and refuses all others. Called
 * by `network.ts`.
 *
 * An accepted peer is told the key to our arena with the acceptance (`handshake.ts`). Its link opens once it has written
 * the key to its own arena into ours (`greeting.ts`). A peer that calls again has lost its connection or its memory, so
 * its earlier connection is closed first.
 *
 * A client that outlives a recovery calls again and again, with a session that has ended. The log tells once of each such
 * client, until it is let in.
 */
import { HOST } from '../arena.js';
import type { Connection } from '../fabric/connection.js';
import type { Request } from '../fabric/request.js';
import { describe } from '../fabric/socket-address.js';
import { isSystemError } from './dialing.js';
import { greetingAt, greetingToken } from './greeting.js';
import { CALLER, type Handshake, type Hello, type Proven, REFUSAL, REFUSED } from './handshake.js';
import { hasRun, type KnownHosts } from './known-hosts.js';
import type { LinkTable } from './link-table.js';
import { type NetworkOptions, nameOfHost } from './network-options.js';

/** As what a peer is accepted. */
interface Grant {
  /** Its number among hosts and clients. Undefined for observers: they are never written to, so any number is accepted. */
  readonly host: number | undefined;
  /** For the welcome: see there. */
  readonly slot: number;
  readonly session: number;
  readonly birth: number;
  readonly era: number;
}

interface AcceptedPeer {
  readonly hello: Hello;
  readonly host: number | undefined;
  /** Of its greeting. */
  readonly token: number;
  readonly sinceUs: number;
}

/** So many clients that were refused are remembered. */
const REFUSED_MAX = 1024;

export class Admission {
  private readonly peers = new Map<Connection, AcceptedPeer>();
  /** Those of `peers` whose greeting has not arrived yet. */
  private readonly ungreeted = new Set<Connection>();
  /** Slots and sessions of the clients that were refused, and that the log has told of. */
  private readonly refusedClients = new Set<string>();

  constructor(
    private readonly options: NetworkOptions,
    private readonly handshake: Handshake,
    private readonly links: LinkTable,
    private readonly knownHosts: KnownHosts,
    /** Close a connection and forget it everywhere. */
    private readonly close: (connection: Connection) => void,
    /** The link to a host has opened. */
    private readonly onOpen: (host: number) => void,
  ) {}

  /** How many peers are accepted. */
  get peerCount(): number {
    return this.peers.size;
  }

  /** A peer, not yet authenticated, wants to connect. */
  onRequest(request: Request): void {
    const verdict = this.handshake.judge(request.data);
    if ('refusal' in verdict) {
      this.refuse(request, verdict.refusal);
      return;
    }
    const grant = this.grant(verdict.hello);
    if ('refusal' in grant) {
      this.refuse(request, Uint8Array.of(grant.refusal), this.isKnownRefusal(verdict.hello, grant));
      return;
    }
    this.refusedClients.delete(clientOf(verdict.hello));
    try {
      this.accept(request, verdict, grant);
    } catch (error) {
      if (!isSystemError(error)) throw error;
      this.freeSlot(grant.host);
      this.options.onRefusal?.(`${describe(request.peer)} can't be let in: ${error.message}`);
    }
  }

  private refuse(request: Request, answer: Uint8Array, isKnown = false): void {
    request.reject(answer);
    const [refusal] = answer;
    // What a client is told that comes too early is nothing for our log.
    if (isKnown || refusal === REFUSAL.challenge || refusal === REFUSAL.notReady) return;
    this.options.onRefusal?.(`${describe(request.peer)} was refused: ${REFUSED[refusal]}`);
  }

  /** Has this client been refused before, because its session has ended? Remembers it. */
  private isKnownRefusal(hello: Hello, { refusal }: { readonly refusal: number }): boolean {
    if (hello.caller !== CALLER.client || refusal !== REFUSAL.unknownCaller) return false;
    const { refusedClients } = this;
    const client = clientOf(hello);
    if (refusedClients.has(client)) return true;
    if (refusedClients.size === REFUSED_MAX) refusedClients.clear();
    refusedClients.add(client);
    return false;
  }

  private accept(request: Request, { hello, said }: Proven, { host, ...told }: Grant): void {
    const registration = this.links.register(host);
    const { base, keyLow, keyHigh } = registration;
    const welcome = this.handshake.welcome(said, { base, keyLow, keyHigh, ...told });
    let connection: Connection;
    try {
      connection = request.accept(welcome);
    } catch (error) {
      registration.close();
      throw error;
    }
    this.links.keep(connection, registration);
    const token = greetingToken(said);
    this.peers.set(connection, { hello, host, token, sinceUs: this.options.nowUs() });
    if (host !== undefined) this.ungreeted.add(connection);
  }

  /** Is there a place for a caller that knows the secret? Closes its earlier connection if there is. */
  private grant(hello: Hello): Grant | { readonly refusal: number } {
    const { caller, number, session } = hello;
    const { map, self, slots } = this.options;
    const unknown = { refusal: REFUSAL.unknownCaller };
    switch (caller) {
      case CALLER.host:
        if (number <= self.number || number >= map.hosts) return unknown;
        return this.grantHost(hello);
      case CALLER.newClient: {
        if (slots?.isOpen !== true || !this.links.hasMajority) {
          return { refusal: REFUSAL.notReady };
        }
        const free = slots.take();
        if (free === undefined) return { refusal: REFUSAL.noSlot };
        return { host: map.hosts + free.slot, ...free, birth: 0, era: this.knownHosts.era };
      }
      case CALLER.client:
        if (slots?.awaitsEra === true) return { refusal: REFUSAL.notReady };
        if (slots?.isStillOf(number, session) !== true) return unknown;
        this.closeEarlier(map.hosts + number);
        slots.returns(number, session);
        return { host: map.hosts + number, slot: number, session, birth: 0, era: 0 };
      case CALLER.observer:
        return { host: undefined, slot: 0, session, birth: 0, era: 0 };
      default:
        return unknown;
    }
  }

  private grantHost(hello: Hello): Grant | { readonly refusal: number } {
    const { number, session, birth, seenBirth } = hello;
    const { knownHosts, links } = this;
    if (seenBirth > knownHosts.birth) {
      this.options.onNewerMemory?.(nameOfHost(this.options, number));
      return { refusal: REFUSAL.newerSeen };
    }
    const refusal = knownHosts.refusalOf(number, hello);
    if (refusal > 0) return { refusal };
    const isTaken = links.byHost[number]!.isOpen && knownHosts.runs(number);
    // Of the same memory, it is the same host. Newer memory that has run may take the place of older memory.
    if (isTaken && birth !== knownHosts.newestBirth(number) && !hasRun(session)) {
      return { refusal: REFUSAL.placeTaken };
    }
    this.closeEarlier(number);
    knownHosts.expect(number);
    return {
      host: number,
      slot: knownHosts.bitsFor(number, session),
      session: knownHosts.introduction,
      birth: knownHosts.birth,
      era: knownHosts.era,
    };
  }

  private closeEarlier(host: number): void {
    for (const [connection, peer] of this.peers) if (peer.host === host) this.close(connection);
  }

  /** Open the links of peers whose greeting has arrived. */
  takeGreetings(): void {
    const { map, arena } = this.options;
    for (const connection of this.ungreeted) {
      // A greeting may arrive before the event that the connection is open.
      if (connection.state !== 'open') continue;
      const { host, token, hello } = this.peers.get(connection)!;
      if (host === undefined) continue;
      const greeting = greetingAt(arena.words, map.host(host) + HOST.greeting, token);
      if (greeting === undefined) continue;
      if (hello.caller === CALLER.host) {
        const introduction = { ...hello, era: greeting.era };
        // The least revision may have risen since, or newer memory was seen. And it had not told its era.
        if (this.knownHosts.refusalOf(host, introduction) > 0) {
          this.close(connection);
          continue;
        }
        this.knownHosts.learn(host, greeting.hasRun, introduction);
      }
      this.ungreeted.delete(connection);
      this.links.openLink(host, connection, greeting.region, this.options.self.number);
      if (hello.caller === CALLER.host) this.onOpen(host);
    }
  }

  /** Close the connections of peers that have not sent their greeting in time. */
  closeUngreeted(nowUs: number): void {
    const { patienceUs } = this.options;
    for (const connection of this.ungreeted) {
      if (nowUs - this.peers.get(connection)!.sinceUs > patienceUs) this.close(connection);
    }
  }

  /** The connection has ended. */
  forget(connection: Connection): void {
    const peer = this.peers.get(connection);
    if (peer === undefined) return;
    this.ungreeted.delete(connection);
    this.peers.delete(connection);
    this.freeSlot(peer.host);
  }

  private freeSlot(host: number | undefined): void {
    const { map, slots } = this.options;
    if (host !== undefined && host >= map.hosts) slots?.leaves(host - map.hosts);
  }
}

function clientOf({ number, session }: Hello): string {
  return `${number}/${session}`;
}
