/**
 * The client that applications use: promises over the protocol's client, in the event loop of its thread.
 *
 * The client writes all messages of one turn of the event loop together. While messages are unanswered it polls for
 * replies: with every turn at first, then by a timer. On threads, a host that replies wakes it before. An idle client does no work.
 *
 * The client validates every argument here. The protocol only asserts what protects memory.
 */
import { channel } from 'node:diagnostics_channel';
import { requireKnown } from './config/nearest-name.js';
import { type Destinations, destinationSet, isSet } from './destinations.js';
import { TramError } from './errors.js';
import { CONFIG_FILE } from './hosting/attachment.js';
import { ClientParking } from './hosting/client-parking.js';
import { nowUs } from './hosting/clock.js';
import { ClusterContext } from './hosting/cluster-context.js';
import type { Histogram } from './hosting/histogram.js';
import { openArena } from './hosting/open-arena.js';
import { groupsOf } from './hosting/service.js';
import { type ClientSlot, takeSlot } from './hosting/slot.js';
import { STALLED_US, type StallMessage } from './hosting/stall.js';
import { latencyOf, STATISTIC } from './hosting/statistics.js';
import { ClientTrace } from './hosting/trace.js';
import { ARENA, ARENA_STATE, PARTICIPANT } from './memory/arena.js';
import { type GivenUp, type MulticastOptions, Request } from './multicast-request.js';
import {
  type Call,
  type CallListener,
  type Offer,
  Client as ProtocolClient,
  type ReplyOutcome,
} from './protocol/data-path/client.js';
import { NO_OBSERVER } from './protocol/edges.js';
import { messageId } from './protocol/layout.js';
import { StalledRequests } from './stalled-requests.js';

/** How to find a cluster: its shared memory, its name, the path of its arena, or its configuration file. */
export type ClusterAddress = ArrayBufferLike | string;

/** Receives the replies to offered messages. `reply` is valid during the call only. */
export interface OfferListener {
  /**
   * @param ticket  the value of `client.ticket` after the offer
   * @param reply  if the outcome is `failed`: the message of what the service threw, in UTF-8 and cut to
   *   `replyBytesMax`. If it is `tooLarge`: empty
   * @param outcome  whatever it is, the group has delivered the message
   */
  replied(ticket: number, group: number, reply: Uint8Array, outcome: ReplyOutcome): void;
  /** All destinations have replied. */
  answered(ticket: number): void;
  /** The client has ended: it was closed, or its cluster was. Messages that are unanswered get no reply any more. */
  closed?(): void;
}

export interface ConnectOptions {
  /** Receives the replies to messages that `offer` accepted. */
  readonly listener?: OfferListener | undefined;
}

const MULTICAST_OPTIONS: readonly (keyof MulticastOptions)[] = ['signal', 'timeoutMs'];
const CONNECT_OPTIONS: readonly (keyof ConnectOptions)[] = ['listener'];
const NO_OPTIONS: MulticastOptions = {};
const NO_PAYLOAD = new Uint8Array(0);

const POLL_MS = 1;

const multicasts = channel('tram:multicast');

type State = 'open' | 'closing' | 'closed';

export class Client implements AsyncDisposable {
  /** Identifies the message of the last `offer` that was accepted. */
  ticket = 0;
  private readonly client: ProtocolClient;
  private readonly trace: ClientTrace | undefined;
  private readonly latency: Histogram;
  /** All groups of the cluster, as a set. */
  private readonly groupsLow: number;
  private readonly groupsHigh: number;
  private readonly answeredAt: number;
  private readonly sessionAt: number;
  private readonly parking: ClientParking;
  /** By call slot. */
  private readonly requests: (Request | undefined)[];
  private readonly offeredUs: Float64Array;
  private readonly tickets: Float64Array;
  private readonly waiting: Request[] = [];
  private state: State = 'open';
  private isPollScheduled = false;
  /** If the next poll is scheduled by a timer. */
  private pollTimer: NodeJS.Timeout | undefined;
  private isFlushScheduled = false;
  private progressUs = 0;
  private readonly stalled: StalledRequests;
  private watchedUs = 0;
  private onDrained: (() => void) | undefined;

