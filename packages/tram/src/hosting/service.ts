/**
 * The user's service: a module that every replica loads for itself. The module's variables are the state of that
 * one replica. Node loads some modules only once, for all replicas: those in CommonJS, and those that the module imports.
 * A service whose state would be in such a module is refused.
 */
import { types } from 'node:util';
import { TramError, type TramErrorOptions } from '../errors.js';
import {
  type Application,
  DEFERRED,
  type Deferred,
  type Delivery,
  type Replier,
} from '../protocol/edges.js';
import { messageId } from '../protocol/layout.js';
import { contains } from '../protocol/overlay.js';
import { describeThrown } from './origin.js';
import { type Exports, importModule, nameOf } from './service-module.js';

/** A message as a service sees it. The object and its payload are reused after the call: copy what you keep. */
export interface Message {
  readonly payload: Uint8Array;
  /** The destination groups, ascending. */
  readonly destinations: readonly number[];
  /** Unique in the cluster, and the same at every replica. */
  readonly id: string;
}

/** The replica that runs a service, and what the service can do there besides returning replies. */
export interface ServiceContext {
  readonly group: number;
  /** The replica's index in its group. Must not influence the state or a reply. */
  readonly member: number;
  /**
   * Ordered time: milliseconds since 1970, as of the last tick that the group has delivered. It never goes back, and is
   * the same at every replica at the same place in the order. 0 if the service has no `ticks`, and in its first state; a
   * group delivers a tick before its first message.
   */
  readonly nowMs: number;
  /** In `deliver`: `return context.defer()` lets the message wait. Its reply comes later, by `reply`. */
  defer(): Deferred;
  /**
   * In `deliver`, `abandoned` and `tick`: replies to a message that waits. False if no message with this id waits, because it has
   * its reply already, was abandoned, or was never deferred by this group.
   */
  reply(id: string, reply?: Uint8Array): boolean;
}

/** How often ordered time advances. */
export interface Ticks {
  /** At least 1. */
  readonly everyMs: number;
}

/** What a service does with a message. */
interface Deliver {
  /**
   * Deterministic: the same messages in the same order give the same state and replies. If it throws, or returns anything
   * but a Uint8Array, nothing, or `context.defer()`, the message fails at all replicas alike.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a service that does not reply returns nothing
  deliver(message: Message, context: ServiceContext): Uint8Array | Deferred | void;
  /**
   * A message that waited does so no longer: its client has given it up (timeout, abort, close) or has ended. Called at the
   * same place between deliveries at all replicas. The changes that the message has made to the state stay.
   */
  abandoned?(id: string, context: ServiceContext): void;
}

/** How a service uses ordered time. */
interface Tick {
  /** Asks for ordered time: without it there are no ticks, and `nowMs` stays 0. */
  readonly ticks?: Ticks | undefined;
  /** Called with each tick, in order with the messages. Deterministic, like `deliver`. If it throws, it does so everywhere. */
  tick?(context: ServiceContext): void;
}

/** A service that keeps no state. */
export interface StatelessService extends Deliver, Tick {
  snapshot?: undefined;
  restore?: undefined;
}

/** A service that keeps state. */
export interface StatefulService extends Deliver, Tick {
  /**
   * The whole state, as it is at the time of the call: at once, or in pieces, for example by a generator. The first piece is
   * asked for at once. Messages are delivered between the others, and must not change what the pieces hold. All pieces
   * together are the snapshot. If it is not needed any more, `return()` of the iterator is called.
   */
  snapshot(context: ServiceContext): Uint8Array | Iterable<Uint8Array>;
  /** Replaces the state by one that `snapshot` returned. Pieces have been put together. */
  restore(snapshot: Uint8Array, context: ServiceContext): void;
}

/** What the module of a service exports: by name, or as its default export. */
export type Service = StatelessService | StatefulService;

export function groupsOf(low: number, high: number): number[] {
  const groups: number[] = [];
  for (let group = 0; group < 64; group++) if (contains(low, high, group)) groups.push(group);
  return groups;
}

