/**
 * The links of one host, or of one client, to all others: who dials whom, who is let in, what goes with a connection.
 * One thread owns all of it: it calls `poll` before it works, `flush` after, and `wait` when there is nothing to do.
 *
 * Of two hosts the one with the higher number dials; clients dial all hosts. A connection works in both directions, so a
 * client needs no port. Whoever dials is told the key to the listener's memory when it is let in (`handshake.ts`), and
 * writes its own into that memory (`greeting.ts`). After a break both sides begin again with new keys.
 */
import { type Arena, type ArenaMap, HOST, HOST_STATE, withHostState } from '../arena.js';
import type { ProcessId } from '../contract.js';
import type { Connection } from '../fabric/connection.js';
import { Fabric } from '../fabric/fabric.js';
import type { FabricHandler } from '../fabric/handler.js';
import type { Registration, RemoteRegion } from '../fabric/registration.js';
import type { Request } from '../fabric/request.js';
import { describe, type SocketAddress } from '../fabric/socket-address.js';
import { ACQUAINTANCE, Acquaintances } from './acquaintances.js';
import { type BufferWords, makeBuffers } from './buffers.js';
import { Dialing, isSystemError } from './dialing.js';
import { greetingAt, greetingWords, passwordIn } from './greeting.js';
import {
  CALLER,
  Handshake,
  type Hello,
  type Proven,
  REFUSAL,
  REFUSED,
  type Welcome,
} from './handshake.js';
import { Link, type LinkBuffers, type LinkKeeper } from './link.js';
import { HostsMemory } from './machines-memory.js';

/** Who we are: one of `CALLER`, and the number of the host or of the client's slot. */
export interface Caller {
  readonly caller: number;
  readonly number: number;
}

/** Who gives slots to clients. */
export interface SlotKeeper {
  /** A free slot for a new client, if there is one. */
  take(): { readonly slot: number; readonly session: number } | undefined;
  /** Is the slot still that of the client which was given it, by us or by another host, in that session? */
  isStillOf(slot: number, session: number): boolean;
  /** That client comes back. */
  returns(slot: number, session: number): void;
  /** The connection to the client has ended. */
  leaves(slot: number): void;
}

export interface NetworkOptions {
  readonly map: ArenaMap;
  /** All of it can be read and written by whoever is let in. */
  readonly arena: Arena & { readonly address: number };
  readonly self: Caller;
  /** Where we listen, if we do, and from where we dial. */
  readonly address: string;
  readonly port?: number;
  /** Where the hosts listen. */
  readonly hosts: readonly SocketAddress[];
  /** What the log calls them. Without, their numbers. */
  readonly names?: readonly string[];
  readonly secret: Uint8Array;
  readonly digest: Uint8Array;
  readonly provider?: string;
  /** How long a peer may be silent although something is awaited. */
  readonly patienceUs: number;
  /** How much may be under way to and from a host. */
  readonly bufferWords: (host: number) => BufferWords;
  readonly slots?: SlotKeeper;
  readonly log: (level: 'info' | 'warn', text: string) => void;
  /** Somebody was refused. Whoever reaches our port can make it happen, as often as he likes. */
  readonly onRefusal?: (text: string) => void;
  readonly nowUs: () => number;
}

/** How a caller is let in. */
interface Admission {
  /** Among hosts and clients, or `NOWHERE`. */
  readonly place: number;
  /** What it is told: see `Welcome`. */
  readonly slot: number;
  readonly session: number;
}

/** One whom we let in. */
interface Guest {
  readonly hello: Hello;
  readonly place: number;
  /** Its greeting ends with this. */
  readonly password: number;
  readonly sinceUs: number;
}

/**
 * For how long what nobody waits for may wait for company: what is decided, for followers, and copies for the case that a
 * leader fails.
 */
const COMPANY_US = 1000;
/** The place of those who only look: nobody writes to them, so there may be any number. */
const NOWHERE = -1;
const LOOK_US = 5000;
const STRANGERS_US = 5_000_000;

export class Network implements FabricHandler, LinkKeeper {
  readonly port: number;
  /** By process: none for those of this host. */
  readonly linkOf: readonly (Link | undefined)[];
  /** By host, the clients' behind. */
  readonly links: readonly (Link | undefined)[];
  readonly recipients: (HostsMemory | undefined)[] = [];
  private readonly fabric: Fabric;
  private readonly handshake: Handshake;
  private readonly acquaintances: Acquaintances;
  private readonly dialings: readonly Dialing[];
  private readonly guests = new Map<Connection, Guest>();
  private readonly ungreeted = new Set<Connection>();
  private readonly linkByConnection = new Map<Connection, Link>();
  private readonly registrations = new Map<Connection, Registration>();
  /** Links with something to send. */
  private readonly touched: Link[] = [];
  private readonly buffersByHost: (LinkBuffers | undefined)[] = [];
  private lookUs = 0;
  private strangersUs = 0;
  private welcomed: Welcome | undefined;

