/**
 * A copy of a cluster on machines: an arena with copies of the hosts' state at the same offsets. `status` and `tail` read
 * it as they read shared memory. Nothing that is written to it reaches the hosts, except by `write`.
 *
 * Copies are refreshed in the background. A copy may be torn if its owner writes at the same time: single words never
 * are, a row is accepted only if it is whole, and of logs only whole entries are shown (`log-copies.ts`).
 */

import { STATUS_WORDS } from '../../journal/status.js';
import { HOST, HOST_STATE, OWNER, PARTICIPANT, withHostState } from '../../memory/arena.js';
import { CALLER } from '../../memory/machines/handshake.js';
import type { Link } from '../../memory/machines/link.js';
import { NO_ANSWER } from '../../memory/machines/network-options.js';
import { epochAt, numberAt, slotAt, wordsOf } from '../../memory/record.js';
import { ROW_RECORD_WORDS } from '../../protocol/leadership/row.js';
import { nowUs } from '../clock.js';
import type { ClusterContext } from '../cluster-context.js';
import { STATISTIC, STATISTICS_WORDS } from '../statistics.js';
import { ownAddress, readClusterFile } from './cluster-file.js';
import { LogCopies } from './log-copies.js';
import { attachRemotely, type RemoteAttachment, turn, unreachable } from './remote-attachment.js';

/**
 * How long to wait for all hosts once some have answered; and for the first answer. A host that has ended refuses at once, so
 * this is for hosts that hang or can't be reached. It is not shorter, because a busy host must not be taken for one of these.
 */
const ALL_US = 2_000_000;
const ANYBODY_US = 3_000_000;
/** How long a refresh in the background may take. What has not arrived by then is shown as it was. */
const COPY_US = 500_000;
/** How often everything is copied; and how often logs are polled while they have no new entries. */
const REFRESH_MS = 50;
const LOGS_MS = 5;
/** What is copied of each client slot. */
const SLOT = { owner: 0, answers: 1, words: 2 } as const;
/** How many words may be in flight to us at a time. */
const UNDER_WAY_WORDS = 2 ** 15;

export class Mirror {
  readonly context: ClusterContext;
  private readonly logs: LogCopies;
  /** Rows as they arrive, before they are checked. */
  private readonly rows: Int32Array;
  /** By host: what it knows of each client slot. All hosts that a client is connected to know of it. */
  private readonly slots: readonly Int32Array[];
  /** By client slot: the messages answered when its latencies were last copied. */
  private readonly copiedAnswers: Int32Array;
  private underWayWords = 0;
  private refreshedUs = 0;
  /** What others want done. The loop of `goOn` does it, because it alone uses the network. */
  private readonly jobs: (() => Promise<void>)[] = [];
  private isStopping = false;
  private going: Promise<void> = Promise.resolve();
  /** Ends the pause of the loop. */
  private wake: () => void = () => undefined;

  private constructor(private readonly attachment: RemoteAttachment) {
    const { context } = attachment;
    this.context = context;
    this.rows = new Int32Array(context.map.replicas * ROW_RECORD_WORDS);
    const { clients } = context.layout.sizes;
    this.slots = Array.from(
      { length: context.map.hosts },
      () => new Int32Array(clients * SLOT.words),
    );
    this.copiedAnswers = new Int32Array(clients);
    this.logs = new LogCopies(context, {
      read: (link, at, into, intoAt, count) => this.read(link, at, into, intoAt, count),
      settle: () => this.settle(),
    });
  }

  /**
   * Returns after a first copy from all reachable hosts.
   * @param path  the path of the cluster's configuration file
   * @throws TRAM_UNREACHABLE if no host is reachable
   */
  static async open(path: string): Promise<Mirror> {
    const { config, credentials } = await readClusterFile(path);
    const address = await ownAddress(config);
    const attachment = attachRemotely(config, credentials, address, CALLER.observer);
    const mirror = new Mirror(attachment);
    try {
      await mirror.untilHeard();
      await mirror.refreshWholly(mirror.slots.keys());
    } catch (error) {
      attachment.close();
      throw error;
    }
    mirror.going = mirror.goOn();
    return mirror;
  }

