/**
 * The client that applications use: promises over `protocol/client`, in the event loop of its thread.
 *
 * Messages that are multicast in one turn of the event loop are written together. While replies are
 * awaited the client looks for them with every turn, for a while; then, now and then. It needs nothing
 * while none are.
 */
import { channel } from 'node:diagnostics_channel';
import { TramError } from './errors.js';
import { nowUs } from './hosting/clock.js';
import { ClusterContext } from './hosting/cluster-context.js';
import type { Histogram } from './hosting/histogram.js';
import { openArena } from './hosting/open-arena.js';
import { groupsOf, messageId } from './hosting/service.js';
import { type ClientSlot, takeSlot } from './hosting/slot.js';
import { latencyOf, STATISTIC } from './hosting/statistics.js';
import { TraceFile } from './hosting/trace.js';
import { ARENA, ARENA_STATE, PROCESS } from './memory/arena.js';
import {
  type Call,
  type CallListener,
  type Offer,
  Client as ProtocolClient,
  type ReplyOutcome,
} from './protocol/data-path/client.js';
import { NO_OBSERVER } from './protocol/edges.js';

export interface MulticastOptions {
  readonly signal?: AbortSignal;
  /** How long to wait for room and for all replies. By default 30 seconds. */
  readonly timeoutMs?: number;
}

/** Where a cluster is: its memory, the name or path of the file that holds it, or its configuration file. */
export type ClusterAddress = ArrayBufferLike | string;

/** A set of groups, for `offer`: made once, used often. */
export interface Destinations {
  readonly low: number;
  readonly high: number;
}

/** Told of the replies to messages that were offered. `reply` is valid during the call only. */
export interface OfferListener {
  /**
   * @param ticket  as `client.ticket` was after the offer
   * @param outcome  if it is not `ok`, the message was delivered but has no reply
   */
  replied(ticket: number, group: number, reply: Uint8Array, outcome: ReplyOutcome): void;
  /** All destinations have replied. */
  answered(ticket: number): void;
}

export interface ConnectOptions {
  /** For `offer`. */
  readonly listener?: OfferListener;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** How long to look for replies with every turn of the event loop before doing so by timer only. */
const EAGER_US = 2000;
const PATIENT_MS = 1;
/** The longest that a timer can wait. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** A cluster across machines is known by its configuration. */
const CONFIG_FILE = /\.ya?ml$/;

const multicasts = channel('tram:multicast');
/** One `multicast`, from the call to its promise's end. */
interface Request {
  readonly low: number;
  readonly high: number;
  payload: Uint8Array;
  readonly replies: Map<number, Uint8Array>;
  failure: TramError | undefined;
  resolve(replies: Map<number, Uint8Array>): void;
  reject(error: TramError): void;
  /** Stop waiting for the time and the signal. */
  release(): void;
}

type State = 'open' | 'closing' | 'closed';

export class Client implements AsyncDisposable {
  /** Names the message that the last accepted `offer` took. */
  ticket = 0;
  private readonly client: ProtocolClient;
  private readonly trace: TraceFile | undefined;
  private readonly latency: Histogram;
  private readonly answeredAt: number;
  private readonly sessionAt: number;
  /** By call slot. */
  private readonly requests: (Request | undefined)[];
  private readonly offeredUs: Float64Array;
  private readonly tickets: Float64Array;
  private readonly waiting: Request[] = [];
  private state: State = 'open';
  private isScheduled = false;
  private flushes = false;
  private progressUs = 0;
  private onDrained: (() => void) | undefined;

  private constructor(
    private readonly context: ClusterContext,
    private readonly slot: ClientSlot,
    private readonly listener: OfferListener | undefined,
    private readonly onClosed: () => void,
  ) {
    const { words } = context.arena;
    const { callsMax } = context.layout.sizes;
    const { session } = slot;
    this.sessionAt = context.map.process(slot.process) + PROCESS.session;
    const edges = context.edges(context.memory(slot.process), NO_OBSERVER);
    const calls: CallListener = {
      replied: (call, group, reply, outcome) => this.onReply(call, group, reply, outcome),
      answered: (call) => this.onAnswered(call),
    };
    this.client = new ProtocolClient(edges, slot.slot, session, calls, nowUs());
    this.latency = latencyOf(words, context.map, slot.process);
    this.answeredAt = context.map.statisticsOf(slot.process) + STATISTIC.messages;
    this.requests = new Array<Request | undefined>(callsMax).fill(undefined);
    this.offeredUs = new Float64Array(callsMax);
    this.tickets = new Float64Array(callsMax);
    const { trace } = context.config;
    if (trace !== undefined) this.trace = new TraceFile(trace, `client-${session}`);
    this.noteCrashed(Atomics.load(words, this.sessionAt));
    Atomics.store(words, this.sessionAt, session);
  }