/** Wraps a delivery. Fields that cost something are computed when the service reads them. */
class ServiceMessage implements Message {
  delivery!: Delivery;

  get payload(): Uint8Array {
    return this.delivery.payload;
  }

  get destinations(): readonly number[] {
    return groupsOf(this.delivery.destinationsLow, this.delivery.destinationsHigh);
  }

  get id(): string {
    return messageId(this.delivery);
  }
}

/** The context of one replica's service. One for all its calls, which set and clear what is valid during the call only. */
class ReplicaContext implements ServiceContext {
  nowMs = 0;
  /** During `deliver`, `abandoned` and `tick`. */
  replier: Replier | undefined;
  /** During `deliver`. */
  message: ServiceMessage | undefined;

  constructor(
    readonly group: number,
    readonly member: number,
  ) {}

  /** `call` of the service may reply. */
  run(replier: Replier, call: () => void): void {
    this.replier = replier;
    try {
      call();
    } finally {
      this.replier = undefined;
    }
  }

  defer(): Deferred {
    if (this.message !== undefined) return DEFERRED;
    throw new TypeError('defer() is only for deliver(): there is no other message to defer');
  }

  reply(id: string, reply?: Uint8Array): boolean {
    if (this.replier === undefined) {
      throw new TypeError(
        'reply() is only for deliver(), abandoned() and tick(), where replies have their place in the order',
      );
    }
    if (reply !== undefined && !types.isUint8Array(reply)) {
      throw new TypeError(`reply() takes a Uint8Array or nothing, and it got ${kindOf(reply)}`);
    }
    if (this.replier.reply(id, reply)) return true;
    if (id !== this.message?.id) return false;
    throw new TypeError('reply() is not for the message that is being delivered: return its reply');
  }
}

/** @internal The service has failed, and its host continues. */
export type ServiceFailure =
  | {
      readonly in: 'deliver' | 'snapshot';
      readonly group: number;
      readonly member: number;
      readonly error: string;
    }
  | { readonly in: 'background'; readonly error: string };

/** @internal For the log. */
export function describeFailure(failure: ServiceFailure): string {
  const { error } = failure;
  if (failure.in === 'background') return `the service failed outside of its functions: ${error}`;
  const { group, member } = failure;
  return failure.in === 'deliver'
    ? `the service threw at g${group}/${member}: ${error}`
    : `snapshot() of the service failed at g${group}/${member}, which continues. A replica of g${group} that is behind ` +
        `can't catch up until snapshot() succeeds: ${error}`;
}

const NOTHING = new Uint8Array(0);

/** @internal The default service: empty replies, no state. */
export const NO_SERVICE: Application = {
  deliver: () => undefined,
  tick: () => undefined,
  snapshot: () => NOTHING,
  restore: () => undefined,
};

/**
 * @internal Loads the service of one replica, and tries to restore the first snapshot that it takes.
 *
 * @param href  the module's URL
 * @param incarnation  makes each incarnation load a new instance of the module
 * @throws TRAM_SERVICE_INVALID
 */
export async function loadService(
  href: string,
  { group, member }: Pick<ServiceContext, 'group' | 'member'>,
  incarnation: number,
): Promise<Application> {
  const context = new ReplicaContext(group, member);
  const exported = await importModule(href, `replica=${group}.${member}.${incarnation}`);
  const service = serviceOf(exported, href, context);
  requireOwn(service, href, context);
  tryRestore(service, href, context);
  const message = new ServiceMessage();
  const { ticks } = service;
  return {
    tickEveryUs: ticks && Math.round(ticks.everyMs * 1000),
    deliver: (delivery, replier) => {
      message.delivery = delivery;
      context.message = message;
      context.replier = replier;
      try {
        const reply: unknown = service.deliver(message, context);
        // Unlike `instanceof`, this does not accept a proxy, whose length would throw where nobody catches it.
        if (reply === undefined || reply === DEFERRED || types.isUint8Array(reply)) return reply;
        throw wrongResult('deliver', reply, 'a Uint8Array, context.defer() or nothing');
      } finally {
        context.message = undefined;
        context.replier = undefined;
      }
    },
    abandoned: (id, replier) => {
      context.run(replier, () => requireNoPromise('abandoned', service.abandoned?.(id, context)));
    },
    tick: (orderedUs, replier) => {
      context.nowMs = millisecondsOf(orderedUs);
      context.run(replier, () => requireNoPromise('tick', service.tick?.(context)));
    },
    snapshot: () => snapshotOf(service, context),
    restore: (snapshot, orderedUs) => {
      context.nowMs = millisecondsOf(orderedUs);
      restore(service, snapshot, context);
    },
  };
}