  private constructor(
    private readonly context: ClusterContext,
    private readonly slot: ClientSlot,
    private readonly listener: OfferListener | undefined,
    private readonly onClosed: () => void,
    onStalled: (message: StallMessage) => void = () => undefined,
  ) {
    const { words } = context.arena;
    const { callsMax } = context.layout.sizes;
    const { session } = slot;
    const { reachLow, reachHigh, root } = context.overlay;
    this.groupsLow = reachLow[root];
    this.groupsHigh = reachHigh[root];
    this.parking = new ClientParking(context, slot.participant, () => this.wakeUp());
    this.sessionAt = context.map.participant(slot.participant) + PARTICIPANT.session;
    const edges = context.edges(context.memory(slot.participant), NO_OBSERVER);
    const calls: CallListener = {
      replied: (call, group, reply, outcome, bytes) =>
        this.onReply(call, group, reply, outcome, bytes),
      answered: (call) => this.onAnswered(call),
      cancelled: ({ slot: place }) => {
        this.requests[place] = undefined;
      },
    };
    this.client = new ProtocolClient(edges, slot.slot, session, calls, nowUs());
    this.stalled = new StalledRequests(context, this.name, onStalled);
    this.latency = latencyOf(words, context.map, slot.participant);
    this.answeredAt = context.map.statisticsOf(slot.participant) + STATISTIC.messages;
    this.requests = new Array<Request | undefined>(callsMax).fill(undefined);
    this.offeredUs = new Float64Array(callsMax);
    this.tickets = new Float64Array(callsMax);
    const { trace } = context.config;
    if (trace !== undefined) this.trace = new ClientTrace(trace, session, context.era);
    // A session that is still there belongs to a client that crashed with unanswered messages.
    const crashed = Atomics.load(words, this.sessionAt);
    if (crashed !== 0) this.trace?.crashed(crashed);
    Atomics.store(words, this.sessionAt, session);
  }

  /**
   * Connects to a cluster that another thread, process or machine has started.
   * @param address  the `address` of the cluster; for `memory: 'processes'` also its name; for `memory: 'machines'` its
   *   configuration file, whose name ends in `.yaml` or `.yml`
   */
  static async connect(address: ClusterAddress, options: ConnectOptions = {}): Promise<Client> {
    if (typeof address === 'string' && CONFIG_FILE.test(address)) {
      return Client.join(address, options);
    }
    const arena = openArena(address);
    try {
      const context = ClusterContext.attach(arena);
      context.requireRunning(typeof address === 'string' ? address : 'of this process');
      return Client.attach(context, options, () => arena.close());
    } catch (error) {
      arena.close();
      throw error;
    }
  }

  /** @internal Connects by a configuration file, whatever its name. */
  static async join(
    path: string,
    options: ConnectOptions = {},
    onClosed: () => void = () => undefined,
  ): Promise<Client> {
    requireKnown(options, CONNECT_OPTIONS);
    const { joinFrom } = await import('./hosting/machines/join.js');
    const { context, slot } = await joinFrom(path);
    try {
      return new Client(context, slot, options.listener, onClosed);
    } catch (error) {
      slot.release();
      throw error;
    }
  }

  /** @internal Connects to a cluster that this thread has attached to. */
  static attach(
    context: ClusterContext,
    options: ConnectOptions,
    onClosed: () => void,
    onStalled?: (message: StallMessage) => void,
  ): Client {
    requireKnown(options, CONNECT_OPTIONS);
    return new Client(context, takeSlot(context), options.listener, onClosed, onStalled);
  }

  /** This client's name in traces. */
  get name(): string {
    return `c${this.client.session}`;
  }

  /** The number of unanswered messages, including those that wait for room. */
  get outstanding(): number {
    return this.client.outstanding + this.waiting.length;
  }

  /**
   * Delivers `payload` at all replicas of all these groups, in an order that all of them agree on, and returns the reply
   * of each group. Waits for room while too many messages are unanswered.
   */
  multicast(
    destinations: Iterable<number> | Destinations,
    payload: Uint8Array,
    options: MulticastOptions = NO_OPTIONS,
  ): Promise<Map<number, Uint8Array>> {
    return new Promise((resolve, reject) => {
      const { low, high } = this.destinations(destinations);
      this.checkPayload(payload);
      this.requireOpen();
      if (options !== NO_OPTIONS) requireKnown(options, MULTICAST_OPTIONS);
      this.send(new Request(low, high, payload, resolve, reject), options);
    });
  }

  /** @internal Sends a mark to all groups. Resolves to its id, once all of them have it. */
  mark(options: MulticastOptions = NO_OPTIONS): Promise<string> {
    return new Promise((resolve, reject) => {
      this.requireOpen();
      const { groupsLow, groupsHigh } = this;
      const done = (): void => resolve(request.markId);
      const request = new Request(groupsLow, groupsHigh, NO_PAYLOAD, done, reject, true);
      this.send(request, options);
    });
  }

  private send(request: Request, options: MulticastOptions): void {
    request.limit(options, (why, cause) => this.giveUp(request, why, cause));
    if (this.waiting.length > 0 || !this.tryOffer(request)) {
      // The caller may reuse its buffer after this call.
      request.payload = request.payload.slice();
      request.sinceUs = nowUs();
      this.waiting.push(request);
    }
    this.scheduleFlush();
  }

