/**
 * The user's service: a module that every replica loads for itself. The module's variables are the state of that
 * one replica.
 */
import { TramError } from '../errors.js';
import type { Application, Delivery } from '../protocol/edges.js';
import { contains } from '../protocol/overlay.js';

/** A message as a service sees it. The object and its payload are reused after the call: copy what you keep. */
export interface Message {
  readonly payload: Uint8Array;
  /** The destination groups, ascending. */
  readonly destinations: readonly number[];
  /** Unique in the cluster, and the same at every replica. */
  readonly id: string;
}

/** The replica that runs a service. */
export interface ServiceContext {
  readonly group: number;
  /** The replica's index in its group. Must not influence the state or a reply. */
  readonly member: number;
}

/** What the module of a service exports. */
export interface Service {
  /** Deterministic: the same messages in the same order give the same state and replies. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a service that does not reply returns nothing
  deliver(message: Message, context: ServiceContext): Uint8Array | void;
  /** The whole state. A service without `snapshot` has no state. */
  snapshot?(context: ServiceContext): Uint8Array;
  /** Replaces the state by one that `snapshot` returned. */
  restore?(snapshot: Uint8Array, context: ServiceContext): void;
}

/** @internal `c12:3.456`: the client's session, the entry group, and the number in that group. */
export function messageId({
  session,
  entryGroup,
  number,
}: Pick<Delivery, 'session' | 'entryGroup' | 'number'>): string {
  return `c${session}:${entryGroup}.${number}`;
}

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

/** @internal A function of the service has thrown at a replica, which continues. */
export interface ServiceFailure {
  readonly group: number;
  readonly member: number;
  readonly in: 'deliver' | 'snapshot';
  readonly error: string;
}

/** @internal For the log. */
export function describeFailure(failure: ServiceFailure): string {
  const { group, member, error } = failure;
  return failure.in === 'deliver'
    ? `the service threw at g${group}/${member}: ${error}`
    : `snapshot() of the service failed at g${group}/${member}, which continues. A replica of g${group} that is behind ` +
        `can't catch up until snapshot() succeeds: ${error}`;
}

const NOTHING = new Uint8Array(0);

/** @internal The default service: empty replies, no state. */
export const NO_SERVICE: Application = {
  deliver: () => undefined,
  snapshot: () => NOTHING,
  restore: () => undefined,
};

/** @internal @param href  the module's URL; `incarnation` makes each incarnation load a new instance of the module */
export async function loadService(
  href: string,
  context: ServiceContext,
  incarnation: number,
): Promise<Application> {
  const service = await importService(href, context, incarnation);
  const message = new ServiceMessage();
  return {
    deliver: (delivery) => {
      message.delivery = delivery;
      const reply: unknown = service.deliver(message, context);
      rejectPromise('deliver', reply);
      return (reply as Uint8Array | undefined) ?? undefined;
    },
    snapshot: () => snapshotOf(service, context),
    restore: (snapshot) => restore(service, snapshot, context),
  };
}

function snapshotOf(service: Service, context: ServiceContext): Uint8Array {
  if (service.snapshot === undefined) return NOTHING;
  const state: unknown = service.snapshot(context);
  if (state instanceof Uint8Array) return state;
  rejectPromise('snapshot', state);
  const what = state === null ? 'null' : typeof state;
  throw new TypeError(`snapshot() must return a Uint8Array, and it returned ${what}`);
}

/** @throws if a function of a service is asynchronous: the replica can't wait for it */
function rejectPromise(name: string, value: unknown): void {
  if (!(value instanceof Promise)) return;
  // Otherwise its rejection would end the process.
  value.catch(() => undefined);
  throw new TypeError(`${name}() must not be asynchronous, and it returned a promise`);
}

/** @throws if the service does. That ends the host: the replica can't continue with half a state. */
function restore(service: Service, snapshot: Uint8Array, context: ServiceContext): void {
  try {
    rejectPromise('restore', service.restore?.(snapshot, context));
  } catch (error) {
    const { group, member } = context;
    const why = error instanceof Error ? error.stack : String(error);
    throw new Error(`restore() of the service failed at g${group}/${member}: ${why}`);
  }
}

async function importService(
  href: string,
  { group, member }: ServiceContext,
  incarnation: number,
): Promise<Service> {
  const instance = new URL(href);
  // A data: URL has no query, so the fragment makes each import a new one.
  const label = `replica=${group}.${member}.${incarnation}`;
  if (instance.protocol === 'file:') instance.search = label;
  else instance.hash = label;
  let module: Partial<Service>;
  try {
    module = (await import(instance.href)) as Partial<Service>;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TramError('TRAM_SERVICE_INVALID', `can't load the service ${href}: ${why}`, {
      cause,
    });
  }
  if (typeof module.deliver !== 'function') {
    throw new TramError(
      'TRAM_SERVICE_INVALID',
      `the service ${href} exports no function "deliver"`,
    );
  }
  if ((module.snapshot === undefined) !== (module.restore === undefined)) {
    throw new TramError(
      'TRAM_SERVICE_INVALID',
      `the service ${href} exports only one of "snapshot" and "restore": it needs both, or has no state`,
    );
  }
  return module as Service;
}