  /** Whoever had the slot before left messages behind. Written down before the slot forgets it. */
  private noteCrashed(session: number): void {
    if (session === 0) return;
    this.trace?.add({ event: 'client-crash', client: `c${session}` });
    this.trace?.flush();
  }

  /**
   * A client of a cluster that another thread, process or machine has started.
   * @param address  the `address` of the cluster or, for `memory: 'processes'`, its name or, for `memory: 'machines'`, its
   *   configuration: a file whose name ends in `.yaml`
   */
  static async connect(address: ClusterAddress, options: ConnectOptions = {}): Promise<Client> {
    if (typeof address === 'string' && CONFIG_FILE.test(address)) {
      return Client.join(address, options);
    }
    const arena = openArena(address);
    try {
      const context = ClusterContext.attach(arena);
      requireRunning(context, typeof address === 'string' ? address : 'of this process');
      return Client.attach(context, options, () => arena.close());
    } catch (error) {
      arena.close();
      throw error;
    }
  }

  /** @internal For a configuration file of any name. */
  static async join(path: string, options: ConnectOptions = {}): Promise<Client> {
    const { joinFrom } = await import('./hosting/machines/join.js');
    const { context, slot } = await joinFrom(path);
    try {
      return new Client(context, slot, options.listener, () => undefined);
    } catch (error) {
      slot.release();
      throw error;
    }
  }

  /** @internal For `Cluster.connect`. */
  static attach(context: ClusterContext, options: ConnectOptions, onClosed: () => void): Client {
    return new Client(context, takeSlot(context), options.listener, onClosed);
  }

  /** This client's name in traces. */
  get name(): string {
    return `c${this.client.session}`;
  }

  /** Messages that not all destinations have replied to, and those that wait for room. */
  get outstanding(): number {
    return this.client.outstanding + this.waiting.length;
  }