function millisecondsOf(orderedUs: number): number {
  return Math.floor(orderedUs / 1000);
}

/** What a module exports by name, or as its default export. */
function serviceOf(exported: Exports, href: string, context: ServiceContext): Service {
  const byDefault = Object(exported.default);
  // TypeScript that is compiled to CommonJS has its default export one step further.
  const candidates: Partial<Service & Definition>[] = [
    exported,
    byDefault,
    Object(byDefault.default),
  ];
  const found =
    candidates.find((one) => typeof one.deliver === 'function' || isDefinition(one)) ?? byDefault;
  const service = isDefinition(found) ? makeService(found, href, context) : found;
  if (typeof service.deliver !== 'function') {
    throw invalid(
      `the service ${nameOf(href)} exports no function "deliver", and no default export that has one`,
    );
  }
  if ((service.snapshot === undefined) !== (service.restore === undefined)) {
    throw invalid(
      `the service ${nameOf(href)} exports only one of "snapshot" and "restore": it needs both, or has no state`,
    );
  }
  if (service.abandoned !== undefined && typeof service.abandoned !== 'function') {
    throw invalid(`the service ${nameOf(href)} exports "abandoned", which is not a function`);
  }
  requireTicks(service, href);
  return service as Service;
}

function requireTicks({ ticks, tick }: Partial<Service>, href: string): void {
  if (ticks === undefined) {
    if (tick === undefined) return;
    throw invalid(
      `the service ${nameOf(href)} exports "tick" but not "ticks", so it would never be called`,
      { hint: 'Export `ticks = { everyMs: 100 }`, or how often you need it.' },
    );
  }
  const everyMs: unknown = Object(ticks).everyMs;
  if (typeof everyMs !== 'number' || !(everyMs >= 1) || everyMs === Number.POSITIVE_INFINITY) {
    throw invalid(
      `the service ${nameOf(href)} exports "ticks", whose everyMs must be a number of at least 1, not ${String(everyMs)}`,
    );
  }
  if (tick !== undefined && typeof tick !== 'function') {
    throw invalid(`the service ${nameOf(href)} exports "tick", which must be a function`);
  }
}

/** What `defineService` returns: it makes a service for each replica. */
interface Definition {
  serviceOf(context: ServiceContext): Service;
}

function isDefinition(found: Partial<Definition>): found is Definition {
  return typeof found.serviceOf === 'function';
}

function makeService(definition: Definition, href: string, context: ServiceContext): Service {
  try {
    return definition.serviceOf(context);
  } catch (cause) {
    throw invalid(`the service ${nameOf(href)} can't make its first state: ${firstLine(cause)}`, {
      cause,
    });
  }
}

/** By what holds the state of a service: the replica that it belongs to. */
const owners = new WeakMap<object, string>();

