/**
 * Typed services: commands, replies and a state of the user's own types, instead of bytes.
 *
 * A module exports what `defineService` returns as its default export. Hosts load the module and make a service of bytes
 * from it for each replica, which keeps the state. Clients import the same module for its types and codecs. The module
 * itself holds no state, so both may share it.
 */
import type { Client } from './client.js';
import { type Codec, jsonCodec, jsonStateCodec, type StateCodec } from './codec.js';
import type { Destinations } from './destinations.js';
import { ReplyError, TramError } from './errors.js';
import type { Message, ServiceContext, StatefulService, Ticks } from './hosting/service.js';
import type { MulticastOptions } from './multicast-request.js';
import { DEFERRED, type Deferred } from './protocol/edges.js';

/** The message that carries a command. */
export interface CommandContext {
  /** The group that delivers it. */
  readonly group: number;
  /** All groups that deliver it, ascending. */
  readonly destinations: readonly number[];
  /** Unique in the cluster, and the same at every replica. */
  readonly id: string;
  /** Ordered time: see `ServiceContext.nowMs`. */
  readonly nowMs: number;
}

/** A tick: ordered time has advanced. */
export interface TickContext {
  readonly group: number;
  readonly nowMs: number;
}

/** Replies to commands that wait. */
export interface ReplyContext<Reply> extends TickContext {
  /** False if no command with this id waits: it has its reply already, was abandoned, or was never deferred. */
  reply(id: string, reply: Reply): boolean;
}

/** The message that carries a command whose reply may be deferred. */
export interface DeferringContext<Reply> extends CommandContext, ReplyContext<Reply> {
  /** `return context.defer()` lets the command wait. Its reply comes later, by `reply`. */
  defer(): Deferred;
}

interface Definition<Command, Reply, State> {
  /** The state in which a group starts. Deterministic. */
  initial(group: number): State;
  /** Asks for ordered time: without it there are no ticks, and `nowMs` stays 0. */
  readonly ticks?: Ticks | undefined;
  /** How values become bytes. Default for each: JSON. */
  readonly codecs?:
    | {
        readonly command?: Codec<Command> | undefined;
        readonly reply?: Codec<Reply> | undefined;
        readonly state?: StateCodec<State> | undefined;
      }
    | undefined;
}

/** A service that replies to each command at once. */
export interface ServiceDefinition<Command, Reply, State>
  extends Definition<Command, Reply, State> {
  /**
   * Changes the state and returns the reply. Deterministic: the same commands in the same order give the same state and
   * the same replies. To refuse a command, return a reply that says so.
   */
  deliver(state: State, command: Command, context: CommandContext): Reply;
  /** Changes the state with each tick, in order with the commands. Deterministic. */
  tick?(state: State, context: TickContext): void;
  abandoned?: undefined;
}

/** A service that may reply later. */
export interface DeferringDefinition<Command, Reply, State>
  extends Definition<Command, Reply, State> {
  /** As in `ServiceDefinition`, except that it may return `context.defer()` instead of a reply. */
  deliver(state: State, command: Command, context: DeferringContext<Reply>): Reply | Deferred;
  /** A command that waited does so no longer: its client has given it up (timeout, abort, close) or has ended. */
  abandoned(state: State, id: string, context: ReplyContext<Reply>): void;
  /** Changes the state with each tick, in order with the commands. Deterministic. */
  tick?(state: State, context: ReplyContext<Reply>): void;
}

export interface TypedService<Command, Reply> {
  /** A client that sends commands of this service and reads its replies. */
  client(client: Client): TypedClient<Command, Reply>;
  /** Makes the service of one replica; hosts call it. */
  serviceOf(context: ServiceContext): StatefulService;
}

/** Makes an asynchronous `deliver` an error of the compiler. */
type Synchronous<Reply> =
  Reply extends PromiseLike<unknown> ? 'deliver must be synchronous' : unknown;

