/**
 * The links of one host, or of one client, to all others: who dials whom, who is let in, when to try again. One
 * thread owns all of it: it calls `poll` before it works, `flush` after, and `wait` when there is nothing to do.
 *
 * Of two hosts the one with the higher number dials; clients dial all hosts. A connection works in both directions, so a
 * client needs no port. Whoever dials is told the key to the listener's memory when it is let in (`handshake.ts`), and
 * writes its own into that memory: its greeting. After a break both sides begin again with new keys.
 */
import {
  ARENA,
  ARENA_STATE,
  type Arena,
  type ArenaMap,
  HOST,
  HOST_STATE,
  withHostState,
} from '../arena.js';
import type { ProcessId } from '../contract.js';
import type { Connection } from '../fabric/connection.js';
import { Fabric } from '../fabric/fabric.js';
import type { FabricHandler } from '../fabric/handler.js';
import type { Registration, RemoteRegion } from '../fabric/registration.js';
import type { Request } from '../fabric/request.js';
import { describe, type SocketAddress } from '../fabric/socket-address.js';
import { type BufferWords, makeBuffers } from './buffers.js';
import {
  ACQUAINTANCE,
  CALLER,
  Handshake,
  type Hello,
  REFUSAL,
  REFUSALS,
  type Welcome,
} from './handshake.js';
import { HostsMemory } from './hosts-memory.js';
import { Link, type LinkBuffers, type LinkKeeper } from './link.js';

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
  readonly nowUs: () => number;
}

/** One that we dial. */
interface Dialing {
  readonly host: number;
  stage: 'waiting' | 'hello' | 'answer' | 'open';
  connection: Connection | undefined;
  hello: Hello | undefined;
  answer: Uint8Array;
  dialsAtUs: number;
  delayUs: number;
  startedUs: number;
  /** What was said last, so that it is not said again. */
  complaint: string;
  /** One of `REFUSAL` if we were sent away for good, else 0. */
  refusal: number;
}

/** One whom we let in. */
interface Guest {
  readonly hello: Hello;
  readonly slot: number;
  readonly registration: Registration;
  /** Its greeting ends with this. */
  readonly password: number;
  readonly sinceUs: number;
}

/** For followers it makes no difference, and what comes more often is company enough. */
const COMPANY_US = 1000;
const RETRY_US = 20_000;
const RETRY_US_MAX = 1_000_000;
const LOOK_US = 5000;
const STRANGERS_US = 5_000_000;
/** keyLow, keyHigh, base in two words, the acquaintance, and the password: last, since it tells that the rest is there. */
const GREETING_WORDS = 6;
const GREETING_ACQUAINTANCE = 4;
const PASSWORD_AT = 24;

export class Network implements FabricHandler, LinkKeeper {
  readonly port: number;
  /** By process: none for those of this host. */
  readonly linkOf: readonly (Link | undefined)[];
  /** By host, the clients' behind. */
  readonly links: readonly (Link | undefined)[];
  readonly recipients: (HostsMemory | undefined)[] = [];
  private readonly fabric: Fabric;
  private readonly handshake: Handshake;
  private readonly dialings: Dialing[] = [];
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
  /** By host, of those that we have met: do they know that we have run our replicas? */
  private readonly knownBy: (boolean | undefined)[] = [];
  private isClosed = false;

  constructor(private readonly options: NetworkOptions) {
    const { map, self, hosts, address, port, provider } = options;
    this.handshake = new Handshake(options.secret, options.digest);
    this.fabric = Fabric.open({ address, ...(provider !== undefined && { provider }) });
    this.port = port === undefined ? 0 : this.fabric.listen(port);
    const places = map.hosts + map.layout.sizes.clients;
    const own = self.caller === CALLER.host ? self.number : -1;
    this.links = Array.from({ length: places }, (_, host) =>
      host === own ? undefined : new Link(host, map, this.recipients, this),
    );
    const processes = Array.from({ length: map.processes }, (_, process) => process);
    this.linkOf = processes.map((process) => this.links[map.hostOf(process)]);
    for (let host = 0; host < hosts.length; host++) {
      if (own >= 0 && host >= own) break;
      this.dialings.push({
        host,
        stage: 'waiting',
        connection: undefined,
        hello: undefined,
        answer: new Uint8Array(0),
        dialsAtUs: 0,
        delayUs: RETRY_US,
        startedUs: 0,
        complaint: '',
        refusal: 0,
      });
    }
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
    if (this.knownBy.includes(true)) return true;
    return this.missingHosts().length > 0 ? undefined : false;
  }

