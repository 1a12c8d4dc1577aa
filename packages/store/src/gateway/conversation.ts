/**
 * Turns the requests of one client into calls of shards, and their replies into what the client reads.
 *
 * Requests that have come together go to the shards as one *piece*: at one place of the order, and by one message if they go to the same
 * shards. The next piece waits for the replies of this one, so a client sees its own requests take effect in order. A request
 * that has to be coordinated, that may wait or that changes how requests are read or replied to is not part of a piece: it waits for the
 * replies of the piece before it.
 */

import { findCommand, lookUp } from '../commands/lookup.js';
import { ProtocolError, RequestParser } from '../resp/parser.js';
import { type Bytes, ErrorReply, NullArray, QUEUED, type Reply } from '../resp/reply.js';
import { isQueued, refusalOf } from './admission.js';
import type { Blocked } from './backend.js';
import { type Carrier, carrierOf } from './carriers.js';
import { errorReplyOf, execFailure, unknownOutcome } from './errors.js';
import { Exec } from './exec.js';
import type { Gateway } from './gateway.js';
import type { Line } from './line.js';
import { PieceSize } from './piece-size.js';
import { isEval } from './scripts.js';
import { type QueuedCommand, Session } from './session.js';
import type { ShardCall } from './shards.js';
import { needCare } from './shortage.js';
import type { Request } from './statistics.js';
import { FORWARD, Known, RepliesInOrder, Silent, type Step } from './steps.js';

/** A piece is sent when it has this many bytes or requests. The next requests wait for its replies. */
const PIECE_BYTES_MAX = 24 * 1024;
const PIECE_REQUESTS_MAX = 1024;
/** After so many pieces or requests of one client that need no shard, others have their turn. A piece costs as much as many requests. */
const PIECES_PER_TURN = 8;
const REQUESTS_PER_TURN = 256;
/** Above this, no more is read from a client that waits for replies. */
const HELD_BYTES_MAX = 1024 * 1024;
/** What a transaction may queue. */
const TRANSACTION_BYTES_MAX = 512 * 1024 * 1024;

/** The first words of an HTTP request, which a web page can make a browser send. The connection is closed before it does harm. */
const HTTP = /^(?:post|host:)$/i;

const NO_REPLIES = new RepliesInOrder([]);

export class Conversation {
  readonly session: Session;
  readonly #parser: RequestParser;
  #steps: Step[] = [];
  /** The request of each step; undefined if its command was not carried out. */
  #requests: (Request | undefined)[] = [];
  /** The request that is being carried out. */
  #request: Request | undefined;
  #pieceBeganMs = 0;
  #calls: ShardCall[] = [];
  #pieceBytes = 0;
  readonly #pieceSize = new PieceSize();
  /** The next request has to wait for the replies of the piece. */
  #isPieceClosed = false;
  #waitingRequest: Request | undefined;
  /** Whether it waits for replies. */
  #isBusy = false;
  #isLooping = false;
  /** Nothing is read any more: the connection ends after the replies. */
  #isOver = false;
  /** The client will send no more. */
  #hasAll = false;
  #blocked: Blocked | undefined;
  #unblockError: ErrorReply | undefined;
  /** Whether CLIENT PAUSE holds a request back. */
  #isHeldBack = false;
  /** The name of the last command. */
  lastCommand = 'NULL';

  constructor(
    private readonly gateway: Gateway,
    private readonly line: Line,
  ) {
    this.session = new Session(!gateway.settings.needsPassword);
    this.#parser = new RequestParser(gateway.settings);
  }

  get heldBytes(): number {
    return this.#parser.heldBytes;
  }

  /** Whether it waits for a key, or for the end of CLIENT PAUSE. */
  get isBlocked(): boolean {
    return this.#blocked !== undefined || this.#isHeldBack;
  }

