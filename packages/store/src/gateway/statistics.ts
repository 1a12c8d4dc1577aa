/**
 * What a gateway counts of connections and commands: for INFO, LATENCY HISTOGRAM, SLOWLOG and `/metrics`. A command takes from when
 * the gateway has its request until its reply is written, so it includes what shards do and the way to them and back. A command of a
 * transaction takes as long as EXEC.
 */

import type { CommandSpec } from '../commands/spec.js';
import type { Bytes } from '../resp/reply.js';
import type { Client } from './client.js';
import { Latencies } from './latencies.js';
import type { QueuedCommand } from './session.js';
import type { SlowLog } from './slow-log.js';

/** Scripts can reply with any error code. At most this many different codes are counted. */
const CODES_MAX = 128;

/** What a client has asked for. */
export interface Request extends QueuedCommand {
  /** By the clock of `performance.now`. */
  readonly beganMs: number;
}

export class CommandStatistics {
  calls = 0;
  /** It has replied with an error. */
  failed = 0;
  /** It was not carried out. */
  rejected = 0;
  /** Commands that may wait, such as BLPOP, are not measured. */
  readonly latencies = new Latencies();
}

interface Rates {
  readonly commands: number;
  readonly inputBytes: number;
  readonly outputBytes: number;
}

const NOTHING: Rates = { commands: 0, inputBytes: 0, outputBytes: 0 };

export class Statistics {
  connections = 0;
  rejected = 0;
  /** TLS handshakes that have failed. */
  failedHandshakes = 0;
  /** How often a shard has forgotten this gateway. */
  forgotten = 0;
  commands = 0;
  inputBytes = 0;
  outputBytes = 0;
  errors = 0;
  /** By the first word of the error. */
  readonly errorCodes = new Map<string, number>();
  /** During the last second. */
  perSecond = NOTHING;
  #sampled = NOTHING;
  #sampledMs = performance.now();
  readonly #commands = new Map<CommandSpec, CommandStatistics>();

  constructor(private readonly slowLog: SlowLog) {}

  /** Of commands that were called, by name. */
  get byCommand(): readonly (readonly [CommandSpec, CommandStatistics])[] {
    return [...this.#commands].sort(([a], [b]) => (a.name < b.name ? -1 : 1));
  }

  of(command: CommandSpec): CommandStatistics {
    let statistics = this.#commands.get(command);
    if (statistics === undefined) {
      statistics = new CommandStatistics();
      this.#commands.set(command, statistics);
    }
    return statistics;
  }

  /**
   * @param request  undefined if no command was carried out
   * @param error  its message, if the reply is one
   */
  noteReply(
    request: Request | undefined,
    error: Bytes | undefined,
    nowMs: number,
    client: Client,
  ): void {
    if (error !== undefined) this.#noteError(error);
    if (request === undefined) return;
    const { command, args, beganMs } = request;
    const statistics = this.of(command);
    statistics.calls++;
    if (error !== undefined) statistics.failed++;
    if (command.flags.includes('blocking')) return;
    const us = (nowMs - beganMs) * 1000;
    statistics.latencies.record(us);
    this.slowLog.note(command, args, us, client);
  }

  /** To be called once a second. */
  sample(nowMs: number): void {
    const seconds = Math.max(nowMs - this.#sampledMs, 1) / 1000;
    const { commands, inputBytes, outputBytes } = this;
    this.perSecond = {
      commands: (commands - this.#sampled.commands) / seconds,
      inputBytes: (inputBytes - this.#sampled.inputBytes) / seconds,
      outputBytes: (outputBytes - this.#sampled.outputBytes) / seconds,
    };
    this.#sampled = { commands, inputBytes, outputBytes };
    this.#sampledMs = nowMs;
  }

  #noteError(message: Bytes): void {
    this.errors++;
    const code = codeOf(message);
    const count = this.errorCodes.get(code);
    if (count !== undefined || this.errorCodes.size < CODES_MAX) {
      this.errorCodes.set(code, (count ?? 0) + 1);
    }
  }
}

/** The first word. */
function codeOf(message: Bytes): string {
  return message.split(' ', 1)[0];
}
