/**
 * Operations on a whole cluster that need only its arena: closing, waiting for leaders, the first and last lines of
 * its history. Used by `Cluster`, which started it, and by the commands, which attach to it.
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  rmSync,
  unlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import type { TraceEvent } from '../check/events.js';
import type { ClusterConfig } from '../config/config.js';
import { ConfigError } from '../config/mistakes.js';
import { TramError } from '../errors.js';
import { NO_ERA } from '../journal/recovery-asks.js';
import {
  ARENA,
  ARENA_STATE,
  type Arena,
  HOST,
  HOST_STATE,
  hostStateOf,
  PARKED,
  PARTICIPANT,
  STAYS_DOWN,
  withHostState,
} from '../memory/arena.js';
import type { ArenaFile } from '../memory/processes/arena-file.js';
import { isCut } from '../memory/processes/lifelines.js';
import { wakeParked } from '../memory/shared.js';
import { nowUs } from './clock.js';
import type { ClusterContext } from './cluster-context.js';
import {
  type ClusterStatus,
  describeStateLoss,
  type GroupStatus,
  isLocked,
  stateLost,
  statusOf,
} from './status.js';
import { eraName, TraceFile, writeOnce } from './trace.js';

const LOOK_MS = 1;
/** Messages of a crashed client may still move from group to group, so nothing may move for this long. */
const STILL_MS = 50;
const TRACE_FILE = /^(groups|end|era-\d+|client-\d+|replica-\d+-\d+)\.jsonl$/;
const ERA_FILE = /^era-\d+\.jsonl$/;
const CLIENT_FILE = /^client-\d+\.jsonl$/;

/**
 * The lock of the process that has started a cluster, its *starter*. It holds the lock from before the memory can be read
 * until it ends or detaches. Without it another start could take the new memory for that of a dead cluster.
 */
export function starterLock({ hosts, sizes }: ClusterConfig): number {
  return hosts + sizes.clients;
}

/**
 * Makes this process the starter of a cluster that has none any more. Its hosts outlive this process too.
 * @throws TRAM_EXISTS, TRAM_CLOSED
 */
export function becomeStarter({ config }: ClusterContext, arena: ArenaFile, name: string): void {
  try {
    arena.lockHost(starterLock(config), 0);
  } catch (cause) {
    throw new TramError('TRAM_EXISTS', `another process supervises cluster "${name}"`, { cause });
  }
  const { words } = arena;
  if (Atomics.load(words, ARENA.state) === ARENA_STATE.closing || words[ARENA.isDetached] === 0) {
    throw new TramError('TRAM_CLOSED', `cluster "${name}" was ended`, { retry: 'safe' });
  }
  words[ARENA.restartsHosts] = 1;
}

/** Before a host is ended on purpose: nobody restarts it until it is asked for. */
export function keepDown({ arena, map }: ClusterContext, host: number): void {
  Atomics.store(arena.words, map.host(host) + HOST.staysDown, STAYS_DOWN.yes);
}

/** Before its starter starts a host: it is restarted if it ends unexpectedly. */
export function letRestart({ arena, map }: ClusterContext, host: number): void {
  Atomics.store(arena.words, map.host(host) + HOST.staysDown, STAYS_DOWN.no);
}

/** Before another process than the starter starts a host: the starter leaves it alone until it has begun. */
export function keepDownUntilStarted({ arena, map }: ClusterContext, host: number): void {
  Atomics.store(arena.words, map.host(host) + HOST.staysDown, STAYS_DOWN.untilStarted);
}

export function staysDown({ arena, map }: ClusterContext, host: number): boolean {
  return Atomics.load(arena.words, map.host(host) + HOST.staysDown) !== STAYS_DOWN.no;
}

/** Memory without locks, in which a host is being restarted afresh. */
const claimed = new WeakSet<Arena>();

/**
 * Before a host is restarted with empty memory: one at a time, because each relies on the copies of the others.
 * @returns ends the claim, which also ends with this process
 * @throws TRAM_LAST_COPY if another one is under way
 */