  /**
   * Multicasts without a promise: it allocates nothing, and returns `backPressured` instead of waiting for room. Replies
   * go to the `listener` that was passed to `connect`.
   * @throws TRAM_INVALID_DESTINATIONS, TRAM_INVALID_ARGUMENT, TRAM_PAYLOAD_TOO_LARGE
   */
  offer(destinations: Destinations, payload: Uint8Array): Offer | 'closed' {
    if (this.state !== 'open' || this.isClusterClosed) return 'closed';
    const { low, high } = this.destinations(destinations);
    this.checkPayload(payload);
    const offer = this.waiting.length > 0 ? 'backPressured' : this.client.offer(low, high, payload);
    if (offer === 'accepted') {
      const { slot } = this.client.lastCall;
      this.tickets[slot] = ++this.ticket;
      this.noteAccepted(this.client.lastCall);
    }
    this.scheduleFlush();
    return offer;
  }

  /** Makes a set of groups, for `offer`. @throws TRAM_INVALID_DESTINATIONS */
  destinations(groups: Iterable<number> | Destinations): Destinations {
    if (this.isValidSet(groups)) return groups;
    return destinationSet(groups, this.context.config.sizes.groups);
  }

  /** Called for every message. */
  private isValidSet(groups: Iterable<number> | Destinations): groups is Destinations {
    if (!isSet(groups)) return false;
    const { low, high } = groups;
    // Two words: bits beyond them would be lost.
    if ((low | 0) !== low || (high | 0) !== high) return false;
    return ((low & ~this.groupsLow) | (high & ~this.groupsHigh)) === 0 && (low | high) !== 0;
  }

  private checkPayload(payload: Uint8Array): void {
    const { payloadBytesMax } = this.context.config.sizes;
    if (!(payload instanceof Uint8Array)) {
      throw new TramError(
        'TRAM_INVALID_ARGUMENT',
        `a payload must be a Uint8Array, not ${typeof payload}`,
      );
    }
    if (payload.length > payloadBytesMax) {
      throw new TramError(
        'TRAM_PAYLOAD_TOO_LARGE',
        `a payload of ${payload.length} bytes exceeds payloadBytesMax (${payloadBytesMax})`,
      );
    }
  }

  private requireOpen(): void {
    if (this.state !== 'open') throw new TramError('TRAM_CLOSED', 'this client is closed');
    if (this.isClusterClosed) throw new TramError('TRAM_CLOSED', 'the cluster is closed');
  }

  /** Another process closed it. Those that this process started close their clients first. */
  private get isClusterClosed(): boolean {
    return this.context.arena.words[ARENA.state] === ARENA_STATE.closing;
  }

  private giveUp(request: Request, why: GivenUp, cause: unknown): void {
    const place = this.waiting.indexOf(request);
    if (place < 0) {
      request.giveUpSent(why, cause, this.stalled.stallOf(request));
      this.client.giveUp(request.call!);
      return;
    }
    this.waiting.splice(place, 1);
    request.giveUpWaiting(why, cause, this.stalled.roomStall(this.sent()));
    this.noteDrained();
  }

  private tryOffer(request: Request): boolean {
    const { low, high, payload, isMark } = request;
    const offer = isMark ? this.client.offerMark() : this.client.offer(low, high, payload);
    if (offer !== 'accepted') return false;
    const call = this.client.lastCall;
    this.requests[call.slot] = request;
    request.call = call;
    if (isMark) request.markId = messageId({ ...call, session: this.client.session });
    this.noteAccepted(call);
    request.sinceUs = this.offeredUs[call.slot];
    return true;
  }

  private noteAccepted(call: Call): void {
    this.offeredUs[call.slot] = nowUs();
    // Nobody delivers a mark.
    if (!call.isMark) this.trace?.multicast(call);
  }

  // --- in the event loop ---------------------------------------------------------------------

  /** Writes the accepted messages at the end of this turn. */
  private scheduleFlush(): void {
    if (this.isFlushScheduled) return;
    this.isFlushScheduled = true;
    queueMicrotask(() => {
      this.isFlushScheduled = false;
      if (this.state === 'closed') return;
      this.flush();
      this.progressUs = nowUs();
      this.schedulePoll();
    });
  }

  private flush(): void {
    // A message must be in the trace before a replica can deliver it.
    this.trace?.flush();
    this.client.flush();
    this.context.network?.flush(nowUs());
  }