  constructor(private readonly options: NetworkOptions) {
    const { map, self, hosts, address, port, provider } = options;
    this.handshake = new Handshake(options.secret, options.digest);
    this.acquaintances = new Acquaintances(options.arena.words, map);
    this.fabric = Fabric.open({ address, ...(provider !== undefined && { provider }) });
    this.port = port === undefined ? 0 : this.fabric.listen(port);
    const places = map.hosts + map.layout.sizes.clients;
    const own = self.caller === CALLER.host ? self.number : -1;
    this.links = Array.from({ length: places }, (_, host) =>
      host === own ? undefined : new Link(host, map, this.recipients, this),
    );
    const processes = Array.from({ length: map.processes }, (_, process) => process);
    this.linkOf = processes.map((process) => this.links[map.hostOf(process)]);
    const dialed = own < 0 ? hosts : hosts.slice(0, own);
    this.dialings = dialed.map(
      (peer, host) =>
        new Dialing(host, {
          handshake: this.handshake,
          connect: (data) => this.fabric.connect(peer.host, peer.port, data),
          complain: (why) => options.log('warn', `can't connect to ${this.nameOf(host)}: ${why}`),
          nowUs: options.nowUs,
        }),
    );
  }

  /** What a client was given when it was let in first. */
  get slot(): Welcome | undefined {
    return this.welcomed;
  }

  /** The memory of a process of ours. */
  memory(process: ProcessId): HostsMemory {
    const { arena, map } = this.options;
    const memory = new HostsMemory(process, arena, map, this.linkOf);
    this.recipients[process] = memory;
    return memory;
  }

  /** Does any host know that we have run our replicas before? Undefined as long as not all have been asked. */
  get isKnown(): boolean | undefined {
    if (this.acquaintances.isKnown) return true;
    return this.missingHosts().length > 0 ? undefined : false;
  }

  /** Hosts, other than ours, that we are not connected to. */
  missingHosts(): number[] {
    const hosts = Array.from({ length: this.options.map.hosts }, (_, host) => host);
    return hosts.filter((host) => this.links[host]?.isOpen === false);
  }

  /** Why we are not connected to a host that we dial, if it has been tried. */
  complaintOf(host: number): string | undefined {
    return this.dialings[host]?.complaint || undefined;
  }

  /** One of `REFUSAL` if that host has heard us and does not let us in, else 0. */
  refusalOf(host: number): number {
    return this.dialings[host]?.refusal ?? 0;
  }

  /** Tell all hosts that we run our replicas. It is known there once all links are settled. */
  announce(): void {
    const { map, self } = this.options;
    for (const link of this.links) {
      link?.writeWords(map.host(self.number) + HOST.begun, Int32Array.of(1));
    }
  }

  get isSettled(): boolean {
    return this.links.every((link) => link === undefined || !link.isOpen || link.isSettled);
  }

  isConnected(host: number): boolean {
    return this.links[host]?.isOpen === true;
  }

  /** Do what the network has to do, tell memories what has become of their posts. */
  poll(nowUs: number): void {
    this.fabric.poll(this);
    if (this.ungreeted.size > 0) this.lookForGreetings();
    if (nowUs - this.lookUs >= LOOK_US) this.look(nowUs);
  }

  /**
   * Send what was posted: first to whom an answer is awaited from.
   *
   * @param companyUs  for how long what nobody waits for may wait for company
   */
  flush(nowUs: number, companyUs = COMPANY_US): void {
    const { touched } = this;
    if (touched.length === 0) return;
    for (const link of touched) if (link.isAwaited) link.flush(nowUs, companyUs);
    let staying = 0;
    for (const link of touched) if (link.flush(nowUs, companyUs)) touched[staying++] = link;
    while (touched.length > staying) touched.pop();
  }

  onTouched(link: Link): void {
    this.touched.push(link);
  }

  /** Sleep until something comes, or the time is over. Nothing should wait for company meanwhile. */
  wait(timeoutUs: number): void {
    this.fabric.wait(timeoutUs);
  }

  close(): void {
    for (const link of this.linkByConnection.values()) link.lose();
    this.fabric.close();
  }

  // --- now and then ----------------------------------------------------------------------------