export function claimFreshRestart({ arena, config }: ClusterContext): () => void {
  const lock = starterLock(config) + 1;
  if (isLocked(arena, lock) ?? claimed.has(arena)) {
    throw new TramError(
      'TRAM_LAST_COPY',
      'another host is being restarted with empty memory, and may need the state of this one',
      { hint: 'Wait until its replicas take part.' },
    );
  }
  if ('lockHost' in arena) return (arena as ArenaFile).lockHost(lock, 0).release;
  claimed.add(arena);
  return () => claimed.delete(arena);
}

/** Does the starter of a cluster of processes run, and restart hosts that end unexpectedly? */
export function isSupervised({ arena, config }: ClusterContext): boolean {
  return arena.words[ARENA.restartsHosts] === 1 && isLocked(arena, starterLock(config)) === true;
}

export function wakeHosts({ map, arena }: ClusterContext): void {
  for (let host = 0; host < map.hosts; host++) {
    wakeParked(arena.words, arena.parking, map.host(host) + HOST.parked);
  }
}

/** Increments a replica's count of requests to lead, and wakes its host, on whatever machine that is. */
export function requestLead(
  context: ClusterContext,
  group: number,
  member: number,
  /** A choice holds until that leader fails or is replaced. After a handover, the first member takes the lead again. */
  why: 'choice' | 'handover',
): void {
  const { layout, map, arena, network } = context;
  context.requireMember(group, member);
  const participant = layout.replicaParticipant(group, member);
  const word = why === 'choice' ? PARTICIPANT.campaignRequests : PARTICIPANT.handovers;
  const at = map.participant(participant) + word;
  const requests = Atomics.add(arena.words, at, 1) + 1;
  if (network === undefined) {
    context.memory(participant).wake(participant, true);
    return;
  }
  const link = network.linkOf[participant];
  link?.writeWords(at, Int32Array.of(requests));
  link?.wake(participant, true);
  network.flush(nowUs());
}

/** A candidate may lose against another one. Then it is asked again. */
const ASK_AGAIN_MS = 500;
const LEAD_LOOK_MS = 1;

/** Asks a replica to lead until it does, its host is down, or the time is over. @returns how its group is then */
export async function makeLeader(
  context: ClusterContext,
  group: number,
  member: number,
  timeoutMs: number,
): Promise<GroupStatus> {
  const startedMs = performance.now();
  let askedMs = Number.NEGATIVE_INFINITY;
  for (;;) {
    const status = statusOf(context).groups[group];
    const nowMs = performance.now();
    const isOver = status.leader === member || status.replicas[member].state === 'down';
    if (isOver || nowMs - startedMs > timeoutMs) return status;
    if (nowMs - askedMs > ASK_AGAIN_MS) {
      askedMs = nowMs;
      requestLead(context, group, member, 'choice');
    }
    await pause(LEAD_LOOK_MS);
  }
}

/**
 * Marks a host as ended, unless it runs. That it has ended may become known late, when another process has restarted it.
 *
 * A host takes its lock and its lifeline before it changes its state. So if the lock is free or the lifeline is cut, the
 * start that the state tells of has ended, or the state has changed since it was read.
 * @returns whether this call has marked it
 */
export function markEnded({ arena, map }: ClusterContext, host: number): boolean {
  const { words } = arena;
  const line = map.host(host);
  const state = Atomics.load(words, line + HOST.state);
  if (hostStateOf(state) === HOST_STATE.ended) return false;
  if (!isCut(words, line + HOST.lifeline) && isLocked(arena, host)) return false;
  const ended = withHostState(state, HOST_STATE.ended);
  if (Atomics.compareExchange(words, line + HOST.state, state, ended) !== state) return false;
  // Not before: if it runs again, it may be parked by now, and nobody would wake it.
  Atomics.store(words, line + HOST.parked, PARKED.absent);
  return true;
}

/** Tells all hosts to end. Returns true for the first caller, which also cleans up. */
export function askToEnd(context: ClusterContext): boolean {
  const { words } = context.arena;
  const before = Atomics.exchange(words, ARENA.state, ARENA_STATE.closing);
  wakeHosts(context);
  return before !== ARENA_STATE.closing;
}