/** @throws TRAM_INVALID_ARGUMENT */
export function defineService<Command, Reply, State>(
  definition: ServiceDefinition<Command, Reply, State> & Synchronous<Reply>,
): TypedService<Command, Reply>;
export function defineService<Command, Reply, State>(
  definition: DeferringDefinition<Command, Reply, State> & Synchronous<Reply>,
): TypedService<Command, Reply>;
export function defineService<Command, Reply, State>(
  definition: ServiceDefinition<Command, Reply, State> | DeferringDefinition<Command, Reply, State>,
): TypedService<Command, Reply> {
  for (const name of ['initial', 'deliver'] as const) {
    if (typeof definition?.[name] === 'function') continue;
    throw new TramError('TRAM_INVALID_ARGUMENT', `defineService needs a function "${name}"`);
  }
  const { codecs = {}, ticks, tick } = definition;
  const command = codecs.command ?? (jsonCodec as Codec<Command>);
  const isJson = codecs.command === undefined;
  const reply = codecs.reply ?? (jsonCodec as Codec<Reply>);
  const state = codecs.state ?? (jsonStateCodec as StateCodec<State>);
  return {
    client: (client) => new TypedClient(client, command, reply),
    serviceOf: (replica) => {
      const context = new TypedContext(replica, reply);
      let current = definition.initial(replica.group);
      return {
        deliver: (message) => {
          // JSON keeps nothing of the bytes.
          const bytes = isJson ? message.payload : message.payload.slice();
          const decoded = named('the command', () => command.decode(bytes));
          context.message = message;
          const answer = definition.deliver(current, decoded, context);
          if (answer === DEFERRED) return DEFERRED;
          if (answer instanceof Promise) throw asynchronous(answer);
          return named('the reply', () => reply.encode(answer as Reply));
        },
        abandoned: (id) => definition.abandoned?.(current, id, context),
        ticks,
        ...(tick !== undefined && { tick: () => tick.call(definition, current, context) }),
        snapshot: () => named('the state', () => state.encode(current)),
        restore: (snapshot) => {
          current = named('the snapshot', () => state.decode(snapshot.slice()));
        },
      };
    },
  };
}

/** Reads a message when the service asks. One for all messages of a replica. */
class TypedContext<Reply> implements DeferringContext<Reply> {
  message!: Message;

  constructor(
    private readonly replica: ServiceContext,
    private readonly codec: Codec<Reply>,
  ) {}

  get group(): number {
    return this.replica.group;
  }

  get nowMs(): number {
    return this.replica.nowMs;
  }

  get destinations(): readonly number[] {
    return this.message.destinations;
  }

  get id(): string {
    return this.message.id;
  }

  defer(): Deferred {
    return this.replica.defer();
  }

  reply(id: string, reply: Reply): boolean {
    return this.replica.reply(
      id,
      named('the reply', () => this.codec.encode(reply)),
    );
  }
}

/** A replica can't wait for a reply. */
function asynchronous(answer: Promise<unknown>): TypeError {
  // Otherwise its rejection would be reported as well.
  answer.catch(() => undefined);
  return new TypeError(
    'deliver() must return the reply, and it returned a promise: it must not be asynchronous',
  );
}

/** Says in the error which value could not be converted. */
function named<T>(what: string, convert: () => T): T {
  try {
    return convert();
  } catch (cause) {
    throw new TypeError(`${what}: ${reason(cause)}`, { cause });
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A client of one service. `client` is the client of bytes underneath. */
export class TypedClient<Command, Reply> implements AsyncDisposable {
  /** @internal */
  constructor(
    readonly client: Client,
    private readonly command: Codec<Command>,
    private readonly reply: Codec<Reply>,
  ) {}

  /** Delivers the command at all these groups, as `Client.multicast` does, and returns the reply of each group. */
  async multicast(
    destinations: Iterable<number> | Destinations,
    command: Command,
    options?: MulticastOptions,
  ): Promise<Map<number, Reply>> {
    const call = this.client.multicast(destinations, this.encode(command), options);
    const outcome = await call.catch((error: unknown) => {
      if (error instanceof ReplyError) return error as ReplyError;
      throw error;
    });
    if (outcome instanceof ReplyError) throw this.decodeError(outcome);
    const [replies, failedGroups] = this.decode(outcome, new Map());
    if (failedGroups.size === 0) return replies;
    throw ReplyError.delivered('TRAM_SERVICE_FAILED', replies, failedGroups);
  }

  /** Delivers the command at one group, and returns its reply. */
  async call(group: number, command: Command, options?: MulticastOptions): Promise<Reply> {
    const replies = await this.multicast([group], command, options);
    return replies.get(group) as Reply;
  }

  private encode(command: Command): Uint8Array {
    try {
      return this.command.encode(command);
    } catch (cause) {
      throw new TramError('TRAM_INVALID_ARGUMENT', `the command: ${reason(cause)}`, { cause });
    }
  }

  private decodeError(error: ReplyError): ReplyError<Reply> {
    const { code, message, missingGroups, hint, retry, cause } = error;
    const [replies, failedGroups] = this.decode(error.replies, error.failedGroups);
    const known = { replies, failedGroups, missingGroups };
    return new ReplyError(code, message, known, { hint, retry, cause });
  }

  /** The decoded replies, and the groups without one, among them those whose reply can't be decoded. */
  private decode(
    replies: ReadonlyMap<number, Uint8Array>,
    failedGroups: ReadonlyMap<number, string>,
  ): [Map<number, Reply>, Map<number, string>] {
    const decoded = new Map<number, Reply>();
    const failed = new Map(failedGroups);
    for (const [group, reply] of replies) {
      try {
        decoded.set(group, this.reply.decode(reply));
      } catch (error) {
        failed.set(group, `can't decode its reply: ${reason(error)}`);
      }
    }
    return [decoded, failed];
  }

  /** Waits for the replies to all commands, and closes the client underneath. */
  close(): Promise<void> {
    return this.client.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
