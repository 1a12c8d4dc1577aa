/**
 * A cluster whose hosts are apart, seen from elsewhere: an arena that holds, at their places, copies of what the hosts
 * have in theirs. `status`, `tail` and the like read it as they would read shared memory.
 *
 * Copies are made in the background, again and again. What is copied while its owner changes it may be torn: single words
 * can't be, a row is taken over only if it is whole, and of logs only what is whole is shown (`log-copies.ts`).
 */
import { HOST, HOST_STATE, PROCESS, withHostState } from '../../memory/arena.js';
import { CALLER } from '../../memory/machines/handshake.js';
import type { Link } from '../../memory/machines/link.js';
import { epochAt, numberAt, slotAt, wordsOf } from '../../memory/record.js';
import { ROW_RECORD_WORDS } from '../../protocol/leadership/row.js';
import { nowUs } from '../clock.js';
import type { Commons } from '../cluster-context.js';
import { STATISTIC, STATISTICS_WORDS } from '../statistics.js';
import { ownAddress, readApart } from './cluster-file.js';
import { homeOf } from './home-slots.js';
import { LogCopies } from './log-copies.js';
import { type Elsewhere, openElsewhere, turn, unreachable } from './remote-attachment.js';

/** How long hosts have to answer: all of them, if some have; and anybody. */
const ALL_US = 500_000;
const ANYBODY_US = 3_000_000;
/** How long a copy may take: by then whoever does not answer is left out. */
const COPY_US = 500_000;
/** How often everything is copied; and logs, as long as nothing new is in them. */
const REFRESH_MS = 50;
const LOGS_MS = 5;
/** So much may be on its way to us at one time. */
const UNDER_WAY_WORDS = 2 ** 15;

export class Mirror {
  readonly commons: Commons;
  private readonly logs: LogCopies;
  /** Rows as they come, until it is known that they are whole. */
  private readonly rows: Int32Array;
  /** By client slot: how many messages were answered when its latencies were copied. */
  private readonly copiedAnswers: Int32Array;
  private underWayWords = 0;
  private refreshedUs = 0;
  private isStopping = false;
  private going: Promise<void> = Promise.resolve();

  private constructor(private readonly elsewhere: Elsewhere) {
    const { commons } = elsewhere;
    this.commons = commons;
    this.rows = new Int32Array(commons.map.replicas * ROW_RECORD_WORDS);
    this.copiedAnswers = new Int32Array(commons.layout.sizes.clients);
    this.logs = new LogCopies(commons, {
      read: (link, at, into, intoAt, count) => this.read(link, at, into, intoAt, count),
      settle: () => this.settle(),
    });
  }

  /**
   * Returns with a first look at all hosts that can be reached.
   * @param path  of the configuration that the hosts have
   * @throws TRAM_UNREACHABLE if there are none
   */
  static async open(path: string): Promise<Mirror> {
    const { config, credentials } = await readApart(path);
    const address = await ownAddress(config);
    const elsewhere = openElsewhere(config, credentials, address, CALLER.observer);
    const mirror = new Mirror(elsewhere);
    try {
      await mirror.untilHeard();
      await mirror.refresh();
    } catch (error) {
      elsewhere.close();
      throw error;
    }
    mirror.going = mirror.goOn();
    return mirror;
  }

  /** Copy the logs of these groups too, from now on. Returns with what is decided now. */
  async follow(groups: readonly number[]): Promise<void> {
    await this.stop();
    await this.logs.follow(groups);
    this.going = this.goOn();
  }

  async close(): Promise<void> {
    await this.stop();
    this.elsewhere.close();
  }

  /** Once what is under way is here. */
  private async stop(): Promise<void> {
    this.isStopping = true;
    await this.going;
    this.isStopping = false;
  }

  /** Until each host has let us in or is known not to. */
  private async untilHeard(): Promise<void> {
    const { network, commons } = this.elsewhere;
    const startedUs = nowUs();
    for (;;) {
      await this.turn();
      const missing = network.missingHosts();
      const isAlone = missing.length === commons.map.hosts;
      const isHeard = missing.every((host) => network.complaintOf(host) !== undefined);
      const isLate = nowUs() - startedUs > (isAlone ? ANYBODY_US : ALL_US);
      if (isAlone && (isHeard || isLate)) throw unreachable(this.elsewhere);
      if (isHeard || isLate) return;
    }
  }