  private look(nowUs: number): void {
    this.lookUs = nowUs;
    for (const link of [...this.linkByConnection.values()]) {
      if (link.silentUs(nowUs) > this.options.patienceUs)
        this.onUseless(link, 'it does not answer');
      else link.probe(nowUs);
    }
    for (const dialing of this.dialings) {
      if (dialing.isDue(nowUs)) this.dial(dialing, nowUs);
      else if (dialing.isUnanswered(nowUs, this.options.patienceUs)) {
        dialing.giveUp('it does not answer');
      }
    }
    for (const [connection, guest] of this.guests) {
      const isLate =
        this.ungreeted.has(connection) && nowUs - guest.sinceUs > this.options.patienceUs;
      if (isLate) this.end(connection);
    }
    if (nowUs - this.strangersUs >= STRANGERS_US) {
      this.strangersUs = nowUs;
      this.fabric.endStrangers();
    }
  }

  onUseless(link: Link, why: string): void {
    for (const [connection, other] of this.linkByConnection) {
      if (other !== link) continue;
      this.options.log('warn', `the connection to ${this.nameOf(link.host)} is given up: ${why}`);
      this.end(connection);
      return;
    }
  }

  private nameOf(host: number): string {
    const { map, names } = this.options;
    return host < map.hosts ? (names?.[host] ?? `host ${host}`) : `client ${host - map.hosts}`;
  }

  // --- dialing ---------------------------------------------------------------------------------

  private dial(dialing: Dialing, nowUs: number): void {
    // A client waits until it has its slot before it dials others.
    const isNew = this.options.self.caller === CALLER.newClient && this.welcomed === undefined;
    if (isNew && this.dialings.some(({ isWaiting }) => !isWaiting)) return;
    dialing.dial(this.newHello(), nowUs);
  }

  /** A client that has its slot keeps it. */
  private newHello(): Hello {
    const { handshake, welcomed } = this;
    const { caller, number } = this.options.self;
    return welcomed === undefined
      ? handshake.newHello(caller, number, this.acquaintances.haveBegun ? 1 : 0)
      : handshake.newHello(CALLER.client, welcomed.slot, welcomed.session);
  }

  private dialingOf(connection: Connection): Dialing | undefined {
    return this.dialings.find((dialing) => dialing.connection === connection);
  }

  refused(connection: Connection, data: Uint8Array, reason: string): void {
    const dialing = this.dialingOf(connection);
    if (dialing === undefined) this.forget(connection);
    else dialing.onRefused(data, reason);
  }

  connected(connection: Connection, data: Uint8Array): void {
    const dialing = this.dialingOf(connection);
    const welcome = dialing?.onConnected(data);
    if (dialing === undefined || welcome === undefined) return;
    const { caller } = this.options.self;
    if (caller === CALLER.newClient) this.takeSlot(welcome);
    if (caller === CALLER.host) {
      const hasBegun = (welcome.slot & ACQUAINTANCE.haveBegun) !== 0;
      this.acquaintances.meet(dialing.host, welcome.slot, hasBegun);
    }
    this.open(dialing.host, connection, welcome);
    if (caller !== CALLER.observer) this.greet(dialing, connection);
  }

  /** The first one counts. Hosts that had none for us let us in from now on. */
  private takeSlot(welcome: Welcome): void {
    if (this.welcomed !== undefined) return;
    this.welcomed = welcome;
    for (const dialing of this.dialings) dialing.hurry();
  }

  /** Tell the key to our memory: nothing goes before it. */
  private greet({ host, answer }: Dialing, connection: Connection): void {
    const { map, self } = this.options;
    const own =
      self.caller === CALLER.host ? self.number : map.hosts + (this.welcomed?.slot ?? self.number);
    const region = this.expose();
    this.registrations.set(connection, region);
    const acquaintance = this.acquaintances.with(host);
    const greeting = greetingWords({ region, acquaintance }, passwordIn(answer));
    this.links[host]!.writeWords(map.host(own) + HOST.greeting, greeting);
  }

  /** With a key of its own for each connection. */
  private expose(): Registration {
    const { words, address } = this.options.arena;
    return this.fabric.register(address, words.length * 4, 'remote');
  }

  private open(host: number, connection: Connection, remote: RemoteRegion): void {
    const { options } = this;
    const link = this.links[host]!;
    this.buffersByHost[host] ??= makeBuffers(this.fabric, options.bufferWords(host));
    this.linkByConnection.set(connection, link);
    link.open(connection, remote, this.buffersByHost[host], options.nowUs());
    this.noteState(host, HOST_STATE.running);
    options.log('info', `connected to ${this.nameOf(host)}`);
  }

  /** For `hasEnded`. */
  private noteState(host: number, state: number): void {
    const { map, arena } = this.options;
    const at = map.host(host) + HOST.state;
    Atomics.store(arena.words, at, withHostState(arena.words[at]!, state));
  }

  // --- letting in ------------------------------------------------------------------------------