  receive(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#parser.feed(chunk);
    if (!this.#isBusy && !this.line.isFull()) this.#loop();
    else if (this.#parser.heldBytes > HELD_BYTES_MAX) this.line.pauseReading();
  }

  /** The client will send no more. It gets the replies to what it has sent. */
  receiveEnd(): void {
    this.#hasAll = true;
    if (this.#blocked !== undefined || this.session.subscriptions > 0) this.over();
    if (!this.#isBusy) this.#loop();
  }

  /** The socket has sent what was written, and has room again. */
  drained(): void {
    if (!this.#isBusy) this.#loop();
  }

  /** Nothing more is read. The connection ends as soon as nothing is waited for. */
  over(): void {
    this.#isOver = true;
    this.#blocked?.giveUp();
    if (!this.#isBusy) this.#loop();
  }

  /** The connection is gone. */
  closed(): void {
    this.#isOver = true;
    this.#blocked?.giveUp();
    this.gateway.pubsub.leaveAll(this.line.client);
  }

  /** @returns whether the client was blocked */
  unblock(error: ErrorReply | undefined): boolean {
    if (this.#blocked === undefined) return false;
    this.#unblockError = error;
    this.#blocked.giveUp();
    return true;
  }

  /** Takes requests until it waits for replies. */
  #loop(): void {
    if (this.#isLooping) return;
    this.#isLooping = true;
    try {
      for (let pieces = 1, requests = 0; ; pieces++) {
        this.#pieceBeganMs = performance.now();
        while (this.#mayTake() && this.#take());
        if (this.#isBusy || this.#steps.length === 0) break;
        requests += this.#steps.length;
        this.#send();
        const isMuch = pieces === PIECES_PER_TURN || requests >= REQUESTS_PER_TURN;
        if (isMuch && !this.#isBusy) {
          this.#isBusy = true;
          setImmediate(() => this.#goOn());
        }
      }
    } finally {
      this.#isLooping = false;
    }
    if (this.#isBusy) return;
    if (this.#isOver || (this.#hasAll && !this.line.isFull())) this.line.end();
    else this.line.resumeReading();
  }

  #mayTake(): boolean {
    return !this.#isBusy && !this.#isOver && !this.#isPieceClosed && !this.line.isFull();
  }

  /** @returns whether there was a request */
  #take(): boolean {
    const waiting = this.#waitingRequest;
    if (waiting !== undefined) {
      this.#waitingRequest = undefined;
      this.#request = waiting;
      this.#carryOut(carrierOf(waiting.command), waiting.args);
      return true;
    }
    this.#request = undefined;
    const parser = this.#parser;
    parser.authenticated = this.session.isAuthenticated;
    try {
      if (!parser.next()) return false;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#reply(new ErrorReply(`ERR Protocol error: ${error.message}`));
      this.#isOver = true;
      return true;
    }
    this.gateway.stats.commands++;
    try {
      const { command, args } = lookUp(parser.name, parser.args);
      this.lastCommand = command.name;
      this.#request = { command, args, beganMs: this.#pieceBeganMs };
      const refusal = refusalOf(command, this.session);
      if (refusal === undefined) this.#carryOut(carrierOf(command), args);
      else this.#reject(refusal);
    } catch (error) {
      if (HTTP.test(parser.name)) this.#isOver = true;
      else this.#reject(errorReplyOf(error).message);
    }
    return true;
  }

  #carryOut(carrier: Carrier, args: readonly Bytes[]): void {
    const { session } = this;
    const { command } = carrier;
    if (isQueued(command, session)) {
      this.#queue({ command, args });
      return;
    }
    if (this.gateway.pause.holdsBack(command, session.transaction)) {
      if (this.#startsAlone()) {
        this.#isHeldBack = true;
        const goOn = () => {
          this.#isHeldBack = false;
        };
        this.#waitFor(this.gateway.pause.over().then(goOn));
      }
      return;
    }
    try {
      if (carrier.kind === 'shards') this.#addCalls(carrier, args);
      else if (carrier.kind === 'immediate') this.#reply(carrier.handle(args, this.line.client));
      else if (carrier.kind === 'exec') this.#exec();
      else if (this.#startsAlone()) this.#carryOutAlone(carrier, args);
    } catch (error) {
      this.#reply(errorReplyOf(error));
    }
  }

  /** The request is carried out after something else. */
  #waitFor(event: Promise<void>): void {
    this.#isBusy = true;
    event.then(
      () => {
        this.#waitingRequest = this.#request;
        this.#goOn();
      },
      (error) => this.#goOn(unknownOutcome(error)),
    );
  }

  /** @returns false if the request waits until the replies of the piece are there */
  #startsAlone(): boolean {
    if (this.#steps.length === 0) return true;
    this.#waitingRequest = this.#request;
    this.#isPieceClosed = true;
    return false;
  }

  #addCalls(carrier: Carrier, args: readonly Bytes[]): void {
    const { command } = carrier;
    const { router, scripts, shards } = this.gateway;
    if (command.reaches && shards.count > 1) {
      if (this.#startsAlone()) this.#runScript(carrier, args);
      return;
    }
    if (command.name === 'script|flush') scripts.forget();
    const before = this.#calls.length;
    const step = router.route(command, args, this.session.resp, this.#calls);
    if (step === undefined) {
      if (this.#startsAlone()) this.#coordinate({ command, args });
      return;
    }
    if (this.#calls.length - before > 1 && needCare(shards, this.#calls.slice(before))) {
      const calls = this.#calls.splice(before);
      if (this.#startsAlone()) this.#runTogether(calls, step);
      return;
    }
    this.#add(step);
    let bytes = 0;
    for (const { length } of args) bytes += length;
    this.#count(bytes);
  }

  /** Adds this many bytes, and the new calls, to the piece. */
  #count(bytes: number): void {
    this.#pieceBytes += bytes;
    const isFull = this.#pieceBytes >= PIECE_BYTES_MAX;
    if (isFull || this.#pieceSize.isReachedBy(this.#calls.length)) this.#isPieceClosed = true;
  }

  #carryOutAlone(carrier: Carrier, args: readonly Bytes[]): void {
    if (carrier.kind === 'blocking') this.#block({ command: carrier.command, args });
    if (carrier.kind !== 'session') return;
    const reply = carrier.handle(args, this.line.client);
    if (!(reply instanceof Promise)) {
      if (reply !== undefined) this.#reply(reply);
      else this.#noteNoReply();
      return;
    }
    this.#isBusy = true;
    reply.then(
      (later) => {
        // Its answer was sent as push messages.
        if (later === undefined && this.session.silence === 'next') this.session.silence = 'none';
        if (later === undefined) this.#noteNoReply();
        this.#goOn(later);
      },
      (error) => this.#goOn(errorReplyOf(error)),
    );
  }

  // --- pieces --------------------------------------------------------------------------------

  #add(step: Step): void {
    const { session } = this;
    this.#steps.push(session.silence === 'none' ? step : new Silent(step));
    this.#requests.push(this.#request);
    if (session.silence === 'next') session.silence = 'none';
    if (this.#steps.length >= PIECE_REQUESTS_MAX) this.#isPieceClosed = true;
  }

  #reply(reply: Reply): void {
    this.#add(new Known(reply));
  }

  /** As in Redis, EXEC refuses if a command was refused; and if EXEC itself is refused, the transaction ends. */
  #reject(message: string): void {
    const { session } = this;
    const command = this.#request?.command ?? findCommand(this.#parser.name);
    this.#request = undefined;
    if (command !== undefined) this.gateway.stats.of(command).rejected++;
    if (this.#parser.name.toLowerCase() !== 'exec') {
      if (session.transaction !== undefined) session.transaction.isRefused = true;
      this.#reply(new ErrorReply(message));
      return;
    }
    session.transaction = undefined;
    session.watched = [];
    const reason = message.replace(/^ERR /, '');
    this.#reply(new ErrorReply(`EXECABORT Transaction discarded because of: ${reason}`));
  }

  #send(): void {
    const steps = this.#steps;
    const requests = this.#requests;
    const calls = this.#calls;
    this.#steps = [];
    this.#requests = [];
    this.#pieceBytes = 0;
    this.#isPieceClosed = false;
    if (calls.length === 0) {
      this.#write(steps, requests, NO_REPLIES);
      return;
    }
    this.#calls = [];
    this.#isBusy = true;
    this.gateway.shards.run(
      calls,
      (replies) => {
        this.#pieceSize.learn(replies);
        this.#write(steps, requests, new RepliesInOrder(replies));
        this.#goOn();
      },
      (error) => {
        const reply = new Known(unknownOutcome(error));
        this.#write(
          steps.map((step) => (step instanceof Silent ? new Silent(reply) : reply)),
          requests,
          NO_REPLIES,
        );
        this.#goOn();
      },
    );
  }

  #write(
    steps: readonly Step[],
    requests: readonly (Request | undefined)[],
    replies: RepliesInOrder,
  ): void {
    const output = this.line.output();
    const { resp } = this.session;
    const { stats } = this.gateway;
    const nowMs = performance.now();
    for (let i = 0; i < steps.length; i++) {
      const at = output.length;
      steps[i].write(replies, output, resp);
      stats.noteReply(requests[i], output.errorAt(at), nowMs, this.line.client);
    }
    this.line.flushSoon();
  }

  /** The request has no reply of its own. */
  #noteNoReply(): void {
    this.gateway.stats.noteReply(this.#request, undefined, performance.now(), this.line.client);
  }

  /** The event that the conversation waited for has happened. */
  #goOn(reply?: Reply): void {
    this.#isBusy = false;
    if (reply !== undefined) this.#reply(reply);
    this.#loop();
  }

  /** The replies to a request that was carried out alone have arrived. */
  #finish(step: Step, replies: RepliesInOrder): void {
    this.#add(step);
    this.#write(this.#steps.splice(0), this.#requests.splice(0), replies);
    this.#goOn();
  }

  // --- commands that wait, and coordinated ones ----------------------------------------------

  #runScript(carrier: Carrier, args: readonly Bytes[]): void {
    const queued = { command: carrier.command, args };
    this.#isBusy = true;
    this.gateway.scripts.run(
      queued,
      this.session.resp,
      (reply) => this.#finish(FORWARD, new RepliesInOrder([reply])),
      () => this.#coordinate(queued),
      (error) => this.#goOn(unknownOutcome(error)),
    );
  }

  #block({ command, args }: QueuedCommand): void {
    this.#isBusy = true;
    this.#unblockError = undefined;
    let isDone = false;
    const done = (step: Step, replies: RepliesInOrder): void => {
      isDone = true;
      this.#blocked = undefined;
      this.#finish(step, replies);
    };
    const blocked = this.gateway.waits.block(
      { name: command.name, args },
      this.session.resp,
      (reply, wasGivenUp) => {
        const error = this.#unblockError;
        if (wasGivenUp && error !== undefined) done(new Known(error), NO_REPLIES);
        else done(FORWARD, new RepliesInOrder([reply]));
      },
      (error) => done(new Known(unknownOutcome(error)), NO_REPLIES),
    );
    if (!isDone) this.#blocked = blocked;
  }

  #coordinate({ command, args }: QueuedCommand): void {
    const { transactions } = this.gateway;
    const replies = transactions.transact([{ name: command.name, args }], [], this.session.resp);
    this.#finishLater(replies, async () => FORWARD, unknownOutcome);
  }

  /** Each shard does its part alone, if the memory of none is short. */
  #runTogether(calls: readonly ShardCall[], step: Step): void {
    const replies = this.gateway.transactions.runIf([], calls);
    this.#finishLater(replies, async () => step, unknownOutcome);
  }