  /**
   * Copies the log of this group too, from now on. Resolves once its decided entries are here.
   * @returns ends that
   */
  async follow(group: number): Promise<() => void> {
    await this.run(() => this.logs.follow(group));
    return () => this.logs.leave(group);
  }

  /**
   * Changes a word in the memory of a host, and wakes the host. Resolves to true once the word has landed. False: the host
   * can't be reached or does not confirm it, and the word may still land.
   */
  async change(host: number, at: number, next: (before: number) => number): Promise<boolean> {
    const link = this.attachment.network.links[host]!;
    const { arena, map } = this.context;
    let hasLanded = false;
    await this.run(async () => {
      link.readWords(at, arena.words, at, 1);
      await this.untilSettled(link);
      link.writeWords(at, Int32Array.of(next(arena.words[at])));
      link.wake(map.participantsOf(host)[0], true);
      await this.untilSettled(link);
      hasLanded = link.isOpen;
    });
    return hasLanded;
  }

  /** Or until its connection ends: a host that does not answer is given up. */
  private async untilSettled(link: Link): Promise<void> {
    while (link.isOpen && !link.isSettled) await this.turn();
  }

  /** Copies everything anew, now. @param hosts  for these it waits, as long as they are connected */
  update(hosts: readonly number[]): Promise<void> {
    return this.run(() => this.refreshWholly(hosts));
  }

  /** Why a host can't be reached; undefined if it can. */
  complaintOf(host: number): string | undefined {
    const { network } = this.attachment;
    return network.isConnected(host) ? undefined : (network.complaintOf(host) ?? NO_ANSWER);
  }

  async close(): Promise<void> {
    this.isStopping = true;
    this.wake();
    await this.going;
    this.attachment.close();
  }