/** @throws TRAM_SERVICE_INVALID if another replica of this host has the same service */
function requireOwn(service: Service, href: string, { group, member }: ServiceContext): void {
  // All instances of a class have the same methods. There, the instance holds the state.
  const holder = Object.hasOwn(service, 'deliver') ? service.deliver : service;
  const replica = `g${group}/${member}`;
  const owner = owners.get(holder) ?? replica;
  if (owner !== replica) {
    throw invalid(
      `the service ${nameOf(href)} would share its state between replicas: ${owner} and ${replica} got the same ` +
        '"deliver", because Node loads its module once for all replicas of a host',
      {
        hint:
          'Make the service an ECMAScript module: "type": "module" in package.json, or a file that ends in .mjs. Define ' +
          '"deliver" in that module itself, with its state, not in one that it imports. Or use defineService, which keeps ' +
          'a state for each replica.',
      },
    );
  }
  owners.set(holder, replica);
}

function firstLine(thrown: unknown): string {
  return describeThrown(thrown).split('\n', 1)[0];
}

function invalid(message: string, options?: TramErrorOptions): TramError {
  return new TramError('TRAM_SERVICE_INVALID', message, options);
}

/**
 * Finds a service that can't restore its snapshots before the cluster depends on them. Every incarnation of every replica
 * begins with this, so all of them begin with the same state.
 */
function tryRestore(service: Service, href: string, context: ServiceContext): void {
  if (service.snapshot === undefined) return;
  let step = 'take a snapshot of its first state';
  try {
    const snapshot = wholeOf(snapshotOf(service, context));
    step = 'restore the snapshot of its first state';
    requireNoPromise('restore', service.restore(snapshot, context));
  } catch (cause) {
    throw invalid(`the service ${nameOf(href)} can't ${step}: ${firstLine(cause)}`, { cause });
  }
}

const SNAPSHOTS = 'a Uint8Array, or an iterable of them';

function snapshotOf(service: Service, context: ServiceContext): Uint8Array | Iterable<Uint8Array> {
  if (service.snapshot === undefined) return NOTHING;
  const state: unknown = service.snapshot(context);
  if (types.isUint8Array(state)) return state;
  // Other arrays of numbers are iterable too.
  if (isIterable(state) && !ArrayBuffer.isView(state)) return checkedPieces(state);
  throw wrongResult('snapshot', state, SNAPSHOTS);
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

function* checkedPieces(pieces: Iterable<unknown>): Generator<Uint8Array> {
  for (const piece of pieces) {
    if (!types.isUint8Array(piece)) {
      throw new TypeError(`snapshot() must return ${SNAPSHOTS}, and it gave ${kindOf(piece)}`);
    }
    yield piece;
  }
}

/** A copy of a snapshot, as replicas receive it. */
function wholeOf(snapshot: Uint8Array | Iterable<Uint8Array>): Uint8Array {
  if (types.isUint8Array(snapshot)) return snapshot.slice();
  const pieces: Uint8Array[] = [];
  for (const piece of snapshot) pieces.push(piece.slice());
  return new Uint8Array(Buffer.concat(pieces));
}

function requireNoPromise(name: string, result: unknown): void {
  if (result instanceof Promise) throw wrongResult(name, result, 'nothing');
}

/** Functions of a service must not be asynchronous: a replica can't wait for them. */
function wrongResult(name: string, value: unknown, allowed: string): TypeError {
  if (value instanceof Promise) {
    // Otherwise its rejection would be reported as well.
    value.catch(() => undefined);
    return new TypeError(
      `${name}() must return ${allowed}, and it returned a promise: it must not be asynchronous`,
    );
  }
  return new TypeError(`${name}() must return ${allowed}, and it returned ${kindOf(value)}`);
}

/** `null`, `a string`, `an object of class Map`: for an error. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value !== 'object') return `a ${typeof value}`;
  const name = value.constructor?.name;
  return name === undefined ? 'an object without a class' : `an object of class ${name}`;
}

/** @throws if the service does. That ends the host: the replica can't continue with half a state. */
function restore(service: Service, snapshot: Uint8Array, context: ServiceContext): void {
  try {
    requireNoPromise('restore', service.restore?.(snapshot, context));
  } catch (error) {
    const { group, member } = context;
    const why = describeThrown(error);
    throw new Error(`restore() of the service failed at g${group}/${member}: ${why}`);
  }
}