  private async goOn(): Promise<void> {
    while (!this.isStopping) {
      if (nowUs() - this.refreshedUs >= REFRESH_MS * 1000) await this.refresh();
      if (await this.logs.copy()) continue;
      const pauseMs = this.logs.isEmpty ? REFRESH_MS : LOGS_MS;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /** Copy everything but the logs. */
  private async refresh(): Promise<void> {
    const { network } = this.elsewhere;
    const { hosts } = this.commons.map;
    this.refreshedUs = nowUs();
    for (let host = 0; host < hosts; host++) {
      const link = network.links[host]!;
      if (link.isOpen) await this.readBoard(host, link);
      else this.noteEnded(host);
    }
    await this.settle();
    this.takeRows();
    await this.readLatencies();
  }

  /** The line of the host, and of each of its replicas the line, the numbers and the row; and of the clients at home there. */
  private async readBoard(host: number, link: Link): Promise<void> {
    const { map, layout } = this.commons;
    await this.copy(link, map.host(host), HOST.greeting);
    for (const process of map.processesOf(host)) {
      await this.copy(link, map.process(process), PROCESS.words);
      await this.copy(link, map.statisticsOf(process), STATISTIC.words);
      const row = map.region(process) + layout.row;
      await this.read(link, row, this.rows, process * ROW_RECORD_WORDS, ROW_RECORD_WORDS);
    }
    for (let slot = 0; slot < layout.sizes.clients; slot++) {
      if (homeOf(slot, map.hosts) !== host) continue;
      const process = layout.clientProcess(slot);
      await this.copy(link, map.process(process), PROCESS.words);
      await this.copy(link, map.statisticsOf(process), STATISTIC.words);
    }
  }

  private takeRows(): void {
    const { map, layout, arena } = this.commons;
    for (let process = 0; process < map.replicas; process++) {
      const at = process * ROW_RECORD_WORDS;
      const row = slotAt(this.rows, at);
      const words = wordsOf(row, 0, epochAt(row, 0), numberAt(row, 0), ROW_RECORD_WORDS);
      // If it is torn the one before it stays.
      if (words === 0) continue;
      arena.words.set(this.rows.subarray(at, at + words), map.region(process) + layout.row);
    }
  }

  /** Of clients that have been answered since the last time: these are many words. */
  private async readLatencies(): Promise<void> {
    const { map, layout, arena } = this.commons;
    const { copiedAnswers } = this;
    for (let slot = 0; slot < copiedAnswers.length; slot++) {
      const statistics = map.statisticsOf(layout.clientProcess(slot));
      const answers = arena.words[statistics + STATISTIC.messages]!;
      if (answers === copiedAnswers[slot]) continue;
      copiedAnswers[slot] = answers;
      const home = this.elsewhere.network.links[homeOf(slot, map.hosts)]!;
      await this.copy(home, statistics, STATISTICS_WORDS);
    }
    await this.settle();
  }

  /** To the same place here. */
  private copy(link: Link, at: number, count: number): Promise<void> {
    return this.read(link, at, this.commons.arena.words, at, count);
  }

  private async read(
    link: Link,
    at: number,
    into: Int32Array,
    intoAt: number,
    count: number,
  ): Promise<void> {
    if (this.underWayWords + count > UNDER_WAY_WORDS) await this.settle();
    this.underWayWords += count;
    link.readWords(at, into, intoAt, count);
  }

  /** Until all that was asked for is here, or lost with its connection. */
  private async settle(): Promise<void> {
    const { network } = this.elsewhere;
    const untilUs = nowUs() + COPY_US;
    do {
      await this.turn();
    } while (!network.isSettled && nowUs() < untilUs);
    this.underWayWords = 0;
  }

  private async turn(): Promise<void> {
    turn(this.elsewhere.network);
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Nobody tells us that a host which can't be reached runs. */
  private noteEnded(host: number): void {
    const { arena, map } = this.commons;
    const at = map.host(host) + HOST.state;
    arena.words[at] = withHostState(arena.words[at]!, HOST_STATE.ended);
  }
}