  private run(job: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.jobs.push(() => job().then(resolve, reject));
      this.wake();
    });
  }

  /** Waits until each host has accepted or refused the connection. */
  private async untilHeard(): Promise<void> {
    const { network, context } = this.attachment;
    const startedUs = nowUs();
    for (;;) {
      await this.turn();
      const missing = network.missingHosts();
      const isAlone = missing.length === context.map.hosts;
      const isHeard = missing.every((host) => network.complaintOf(host) !== undefined);
      const isLate = nowUs() - startedUs > (isAlone ? ANYBODY_US : ALL_US);
      if (isAlone && (isHeard || isLate)) throw unreachable(this.attachment);
      if (isHeard || isLate) return;
    }
  }

  private async goOn(): Promise<void> {
    for (;;) {
      for (const job of this.jobs.splice(0)) await job();
      if (this.isStopping) return;
      if (nowUs() - this.refreshedUs >= REFRESH_MS * 1000) await this.refresh();
      if (await this.logs.copy()) continue;
      if (this.jobs.length === 0) await this.pause(this.logs.isEmpty ? REFRESH_MS : LOGS_MS);
    }
  }

  /** Does not keep the process running: callers that wait for something do. */
  private pause(ms: number): Promise<void> {
    if (this.isStopping) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Copies everything except the logs. */
  private async refresh(): Promise<void> {
    const { network } = this.attachment;
    const { hosts } = this.context.map;
    this.refreshedUs = nowUs();
    for (let host = 0; host < hosts; host++) {
      const link = network.links[host]!;
      if (link.isOpen) await this.readBoard(host, link);
      else this.noteEnded(host);
    }
    await this.settle();
    this.takeRows();
    await this.takeSlots();
  }

  /**
   * The same, and also waits for these hosts if they are slow, as long as they are connected. Of a host without an earlier
   * copy, half a copy would show replicas that run as down or recovering; and callers of `update` compare what they see with
   * what comes later.
   */
  private async refreshWholly(hosts: Iterable<number>): Promise<void> {
    await this.refresh();
    const { links } = this.attachment.network;
    for (const host of hosts) {
      const link = links[host]!;
      await this.untilSettled(link);
      if (!link.isOpen) this.noteEnded(host);
    }
    this.takeRows();
  }

  /** Copies the host's line; line, statistics and row of each of its replicas; and what it knows of clients. */
  private async readBoard(host: number, link: Link): Promise<void> {
    const { map, layout } = this.context;
    await this.copy(link, map.host(host), HOST.begun);
    await this.copy(link, map.host(host) + HOST.journal, STATUS_WORDS);
    for (const participant of map.participantsOf(host)) {
      await this.copy(link, map.participant(participant), PARTICIPANT.words);
      await this.copy(link, map.statisticsOf(participant), STATISTIC.words);
      const row = map.region(participant) + layout.row;
      await this.read(link, row, this.rows, participant * ROW_RECORD_WORDS, ROW_RECORD_WORDS);
    }
    const into = this.slots[host];
    for (let slot = 0; slot < layout.sizes.clients; slot++) {
      const participant = layout.clientParticipant(slot);
      const owner = map.participant(participant) + PARTICIPANT.owner;
      const answers = map.statisticsOf(participant) + STATISTIC.messages;
      await this.read(link, owner, into, slot * SLOT.words + SLOT.owner, 1);
      await this.read(link, answers, into, slot * SLOT.words + SLOT.answers, 1);
    }
  }

  private takeRows(): void {
    const { map, layout, arena } = this.context;
    for (let participant = 0; participant < map.replicas; participant++) {
      const at = participant * ROW_RECORD_WORDS;
      const row = slotAt(this.rows, at);
      const words = wordsOf(row, 0, epochAt(row, 0), numberAt(row, 0), ROW_RECORD_WORDS);
      // A torn row is ignored: the previous copy stays.
      if (words === 0) continue;
      arena.words.set(this.rows.subarray(at, at + words), map.region(participant) + layout.row);
    }
  }

  /**
   * A client is connected if a host is connected to it. Its statistics are those of the host that knows most. They are
   * copied only if there are new answers: a histogram is many words.
   */
  private async takeSlots(): Promise<void> {
    const { map, layout, arena } = this.context;
    const { copiedAnswers, slots } = this;
    const { links } = this.attachment.network;
    for (let slot = 0; slot < copiedAnswers.length; slot++) {
      const participant = layout.clientParticipant(slot);
      const at = slot * SLOT.words;
      const isPresent = slots.some((words) => words[at + SLOT.owner] === OWNER.present);
      arena.words[map.participant(participant) + PARTICIPANT.owner] = isPresent
        ? OWNER.present
        : OWNER.nobody;
      for (const [host, words] of slots.entries()) {
        const answers = words[at + SLOT.answers];
        if (!isLater(answers, copiedAnswers[slot])) continue;
        copiedAnswers[slot] = answers;
        await this.copy(links[host]!, map.statisticsOf(participant), STATISTICS_WORDS);
      }
    }
    await this.settle();
  }

  /** Reads words of a host to the same offset here. */
  private copy(link: Link, at: number, count: number): Promise<void> {
    return this.read(link, at, this.context.arena.words, at, count);
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

  /** Waits until all posted reads have completed or were lost with their connection. */
  private async settle(): Promise<void> {
    const { network } = this.attachment;
    const untilUs = nowUs() + COPY_US;
    do {
      await this.turn();
    } while (!network.isSettled && nowUs() < untilUs);
    this.underWayWords = 0;
  }

  private async turn(): Promise<void> {
    turn(this.attachment.network);
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** An unreachable host cannot be shown as running. */
  private noteEnded(host: number): void {
    const { arena, map } = this.context;
    const at = map.host(host) + HOST.state;
    arena.words[at] = withHostState(arena.words[at], HOST_STATE.ended);
    this.slots[host].fill(0);
  }
}

/** Counts are modulo 2³². */
function isLater(count: number, than: number): boolean {
  return ((count - than) | 0) > 0;
}