  /** Hosts, other than ours, that we are not connected to. */
  missingHosts(): number[] {
    const hosts = Array.from({ length: this.options.map.hosts }, (_, host) => host);
    return hosts.filter((host) => this.links[host]?.isOpen === false);
  }

  /** Why we are not connected to a host that we dial, if it has been tried. */
  complaintOf(host: number): string | undefined {
    return this.dialings.find((dialing) => dialing.host === host)?.complaint || undefined;
  }

  /** One of `REFUSAL` if that host has heard us and does not let us in, else 0. */
  refusalOf(host: number): number {
    return this.dialings.find((dialing) => dialing.host === host)?.refusal ?? 0;
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
  flush(nowUs: number, companyUs: number = COMPANY_US): void {
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

  /** Sleep until something comes, or the time is over. */
  wait(timeoutUs: number): void {
    this.flush(this.options.nowUs(), 0);
    this.fabric.wait(timeoutUs);
  }

  close(): void {
    this.isClosed = true;
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
      if (dialing.stage === 'waiting' && nowUs >= dialing.dialsAtUs) this.dial(dialing, nowUs);
      else if (dialing.stage === 'hello' || dialing.stage === 'answer') {
        if (nowUs - dialing.startedUs > this.options.patienceUs) {
          this.end(dialing.connection!);
          this.retry(dialing, 'it does not answer');
        }
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
    const { self } = this.options;
    const begun = this.hasBegun ? 1 : 0;
    const { slot, session } = this.welcomed ?? { slot: self.number, session: begun };
    // A client that has its slot keeps it; and it waits for one before it dials others.
    const isNew = self.caller === CALLER.newClient && this.welcomed === undefined;
    const isFirst = this.dialings.every(({ stage }) => stage === 'waiting');
    if (isNew && !isFirst) return;
    const caller = self.caller === CALLER.newClient && !isNew ? CALLER.client : self.caller;
    dialing.hello = this.handshake.newHello(caller, slot, session);
    dialing.startedUs = nowUs;
    dialing.stage = 'hello';
    this.call(dialing, this.handshake.hello(dialing.hello));
  }

  private call(dialing: Dialing, data: Uint8Array): void {
    const { host, port } = this.options.hosts[dialing.host]!;
    dialing.connection = this.fabric.connect(host, port, data);
  }

  private retry(dialing: Dialing, why: string, refusal = 0): void {
    const { log, nowUs } = this.options;
    dialing.stage = 'waiting';
    dialing.refusal = refusal;
    dialing.connection = undefined;
    dialing.dialsAtUs = nowUs() + dialing.delayUs;
    dialing.delayUs = Math.min(dialing.delayUs * 2, RETRY_US_MAX);
    if (why === dialing.complaint) return;
    dialing.complaint = why;
    log('warn', `can't connect to ${this.nameOf(dialing.host)}: ${why}`);
  }

  private dialingOf(connection: Connection): Dialing | undefined {
    return this.dialings.find((dialing) => dialing.connection === connection);
  }

  refused(connection: Connection, data: Uint8Array, reason: string): void {
    const dialing = this.dialingOf(connection);
    if (dialing === undefined) {
      this.forget(connection);
      return;
    }
    const answer =
      dialing.stage === 'hello' ? this.handshake.answer(dialing.hello!, data) : undefined;
    if (answer === undefined) {
      const [refusal = 0] = data;
      this.retry(dialing, REFUSALS[refusal] ?? reason, refusal in REFUSALS ? refusal : 0);
      return;
    }
    dialing.answer = answer;
    dialing.stage = 'answer';
    this.call(dialing, answer);
  }

  connected(connection: Connection, data: Uint8Array): void {
    const dialing = this.dialingOf(connection);
    if (dialing === undefined) return;
    const welcome =
      dialing.stage === 'answer' ? this.handshake.enter(dialing.answer, data) : undefined;
    if (welcome === undefined) {
      this.end(connection);
      this.retry(dialing, 'it could not prove that it knows the secret');
      return;
    }
    dialing.stage = 'open';
    dialing.delayUs = RETRY_US;
    dialing.complaint = '';
    dialing.refusal = 0;
    if (this.options.self.caller === CALLER.newClient) this.takeSlot(welcome);
    if (this.options.self.caller === CALLER.host) {
      this.meet(dialing.host, welcome.slot, (welcome.slot & ACQUAINTANCE.haveBegun) !== 0);
    }
    this.open(dialing.host, connection, welcome);
    if (this.options.self.caller !== CALLER.observer) this.greet(dialing, connection);
  }

  /** The first one counts. Hosts that had none for us let us in from now on. */
  private takeSlot(welcome: Welcome): void {
    if (this.welcomed !== undefined) return;
    this.welcomed = welcome;
    for (const dialing of this.dialings) {
      dialing.refusal = 0;
      dialing.dialsAtUs = 0;
    }
  }

  private get hasBegun(): boolean {
    return this.options.arena.words[ARENA.state] === ARENA_STATE.running;
  }

  /** Another host has told what it knows of us, and of itself. */
  private meet(host: number, acquaintance: number, hasBegun: boolean): void {
    const { arena, map } = this.options;
    this.knownBy[host] = (acquaintance & ACQUAINTANCE.hasBegun) !== 0;
    if (hasBegun) arena.words[map.host(host) + HOST.begun] = 1;
  }

  private acquaintanceWith(host: number): number {
    const { arena, map } = this.options;
    const isKnown = host < map.hosts && arena.words[map.host(host) + HOST.begun] === 1;
    return (isKnown ? ACQUAINTANCE.hasBegun : 0) | (this.hasBegun ? ACQUAINTANCE.haveBegun : 0);
  }

  /** Tell the key to our memory: nothing goes before it. */
  private greet({ host, answer }: Dialing, connection: Connection): void {
    const { map, self } = this.options;
    const registration = this.expose(connection);
    const own =
      self.caller === CALLER.host ? self.number : map.hosts + (this.welcomed?.slot ?? self.number);
    const greeting = new Int32Array(GREETING_WORDS);
    putRegion(greeting, registration);
    greeting[GREETING_ACQUAINTANCE] = this.acquaintanceWith(host);
    greeting[GREETING_WORDS - 1] = passwordIn(answer);
    this.links[host]!.writeWords(map.host(own) + HOST.greeting, greeting);
  }

  private expose(connection: Connection): Registration {
    const { words, address } = this.options.arena;
    const registration = this.fabric.register(address, words.length * 4, 'remote');
    this.registrations.set(connection, registration);
    return registration;
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
    const { log } = this.options;
    const verdict = this.handshake.judge(request.data);
    if ('refusal' in verdict) {
      const [why] = verdict.refusal;
      if (why !== REFUSAL.challenge) {
        log('warn', `${describe(request.peer)} was refused: ${REFUSED[why!]}`);
      }
      request.reject(verdict.refusal);
      return;
    }
    const { hello, said } = verdict;
    const place = this.placeFor(hello);
    if (typeof place !== 'number') {
      request.reject(Uint8Array.of(place.refusal));
      log('warn', `${describe(request.peer)} was refused: ${REFUSED[place.refusal]}`);
      return;
    }
    const { words, address } = this.options.arena;
    const registration = this.fabric.register(address, words.length * 4, 'remote');
    const slot = Math.max(0, place - this.options.map.hosts);
    const session = hello.session;
    const isHost = hello.caller === CALLER.host;
    const given = this.given ?? { slot: isHost ? this.acquaintanceWith(place) : slot, session };
    this.given = undefined;
    const welcome = this.handshake.welcome(said, { ...regionOf(registration), ...given });
    const connection = request.accept(welcome);
    this.registrations.set(connection, registration);
    this.guests.set(connection, {
      hello,
      slot: place,
      registration,
      password: passwordIn(said),
      sinceUs: this.options.nowUs(),
    });
    if (hello.caller !== CALLER.observer) this.ungreeted.add(connection);
  }

  private given: { readonly slot: number; readonly session: number } | undefined;

  /** The place of a caller among hosts and clients, or why it has none. */
  private placeFor({ caller, number, session }: Hello): number | { refusal: number } {
    const { map, self, slots } = this.options;
    const unknown = { refusal: REFUSAL.unknownCaller };
    switch (caller) {
      case CALLER.host:
        if (number <= self.number || number >= map.hosts) return unknown;
        this.endOthersOf(number);
        return number;
      case CALLER.newClient:
        this.given = slots?.take();
        return this.given === undefined ? { refusal: REFUSAL.noSlot } : map.hosts + this.given.slot;
      case CALLER.client:
        if (slots?.isStillOf(number, session) !== true) return unknown;
        this.endOthersOf(map.hosts + number);
        slots.returns(number, session);
        return map.hosts + number;
      case CALLER.observer:
        return map.hosts;
      default:
        return unknown;
    }
  }

  /** Whoever comes again has lost its connection, or its memory. */
  private endOthersOf(place: number): void {
    for (const [connection, guest] of this.guests) {
      if (guest.slot === place && guest.hello.caller !== CALLER.observer) this.end(connection);
    }
  }

  private lookForGreetings(): void {
    const { map, arena } = this.options;
    for (const connection of this.ungreeted) {
      // That it is connected may be told later than what it brings.
      if (connection.state !== 'open') continue;
      const { slot, password, hello } = this.guests.get(connection)!;
      const at = map.host(slot) + HOST.greeting;
      if (arena.words[at + GREETING_WORDS - 1] !== password) continue;
      this.ungreeted.delete(connection);
      if (hello.caller === CALLER.host) {
        this.meet(slot, arena.words[at + GREETING_ACQUAINTANCE]!, hello.session === 1);
      }
      this.open(slot, connection, takeRegion(arena.words, at));
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
    const { map, slots } = this.options;
    if (guest !== undefined && guest.hello.caller !== CALLER.observer && guest.slot >= map.hosts) {
      slots?.leaves(guest.slot - map.hosts);
    }
    const link = this.linkByConnection.get(connection);
    this.linkByConnection.delete(connection);
    link?.lose();
    const dialing = this.dialingOf(connection);
    if (dialing === undefined || this.isClosed) return;
    dialing.stage = 'waiting';
    dialing.connection = undefined;
    dialing.dialsAtUs = this.options.nowUs() + RETRY_US;
  }
}

const REFUSED: Readonly<Record<number, string>> = {
  [REFUSAL.otherCluster]: 'it has another configuration or version, or is no TRAM at all',
  [REFUSAL.unknownCaller]: 'there is no such host or client in this cluster',
  [REFUSAL.wrongProof]: 'it could not prove that it knows the secret',
  [REFUSAL.noSlot]: 'all client slots are taken',
};

/** Both sides know it, and it is another with every connection. Never 0. */
function passwordIn(said: Uint8Array): number {
  return new DataView(said.buffer, said.byteOffset).getInt32(PASSWORD_AT) | 1;
}

function regionOf({ base, keyLow, keyHigh }: RemoteRegion): RemoteRegion {
  return { base, keyLow, keyHigh };
}

function putRegion(words: Int32Array, { base, keyLow, keyHigh }: RemoteRegion): void {
  words[0] = keyLow;
  words[1] = keyHigh;
  words[2] = (base % 2 ** 32) | 0;
  words[3] = Math.floor(base / 2 ** 32);
}

function takeRegion(words: Int32Array, at: number): RemoteRegion {
  return {
    keyLow: words[at]! >>> 0,
    keyHigh: words[at + 1]! >>> 0,
    base: (words[at + 2]! >>> 0) + words[at + 3]! * 2 ** 32,
  };
}