/** For those that wait for groups. @throws TRAM_STATE_LOST if groups have lost their state for good */
export function requireState(groups: readonly GroupStatus[]): void {
  const lost = stateLost(groups);
  if (lost.length > 0) throw new TramError('TRAM_STATE_LOST', describeStateLoss(lost));
}

/** Waits until every group has a leader and all its replicas take part. @throws TRAM_START_FAILED, TRAM_STATE_LOST */
export async function untilLed(
  context: ClusterContext,
  deadlineMs: number,
  signal?: AbortSignal,
): Promise<void> {
  for (;;) {
    signal?.throwIfAborted();
    const { groups } = statusOf(context);
    requireState(groups);
    const missing = groups.filter((group) => !isComplete(group));
    if (missing.length === 0) return;
    if (Date.now() > deadlineMs) {
      const names = missing.map(({ group }) => `g${group}`).join(', ');
      throw new TramError(
        'TRAM_START_FAILED',
        `${names} did not elect a leader that all replicas follow in time`,
      );
    }
    await pause(LOOK_MS);
  }
}

function isComplete({ leader, replicas }: GroupStatus): boolean {
  return leader !== undefined && replicas.every(({ role }) => role !== 'recovering');
}

/**
 * Waits until nothing is ordered any more but ticks: every group has a leader, and all its replicas that are up have
 * delivered the same messages. True if so; false if that can't be, or not in time, or a client is connected.
 */
export async function drain(
  context: ClusterContext,
  timeoutMs: number,
  isOver: () => boolean = () => false,
): Promise<boolean> {
  const deadlineMs = Date.now() + timeoutMs;
  const calm = new Calm();
  while (!isOver()) {
    const status = statusOf(context);
    if (!canDrain(status)) return false;
    const nowMs = Date.now();
    if (calm.holds(status.groups, nowMs)) return true;
    if (nowMs > deadlineMs) return false;
    await pause(LOOK_MS);
  }
  return false;
}

/** @internal Looks at all groups, again and again, until nothing has moved for a while. */
export class Calm {
  private sinceMs = 0;
  /** What the last look has found; undefined if not all groups were level. */
  private before: string | undefined;

  /** Have all groups been level for a while, and has none delivered anything? */
  holds(groups: readonly GroupStatus[], nowMs: number): boolean {
    const isSo = groups.every(isLevel);
    const delivered = isSo ? JSON.stringify(groups.map(deliveredBy)) : undefined;
    if (!isSo || delivered !== this.before) this.sinceMs = nowMs;
    this.before = delivered;
    return nowMs - this.sinceMs >= STILL_MS;
  }
}

function canDrain({ clients, groups }: ClusterStatus): boolean {
  const hasQuorum = ({ replicas }: GroupStatus): boolean =>
    2 * replicas.filter(({ state, role }) => state === 'up' && role !== 'recovering').length >
    replicas.length;
  return clients.connected === 0 && groups.every(hasQuorum);
}

function deliveredBy({ replicas }: GroupStatus): number[] {
  const up = replicas.filter(({ state }) => state === 'up');
  // Ticks go on, so the number of log entries keeps growing.
  return up.map(({ messages, relayed }) => messages + relayed);
}

function isLevel(group: GroupStatus): boolean {
  const [first, ...others] = deliveredBy(group);
  return group.leader !== undefined && others.every((count) => count === first);
}

/** Writes the first lines of a history into a directory that has none yet. */
export function beginTrace(config: ClusterConfig, directory: string): void {
  claimTrace(directory);
  const file = new TraceFile(directory, 'groups');
  file.add(groupsEvent(config));
  file.close();
}

/**
 * The same for an era of a cluster with a journal. A later era continues the history of the one from which it is recovered.
 * @param fromEra  that one; `NO_ERA` if there is none
 */
export function beginEraTrace(config: ClusterConfig, directory: string, fromEra: number): void {
  if (fromEra === NO_ERA) {
    if (isOfFailedStart(directory)) discardTrace(directory);
    beginTrace(config, directory);
  } else if (!existsSync(join(directory, `${eraName(fromEra)}.jsonl`))) {
    throw lacksHistory(directory, fromEra);
  } else {
    rmSync(join(directory, 'end.jsonl'), { force: true });
  }
}