  // --- transactions --------------------------------------------------------------------------

  #queue(queued: QueuedCommand): void {
    const transaction = this.session.transaction!;
    const hasScript = isEval(queued.command);
    if (hasScript && !this.#startsAlone()) return;
    // It is carried out by EXEC.
    this.#request = undefined;
    transaction.add(queued);
    if (transaction.bytes > TRANSACTION_BYTES_MAX) {
      this.#reject('ERR the transaction is too large');
    } else if (hasScript) {
      this.#isBusy = true;
      this.gateway.scripts.makeKnown(queued.args[0], () => this.#goOn(QUEUED));
    } else {
      this.#reply(QUEUED);
    }
  }

  #exec(): void {
    const { session } = this;
    const { transaction, watched } = session;
    if (transaction === undefined) throw new ErrorReply('ERR EXEC without MULTI');
    const exec = transaction.isRefused
      ? undefined
      : new Exec(this.line.client, transaction.commands, watched, this.#request!.beganMs);
    if (exec?.startsAlone && !this.#startsAlone()) return;

    session.transaction = undefined;
    session.watched = [];
    if (exec === undefined) {
      throw new ErrorReply('EXECABORT Transaction discarded because of previous errors.');
    }
    if (!exec.isPart) {
      this.#finishLater(exec.run(), () => exec.finish(), execFailure);
      return;
    }
    this.#add(exec.join(this.#calls));
    this.#count(transaction.bytes);
  }

  /** @param replies  of a transaction */
  #finishLater(
    replies: Promise<readonly Uint8Array[] | NullArray>,
    stepOf: () => Promise<Step>,
    failure: (error: unknown) => ErrorReply,
  ): void {
    const finish = async (): Promise<readonly [Step, RepliesInOrder]> => {
      const outcome = await replies;
      if (outcome instanceof NullArray) return [new Known(outcome), NO_REPLIES];
      return [await stepOf(), new RepliesInOrder(outcome)];
    };
    this.#isBusy = true;
    finish().then(
      ([step, outcome]) => this.#finish(step, outcome),
      (error) => this.#goOn(failure(error)),
    );
  }
}