  /**
   * Deliver `payload` at all replicas of all these groups, in an order that all of them agree on. The
   * reply of every group. Waits for room if too much is under way.
   */
  multicast(
    destinations: Iterable<number> | Destinations,
    payload: Uint8Array,
    options: MulticastOptions = {},
  ): Promise<Map<number, Uint8Array>> {
    return new Promise((resolve, reject) => {
      const { low, high } = this.destinations(destinations);
      this.checkPayload(payload);
      this.requireOpen();
      const { signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
      checkTimeout(timeoutMs);
      if (signal?.aborted) throw abortedEarly(signal);
      const request: Request = {
        low,
        high,
        payload,
        replies: new Map(),
        failure: undefined,
        resolve,
        reject,
        release: () => undefined,
      };
      this.limit(request, signal, timeoutMs);
      if (this.waiting.length > 0 || !this.tryOffer(request)) {
        // The caller may reuse its buffer once we return.
        request.payload = payload.slice();
        this.waiting.push(request);
      }
      this.flushSoon();
    });
  }

  /**
   * The same without a promise: nothing is allocated, and a full ring is a result. Replies go to the
   * `listener` given to `connect`.
   */
  offer(destinations: Destinations, payload: Uint8Array): Offer | 'closed' {
    if (this.state !== 'open' || this.isClusterClosed) return 'closed';
    const { low, high } = this.destinations(destinations);
    this.checkPayload(payload);
    const offer = this.waiting.length > 0 ? 'backPressured' : this.client.offer(low, high, payload);
    if (offer === 'accepted') {
      const { slot } = this.client.lastCall;
      this.tickets[slot] = ++this.ticket;
      this.taken(this.client.lastCall);
    }
    this.flushSoon();
    return offer;
  }

  /** A set of groups. @throws TRAM_INVALID_DESTINATIONS */
  destinations(groups: Iterable<number> | Destinations): Destinations {
    if (this.isKnown(groups)) return groups;
    const count = this.context.config.sizes.groups;
    let low = 0;
    let high = 0;
    for (const group of listOf(groups)) {
      if (!Number.isInteger(group) || group < 0 || group >= count) {
        throw new TramError(
          'TRAM_INVALID_DESTINATIONS',
          `unknown destination group ${group}: there are groups 0 to ${count - 1}`,
        );
      }
      if (group < 32) low |= 1 << group;
      else high |= 1 << (group - 32);
    }
    if ((low | high) === 0) {
      throw new TramError(
        'TRAM_INVALID_DESTINATIONS',
        'a message needs at least one destination group',
      );
    }
    return { low, high };
  }

  /** A set that this function has made needs no second look. */
  private isKnown(groups: Iterable<number> | Destinations): groups is Destinations {
    if (typeof groups !== 'object' || groups === null || !('low' in groups)) return false;
    const { reachLow, reachHigh, root } = this.context.overlay;
    const outside = (groups.low & ~reachLow[root]!) | (groups.high & ~reachHigh[root]!);
    return outside === 0 && (groups.low | groups.high) !== 0;
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

  /** By somebody else: whoever closes it here closes its clients first. */
  private get isClusterClosed(): boolean {
    return this.context.arena.words[ARENA.state] === ARENA_STATE.closing;
  }

  /** Give up on a request after its time, or when its signal says so. */
  private limit(request: Request, signal: AbortSignal | undefined, timeoutMs: number): void {
    const timer =
      timeoutMs === Number.POSITIVE_INFINITY
        ? undefined
        : setTimeout(
            () => this.giveUp(request, 'timeout', undefined),
            Math.min(timeoutMs, TIMEOUT_MS_MAX),
          );
    const onAbort = (): void => this.giveUp(request, 'abort', signal!.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    request.release = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    };
  }

  private giveUp(request: Request, why: 'timeout' | 'abort', cause: unknown): void {
    request.release();
    const place = this.waiting.indexOf(request);
    if (place >= 0) {
      this.waiting.splice(place, 1);
      const code = why === 'timeout' ? 'TRAM_TIMEOUT' : 'TRAM_ABORTED';
      request.reject(
        new TramError(code, `${why} while waiting for room: nothing was sent`, { cause }),
      );
      this.noteDrained();
      return;
    }
    // The message goes on; whatever comes of it, nobody waits for it any more.
    request.reject(
      new TramError(
        'TRAM_OUTCOME_UNKNOWN',
        `${why} after the message was sent: it may still be delivered`,
        {
          cause,
        },
      ),
    );
  }

  private tryOffer(request: Request): boolean {
    if (this.client.offer(request.low, request.high, request.payload) !== 'accepted') return false;
    const call = this.client.lastCall;
    this.requests[call.slot] = request;
    this.taken(call);
    return true;
  }

  private taken(call: Call): void {
    this.offeredUs[call.slot] = nowUs();
    if (this.trace === undefined) return;
    const { entry, number, destinationsLow, destinationsHigh } = call;
    const id = messageId(this.client.session, entry, number);
    const destinations = groupsOf(destinationsLow, destinationsHigh);
    this.trace.add({ event: 'multicast', id, client: this.name, destinations, entry });
  }

  // --- in the event loop ---------------------------------------------------------------------

  /** Write what was offered, at the end of this turn. */
  private flushSoon(): void {
    if (this.flushes) return;
    this.flushes = true;
    queueMicrotask(() => {
      this.flushes = false;
      if (this.state === 'closed') return;
      this.flush();
      this.progressUs = nowUs();
      this.lookSoon();
    });
  }

  private flush(): void {
    // A message must be in the trace before anybody can deliver it.
    this.trace?.flush();
    this.client.flush();
    this.context.network?.flush(nowUs());
  }

  private lookSoon(): void {
    if (this.isScheduled || this.outstanding === 0) return;
    this.isScheduled = true;
    if (nowUs() - this.progressUs < EAGER_US) setImmediate(this.look);
    else setTimeout(this.look, PATIENT_MS);
  }

  private readonly look = (): void => {
    this.isScheduled = false;
    if (this.state === 'closed') return;
    const now = nowUs();
    this.context.network?.poll(now);
    if (this.client.doWork(now) > 0) this.progressUs = now;
    if (this.isClusterClosed && this.outstanding > 0) {
      this.giveUpAll('the cluster was closed');
      return;
    }
    while (this.waiting.length > 0 && this.tryOffer(this.waiting[0]!)) this.waiting.shift();
    this.flush();
    this.noteDrained();
    this.lookSoon();
  };

  private onReply(call: Call, group: number, reply: Uint8Array, outcome: ReplyOutcome): void {
    const request = this.requests[call.slot];
    if (request === undefined) {
      this.listener?.replied(this.tickets[call.slot]!, group, reply, outcome);
    } else if (outcome === 'ok') {
      request.replies.set(group, reply.slice());
    } else {
      request.failure ??= replyError(group, outcome, this.context.config.sizes.replyBytesMax);
    }
  }

  private onAnswered(call: Call): void {
    const latencyUs = nowUs() - this.offeredUs[call.slot]!;
    this.latency.record(latencyUs * 1000);
    this.context.arena.words[this.answeredAt]!++;
    const request = this.requests[call.slot];
    if (request === undefined) {
      this.listener?.answered(this.tickets[call.slot]!);
      return;
    }
    this.requests[call.slot] = undefined;
    request.release();
    if (request.failure === undefined) request.resolve(request.replies);
    else request.reject(request.failure);
    if (multicasts.hasSubscribers) {
      const destinations = groupsOf(call.destinationsLow, call.destinationsHigh);
      multicasts.publish({ client: this.name, destinations, latencyUs, error: request.failure });
    }
  }

  // --- the end -------------------------------------------------------------------------------

  /** Take no more messages, wait for the replies to all that were taken, and give the slot back. */
  async close(): Promise<void> {
    if (this.state === 'closed') return;
    this.state = 'closing';
    if (this.outstanding > 0) {
      await new Promise<void>((resolve) => {
        const before = this.onDrained;
        this.onDrained = () => {
          before?.();
          resolve();
        };
        this.lookSoon();
      });
    }
    this.end();
  }

  private noteDrained(): void {
    if (this.outstanding === 0) this.onDrained?.();
  }

  /** Give up at once. Messages that are not answered yet may still be delivered. */
  destroy(): void {
    this.giveUpAll('the client was destroyed');
  }

  private giveUpAll(why: string): void {
    if (this.state === 'closed') return;
    for (const request of this.requests) {
      if (request === undefined) continue;
      request.release();
      request.reject(
        new TramError('TRAM_OUTCOME_UNKNOWN', `${why}: the message may still be delivered`),
      );
    }
    for (const request of this.waiting.splice(0)) {
      request.release();
      request.reject(new TramError('TRAM_CLOSED', `${why}: nothing was sent`));
    }
    this.end();
  }

  private end(): void {
    if (this.state === 'closed') return;
    this.state = 'closed';
    this.trace?.close();
    // Whoever takes the slot next, or judges the run, is told if the fate of a message was left open.
    if (this.client.outstanding === 0) Atomics.store(this.context.arena.words, this.sessionAt, 0);
    this.slot.release();
    this.onDrained?.();
    this.onClosed();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function listOf(groups: Iterable<number> | Destinations): Iterable<number> {
  if (typeof groups === 'object' && groups !== null) {
    if (Symbol.iterator in groups) return groups;
    if ('low' in groups && 'high' in groups) return groupsOf(groups.low, groups.high);
  }
  throw new TramError(
    'TRAM_INVALID_DESTINATIONS',
    `destinations must be a list or a set of group numbers, not ${typeof groups}`,
  );
}

function requireRunning({ arena }: ClusterContext, name: string): void {
  if (Atomics.load(arena.words, ARENA.state) === ARENA_STATE.running) return;
  throw new TramError('TRAM_CLOSED', `the cluster ${name} is starting or closing`, {
    retry: 'safe',
  });
}

function checkTimeout(timeoutMs: number): void {
  if (typeof timeoutMs === 'number' && timeoutMs > 0) return;
  throw new TramError(
    'TRAM_INVALID_ARGUMENT',
    `timeoutMs must be a positive number, not ${timeoutMs}`,
  );
}

function abortedEarly(signal: AbortSignal): TramError {
  return new TramError('TRAM_ABORTED', 'aborted before the message was sent', {
    cause: signal.reason,
  });
}

function replyError(group: number, outcome: ReplyOutcome, replyBytesMax: number): TramError {
  return outcome === 'tooLarge'
    ? new TramError(
        'TRAM_REPLY_TOO_LARGE',
        `the message was delivered, but the reply of group ${group} exceeds replyBytesMax (${replyBytesMax})`,
      )
    : new TramError(
        'TRAM_SERVICE_FAILED',
        `the message was delivered, but the service of group ${group} threw an error`,
      );
}