  private schedulePoll(): void {
    if (this.isPollScheduled && this.pollTimer === undefined) return;
    const { parking } = this;
    const hasToWait = this.outstanding > 0;
    const isEager = hasToWait && nowUs() - this.progressUs < parking.eagerUs;
    const isParked = hasToWait && !isEager && parking.canBeWoken && parking.park();
    if (isEager) parking.awake();
    else if (!isParked) parking.absent();
    // If a host has replied meanwhile, it has not woken this thread.
    const isImmediate = isEager || (parking.canBeWoken && !isParked);
    if (!hasToWait || (this.isPollScheduled && !isImmediate)) return;
    this.isPollScheduled = true;
    // A call that waits for a deferred reply may have scheduled the timer: this message must not wait for it.
    clearTimeout(this.pollTimer);
    this.pollTimer = undefined;
    if (isImmediate) setImmediate(this.poll);
    else this.pollTimer = setTimeout(this.poll, POLL_MS);
  }

  /** A host has woken this thread. If no timer runs, it polls anyway. */
  private wakeUp(): void {
    if (this.pollTimer === undefined) return;
    clearTimeout(this.pollTimer);
    this.poll();
  }

  private readonly poll = (): void => {
    this.isPollScheduled = false;
    this.pollTimer = undefined;
    if (this.state === 'closed') return;
    const now = nowUs();
    this.context.network?.poll(now);
    this.parking.clearReady();
    if (this.client.doWork(now) > 0) this.progressUs = now;
    if (this.isClusterClosed && this.outstanding > 0) {
      this.giveUpAll('the cluster was closed');
      return;
    }
    while (this.waiting.length > 0 && this.tryOffer(this.waiting[0])) this.waiting.shift();
    if (this.state === 'closing') this.giveUpDeferred();
    this.flush();
    if (now - this.watchedUs >= STALLED_US) {
      this.watchedUs = now;
      this.stalled.watch(this.sent(), this.waiting, now);
      // It has failed those that can't be answered.
      for (const { isSettled, call } of this.sent()) if (isSettled) this.client.giveUp(call!);
    }
    this.noteDrained();
    this.schedulePoll();
  };

  /** Those whose message was sent and is unanswered, also if their call has failed. */
  private sent(): Request[] {
    return this.requests.filter((request) => request !== undefined);
  }

  private onReply(
    call: Call,
    group: number,
    reply: Uint8Array,
    outcome: ReplyOutcome,
    bytes: number,
  ): void {
    if (!call.isMark) this.trace?.answered(call, group);
    const request = this.requests[call.slot];
    if (request === undefined) {
      this.listener?.replied(this.tickets[call.slot], group, reply, outcome);
    } else {
      const { replyBytesMax } = this.context.config.sizes;
      request.replied(group, reply, outcome, bytes, replyBytesMax);
    }
  }

  private onAnswered(call: Call): void {
    const latencyUs = nowUs() - this.offeredUs[call.slot];
    this.latency.record(latencyUs * 1000);
    this.context.arena.words[this.answeredAt]++;
    const request = this.requests[call.slot];
    if (request === undefined) {
      this.listener?.answered(this.tickets[call.slot]);
      return;
    }
    this.requests[call.slot] = undefined;
    const error = request.settle();
    if (multicasts.hasSubscribers) {
      const destinations = groupsOf(call.destinationsLow, call.destinationsHigh);
      multicasts.publish({ client: this.name, destinations, latencyUs, error });
    }
  }

  // --- the end -------------------------------------------------------------------------------

  /**
   * Accepts no more messages, waits for the replies to all accepted ones, and releases the slot. Does not wait for replies
   * that are deferred: it gives up those calls.
   */
  async close(): Promise<void> {
    if (this.state === 'closed') return;
    this.state = 'closing';
    if (this.outstanding > 0) {
      await new Promise<void>((resolve) => {
        const previous = this.onDrained;
        this.onDrained = () => {
          previous?.();
          resolve();
        };
        this.schedulePoll();
      });
    }
    this.end();
  }

  private giveUpDeferred(): void {
    this.client.giveUpWaiting();
    for (const request of this.requests) {
      if (request?.call?.isGivenUp && !request.isSettled) request.abandon('the client was closed');
    }
  }

  private noteDrained(): void {
    if (this.outstanding === 0) this.onDrained?.();
  }

  /** Gives up at once. Unanswered messages may still be delivered. */
  destroy(): void {
    this.giveUpAll('the client was destroyed');
  }

  private giveUpAll(why: string): void {
    if (this.state === 'closed') return;
    for (const request of this.requests) request?.abandon(why);
    for (const request of this.waiting.splice(0)) request.abandon(why);
    this.end();
  }

  private end(): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    this.trace?.close();
    // The session stays if messages are unanswered: the next client of the slot records a crash, for the judge.
    if (this.client.outstanding === 0) Atomics.store(this.context.arena.words, this.sessionAt, 0);
    this.parking.end();
    this.slot.release();
    this.onDrained?.();
    this.onClosed();
    this.listener?.closed?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