/** The first start with a journal has failed before any client was let in, or its power was cut. */
function isOfFailedStart(directory: string): boolean {
  const names = existsSync(directory) ? readdirSync(directory) : [];
  return names.some((name) => ERA_FILE.test(name)) && !names.some((name) => CLIENT_FILE.test(name));
}

function groupsEvent({ sizes, parents, order }: ClusterConfig): TraceEvent {
  const groups: Record<string, string[]> = {};
  for (let group = 0; group < sizes.groups; group++) {
    groups[group] = Array.from({ length: sizes.replicas }, (_, member) => `${group}/${member}`);
  }
  return { event: 'groups', groups, parents, order };
}

/**
 * The same with `memory: 'machines'`. Hosts have a directory each, or share one on the same machine. A host writes the
 * first lines if they are missing, so all directories together are one history.
 * @param fresh  the file names of replicas that start for the first time: these files must not exist yet
 */
export function joinTrace(
  config: ClusterConfig,
  directory: string,
  fresh: readonly string[],
): void {
  const isThere = (name: string): boolean => existsSync(join(directory, `${name}.jsonl`));
  if (fresh.some(isThere)) throw holdsHistory(directory);
  try {
    writeOnce(directory, 'groups', groupsEvent(config));
  } catch (cause) {
    throw cantTrace(cause);
  }
}

/** One directory holds one history: a second one would make both unreadable. */
function claimTrace(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true });
    closeSync(openSync(join(directory, 'groups.jsonl'), 'wx', 0o600));
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    throw code === 'EEXIST' && syscall === 'open' ? holdsHistory(directory) : cantTrace(cause);
  }
}

function holdsHistory(directory: string): ConfigError {
  return new ConfigError(['trace'], `trace: ${directory} holds a history already`, {
    hint: 'Choose another directory, or remove that one.',
  });
}

function lacksHistory(directory: string, era: number): ConfigError {
  return new ConfigError(
    ['trace'],
    `trace: ${directory} does not have the history of era ${era}, from which the cluster is recovered`,
    { hint: 'Give the directory that the cluster had then, or leave trace out.' },
  );
}

function cantTrace(cause: unknown): ConfigError {
  const { message } = cause as Error;
  return new ConfigError(['trace'], `trace: can't write there: ${message}`, { cause });
}

/** The replicas that are down, as a history names them. */
export function replicasDown(context: ClusterContext): string[] {
  const replicas = statusOf(context).groups.flatMap((group) => group.replicas);
  return replicas
    .filter(({ state }) => state === 'down')
    .map(({ group, member }) => `${group}/${member}`);
}

/**
 * Writes the last lines of a history.
 * @param down  the replicas that were down before the cluster was told to end: they crashed
 */
export function endTrace(
  context: ClusterContext,
  down: readonly string[],
  isQuiescent: boolean,
): void {
  const { trace } = context.config;
  if (trace === undefined) return;
  const file = new TraceFile(trace, 'end');
  for (const replica of down) file.add({ event: 'crash', replica });
  for (const session of crashedSessions(context)) {
    file.add({ event: 'client-crash', client: `c${session}` });
  }
  file.add({ event: 'end', quiescent: isQuiescent });
  file.close();
}

/** The clients that ended before all their messages were answered. */
function crashedSessions({ arena, map, layout }: ClusterContext): number[] {
  const sessions: number[] = [];
  for (let slot = 0; slot < layout.sizes.clients; slot++) {
    const at = map.participant(layout.clientParticipant(slot)) + PARTICIPANT.session;
    sessions.push(Atomics.load(arena.words, at));
  }
  return sessions.filter((session) => session !== 0);
}

/** Removes the history of a cluster that failed to start. */
export function discardTrace(directory: string): void {
  const files = readdirSync(directory).filter((name) => TRACE_FILE.test(name));
  for (const file of files) unlinkSync(join(directory, file));
  if (readdirSync(directory).length === 0) rmdirSync(directory);
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