  requested(request: Request): void {
    const verdict = this.handshake.judge(request.data);
    if ('refusal' in verdict) {
      this.sendAway(request, verdict.refusal);
      return;
    }
    const admission = this.admit(verdict.hello);
    if ('refusal' in admission) {
      this.sendAway(request, Uint8Array.of(admission.refusal));
      return;
    }
    try {
      this.letIn(request, verdict, admission);
    } catch (error) {
      if (!isSystemError(error)) throw error;
      this.freeSlot(admission.place);
      this.options.onRefusal?.(`${describe(request.peer)} can't be let in: ${error.message}`);
    }
  }

  private sendAway(request: Request, answer: Uint8Array): void {
    request.reject(answer);
    const [refusal] = answer;
    if (refusal === REFUSAL.challenge) return;
    this.options.onRefusal?.(`${describe(request.peer)} was refused: ${REFUSED[refusal!]}`);
  }

  private letIn(request: Request, { hello, said }: Proven, admission: Admission): void {
    const { place, slot, session } = admission;
    const registration = this.expose();
    const { base, keyLow, keyHigh } = registration;
    const welcome = this.handshake.welcome(said, { base, keyLow, keyHigh, slot, session });
    let connection: Connection;
    try {
      connection = request.accept(welcome);
    } catch (error) {
      registration.close();
      throw error;
    }
    this.registrations.set(connection, registration);
    const password = passwordIn(said);
    this.guests.set(connection, { hello, place, password, sinceUs: this.options.nowUs() });
    if (place !== NOWHERE) this.ungreeted.add(connection);
  }

  /** Where a caller belongs, or why it does not. */
  private admit({ caller, number, session }: Hello): Admission | { readonly refusal: number } {
    const { map, self, slots } = this.options;
    const unknown = { refusal: REFUSAL.unknownCaller };
    switch (caller) {
      case CALLER.host:
        if (number <= self.number || number >= map.hosts) return unknown;
        this.endOthersOf(number);
        return { place: number, slot: this.acquaintances.with(number), session };
      case CALLER.newClient: {
        const free = slots?.take();
        if (free === undefined) return { refusal: REFUSAL.noSlot };
        return { place: map.hosts + free.slot, ...free };
      }
      case CALLER.client:
        if (slots?.isStillOf(number, session) !== true) return unknown;
        this.endOthersOf(map.hosts + number);
        slots.returns(number, session);
        return { place: map.hosts + number, slot: number, session };
      case CALLER.observer:
        return { place: NOWHERE, slot: 0, session };
      default:
        return unknown;
    }
  }

  /** Whoever comes again has lost its connection, or its memory. */
  private endOthersOf(place: number): void {
    for (const [connection, guest] of this.guests) {
      if (guest.place === place) this.end(connection);
    }
  }

  private lookForGreetings(): void {
    const { map, arena } = this.options;
    for (const connection of this.ungreeted) {
      // That it is connected may be told later than what it brings.
      if (connection.state !== 'open') continue;
      const { place, password, hello } = this.guests.get(connection)!;
      const greeting = greetingAt(arena.words, map.host(place) + HOST.greeting, password);
      if (greeting === undefined) continue;
      this.ungreeted.delete(connection);
      if (hello.caller === CALLER.host) {
        this.acquaintances.meet(place, greeting.acquaintance, hello.session === 1);
      }
      this.open(place, connection, greeting.region);
    }
  }

  // --- ends ------------------------------------------------------------------------------------

  completed(connection: Connection, context: number): void {
    this.linkByConnection.get(connection)?.onCompleted(context, this.options.nowUs());
  }

  closed(connection: Connection): void {
    this.onEnd(connection, 'it has closed the connection');
  }

  failed(connection: Connection, reason: string): void {
    this.onEnd(connection, reason);
  }

  private onEnd(connection: Connection, why: string): void {
    const link = this.linkByConnection.get(connection);
    this.forget(connection);
    if (link === undefined) return;
    this.noteState(link.host, HOST_STATE.ended);
    this.options.log('warn', `the connection to ${this.nameOf(link.host)} broke: ${why}`);
  }

  private end(connection: Connection): void {
    connection.close();
    this.forget(connection);
  }

  /** Whatever we have of it goes; what was under way is lost. */
  private forget(connection: Connection): void {
    this.registrations.get(connection)?.close();
    this.registrations.delete(connection);
    this.ungreeted.delete(connection);
    const guest = this.guests.get(connection);
    this.guests.delete(connection);
    if (guest !== undefined) this.freeSlot(guest.place);
    const link = this.linkByConnection.get(connection);
    this.linkByConnection.delete(connection);
    link?.lose();
    this.dialingOf(connection)?.onEnd();
  }

  /** @param place  of a client, or not */
  private freeSlot(place: number): void {
    const { map, slots } = this.options;
    if (place >= map.hosts) slots?.leaves(place - map.hosts);
  }
}
