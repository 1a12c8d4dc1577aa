/**
 * A client of a cluster on machines. The first host that answers and has a free slot gives it one; that host is the
 * client's home.
 *
 * An idle client answers its hosts periodically, so that they know it is alive. It records its statistics in its own
 * memory and copies them to all hosts, where tools read them: they outlive the client, and any host that fails. The
 * statistics of a slot are those of all its clients. The copy with the most answers is the latest.
 */
import type { MachinesConfig } from '../../config/config.js';
import { TramError } from '../../errors.js';
import { ARENA_VERSION, OWNER, PARTICIPANT } from '../../memory/arena.js';
import { CALLER, REFUSAL } from '../../memory/machines/handshake.js';
import type { Link } from '../../memory/machines/link.js';
import { beginIncarnation } from '../../memory/shared.js';
import { nowUs } from '../clock.js';
import type { ClusterContext } from '../cluster-context.js';
import type { ClientSlot } from '../slot.js';
import { STALLED_US, stalls } from '../stall.js';
import { STATISTIC, STATISTICS_WORDS } from '../statistics.js';
import type { Credentials } from './cluster-file.js';
import { homeOf } from './home-slots.js';
import { attachRemotely, type RemoteAttachment, turn, unreachable } from './remote-attachment.js';

export interface Joined {
  readonly context: ClusterContext;
  readonly slot: ClientSlot;
}

const JOIN_MS = 10_000;
/** How often an idle client answers its hosts, and how often it copies its statistics to them. */
const STAY_MS = 100;
const TELL_MS = 1000;
/** How long it waits for its hosts when it connects and when it closes. */
const HOSTS_US = 100_000;

/** @param path  the path of the cluster's configuration file */
export async function joinFrom(path: string): Promise<Joined> {
  const { ownAddress, readClusterFile } = await import('./cluster-file.js');
  const { config, credentials } = await readClusterFile(path);
  return join(config, credentials, await ownAddress(config));
}

export async function join(
  config: MachinesConfig,
  credentials: Credentials,
  address: string,
  timeoutMs: number = JOIN_MS,
): Promise<Joined> {
  const attachment = attachRemotely(config, credentials, address, CALLER.newClient);
  const { context, network } = attachment;
  try {
    await untilConnected(attachment, timeoutMs);
    const { slot, session } = network.slot!;
    const participant = context.layout.clientParticipant(slot);
    beginIncarnation(context.arena, context.map, participant, false, session);
    const stay = new Stay(attachment, slot, participant, session);
    await stay.begin();
    return { context, slot: { slot, participant, session, release: () => stay.end() } };
  } catch (error) {
    attachment.close();
    throw error;
  }
}

/** A client's use of a slot, from connecting to closing. */
class Stay {
  private readonly hosts: readonly Link[];
  private readonly home: Link;
  private timer: NodeJS.Timeout | undefined;
  private toldMs = 0;

  constructor(
    private readonly attachment: RemoteAttachment,
    slot: number,
    private readonly participant: number,
    private readonly session: number,
  ) {
    const { context, network } = attachment;
    this.hosts = network.links.slice(0, context.map.hosts) as readonly Link[];
    this.home = this.hosts[homeOf(slot, context.map.hosts)];
  }

  /** Takes over the slot's statistics, and learns whether its last client left messages unanswered. */
  async begin(): Promise<void> {
    const { context, network } = this.attachment;
    const { map, arena, config } = context;
    const { words } = arena;
    const session = map.participant(this.participant) + PARTICIPANT.session;
    const statistics = map.statisticsOf(this.participant);
    this.home.readWords(session, words, session, 1);
    const copies = this.hosts.map((host) => {
      const copy = new Int32Array(STATISTICS_WORDS);
      host.readWords(statistics, copy, 0, STATISTICS_WORDS);
      return copy;
    });
    const untilUs = nowUs() + HOSTS_US;
    while (!network.isSettled && nowUs() < untilUs) {
      turn(network);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const answers = (copy: Int32Array): number => copy[STATISTIC.messages] >>> 0;
    words.set(
      copies.reduce((most, copy) => (answers(copy) > answers(most) ? copy : most)),
      statistics,
    );
    const intervalMs = Math.min(STAY_MS, config.timing.suspectAfterUs / 2000);
    this.timer = setInterval(() => this.goOn(), intervalMs).unref();
  }

  private goOn(): void {
    const { network } = this.attachment;
    network.poll(nowUs());
    if (Date.now() - this.toldMs >= TELL_MS) this.tell();
    network.flush(nowUs());
  }

  private tell(): void {
    const { map, arena } = this.attachment.context;
    const session = map.participant(this.participant) + PARTICIPANT.session;
    const statistics = map.statisticsOf(this.participant);
    const part = (at: number, count: number): Int32Array => arena.words.subarray(at, at + count);
    this.home.writeWords(session, part(session, 1));
    for (const host of this.hosts) host.writeWords(statistics, part(statistics, STATISTICS_WORDS));
    this.toldMs = Date.now();
  }

  /** Tells the hosts that the client is closed. If that is lost, its home finds out by its time-out. */
  end(): void {
    const { context, network, close } = this.attachment;
    clearInterval(this.timer);
    this.tell();
    const line = context.map.participant(this.participant);
    for (const host of this.hosts) {
      host.writeWords(line + PARTICIPANT.endedSession, Int32Array.of(this.session));
    }
    this.home.writeWords(line + PARTICIPANT.owner, Int32Array.of(OWNER.nobody));
    network.sayFarewell();
    const untilUs = nowUs() + HOSTS_US;
    do turn(network);
    while (!network.isSettled && nowUs() < untilUs);
    close();
  }
}

/** Waits for a slot and for connections to a majority of the hosts: with fewer the client could do nothing. */
async function untilConnected(attachment: RemoteAttachment, timeoutMs: number): Promise<void> {
  const { network, config } = attachment;
  const deadlineUs = nowUs() + timeoutMs * 1000;
  let tellsAtUs = nowUs() + STALLED_US;
  for (;;) {
    turn(network);
    const missing = network.missingHosts();
    if (network.slot !== undefined && 2 * missing.length < config.hosts) return;
    const isHopeless = missing.every((host) => network.refusalOf(host) > 0);
    if (isHopeless || nowUs() > deadlineUs) throw refused(attachment, missing);
    if (nowUs() > tellsAtUs) {
      tellsAtUs += STALLED_US;
      tellStall(refused(attachment, missing));
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function tellStall({ message }: TramError): void {
  stalls.publish({
    client: undefined,
    destinations: [],
    missingGroups: [],
    stalledGroups: [],
    reason: message,
  });
}

function refused(attachment: RemoteAttachment, missing: readonly number[]): TramError {
  const { network, config } = attachment;
  const refusals = missing.map((host) => network.refusalOf(host)).filter((refusal) => refusal > 0);
  const areAll = (one: number): boolean =>
    refusals.length > 0 && refusals.every((refusal) => refusal === one);
  if (areAll(REFUSAL.otherVersion)) {
    return new TramError(
      'TRAM_VERSION_MISMATCH',
      `the hosts run TRAM with another memory version than ${ARENA_VERSION}, that of this client`,
    );
  }
  // A host that is not full may be down. But without a majority of the hosts, slots would not help.
  if (!areAll(REFUSAL.noSlot) || 2 * refusals.length < config.hosts) return unreachable(attachment);
  return new TramError(
    'TRAM_NO_CLIENT_SLOT',
    `all ${config.sizes.clients} client slots are taken, or wait for clients that have vanished`,
    { hint: 'Close a client that is not needed, or start the hosts with a larger `clients`.' },
  );
}
