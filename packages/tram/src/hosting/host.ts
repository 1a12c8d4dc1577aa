/**
 * A host runs its share of the replicas until the cluster closes. The same code runs in a worker thread
 * (`host-thread.ts`), in a process (`host-process.ts`) and on a machine (`machines/machine.ts`).
 */
import { journalFolder } from '../config/config.js';
import { type ErrorCode, TramError } from '../errors.js';
import { FIRST_ERA } from '../journal/recovery-asks.js';
import { writeStatus } from '../journal/status.js';
import {
  ARENA,
  ARENA_STATE,
  HOST,
  HOST_STATE,
  nextHostStart,
  PARTICIPANT,
  STAYS_DOWN,
  withHostState,
} from '../memory/arena.js';
import { OPEN, type ParticipantId } from '../memory/contract.js';
import { beginIncarnation } from '../memory/shared.js';
import { InvariantError } from '../protocol/assert.js';
import { type Application, NO_OBSERVER, type Observer } from '../protocol/edges.js';
import { messageId } from '../protocol/layout.js';
import { describeBallot } from '../protocol/leadership/ballot.js';
import { keyAfter } from '../protocol/leadership/key.js';
import type { Identity } from '../protocol/member.js';
import { nowUs } from './clock.js';
import type { ClusterContext } from './cluster-context.js';
import { Duty, type Pacing, type Watch } from './duty.js';
import type { LeftSnapshots } from './left-snapshots.js';
import { Lookout } from './lookout.js';
import { describeThrownByService } from './origin.js';
import { type JournalStart, OwnJournal } from './own-journal.js';
import { rateLimited } from './rate-limit.js';
import { ReplicaAgent } from './replica-agent.js';
import { describeFailure, loadService, NO_SERVICE } from './service.js';
import { STATISTIC } from './statistics.js';
import { catchStrayErrors } from './stray-errors.js';
import { eraName, TraceFile, traceName, writeOnce } from './trace.js';
import { inlineGenerously } from './v8-flags.js';
import { WarmUp } from './warm-up.js';

/** What a host reports to the process or thread that started it. */
export type HostReport =
  /** `lastSession` is the highest session that its replicas know of. */
  | { readonly what: 'ready'; readonly lastSession?: number }
  /** It replays its journal, which may take long. */
  | { readonly what: 'progress'; readonly text: string }
  | {
      readonly what: 'leader';
      readonly group: number;
      readonly member: number;
      readonly ballot: string;
    }
  /** Something that an operator must know, in words for the log. */
  | {
      readonly what: 'trouble';
      readonly text: string;
      /** If a replica could not leave its state: why. */
      readonly unsavedBy?: string;
    };

/** Why a host did not start. Reported instead of being ready. */
export interface HostFailure {
  readonly what: 'failed';
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint?: string;
  /** Errors do not cross the boundary of a process. */
  readonly cause?: { readonly name: string; readonly message: string; readonly stack: string };
}

export function failureOf({ code, message, hint, cause }: TramError): HostFailure {
  return {
    what: 'failed',
    code,
    message,
    ...(hint !== undefined && { hint }),
    ...(cause instanceof Error && {
      cause: { name: cause.name, message: cause.message, stack: cause.stack ?? String(cause) },
    }),
  };
}

export interface HostSettings {
  readonly host: number;
  /** Resume with the memory of the previous incarnation; otherwise begin with empty memory. */
  readonly resumes: boolean;
  readonly pacing: Pacing;
  readonly report: (report: HostReport) => void;
  /** Where its replicas leave snapshots, and find them again. Not used with a journal. */
  readonly left: LeftSnapshots;
  /** With a journal: reads what the replicas start from, once the journal is locked. */
  readonly journal?: (() => JournalStart) | undefined;
  /** The arena, or its path: what the journal thread opens to wake this host. */
  readonly arena?: SharedArrayBuffer | string | undefined;
  readonly watch?: Watch;
  readonly onMachines?: MachinePast;
}

/** With `memory: 'machines'`: what the arena cannot tell of its replicas if their memory is lost. */
export interface MachinePast {
  readonly past: Identity['past'];
  /** Higher than those of their earlier incarnations. */
  readonly leastIncarnation: number;
  /** Later than those of their earlier incarnations. */
  readonly firstKey: number;
}

/** How long the host keeps the thread before timers and messages get their turn. */
const SLICE_US = 50_000;
/** The same while it warms up. */
const WARM_UP_SLICE_US = 10_000;

export class Host {
  private readonly words: Int32Array;
  private readonly line: number;
  private readonly traces: TraceFile[] = [];
  private readonly agents: ReplicaAgent[] = [];
  private duty!: Duty;
  private journal: OwnJournal | undefined;
  private isStopped = false;
  /** Until it is complete. */
  private warmUp: WarmUp | undefined;
  private lookout!: Lookout;
  private stopCatching!: () => void;
  /** Rate-limited: a service that fails with every message must not fill the log. */
  private readonly tellFailure: (text: string) => void;

  private constructor(
    private readonly context: ClusterContext,
    private readonly settings: HostSettings,
  ) {
    this.words = context.arena.words;
    this.line = context.map.host(settings.host);
    this.tellFailure = rateLimited((text) => settings.report({ what: 'trouble', text }));
  }

  /** The caller must be the only one that runs this host. */
  static async start(context: ClusterContext, settings: HostSettings): Promise<Host> {
    const host = new Host(context, settings);
    try {
      await host.begin();
      return host;
    } catch (error) {
      host.stopCatching();
      await host.journal?.close();
      throw error;
    }
  }

  private async begin(): Promise<void> {
    const { words, line, settings, context } = this;
    this.stopCatching = catchStrayErrors((error) =>
      this.tellFailure(describeFailure({ in: 'background', error })),
    );
    inlineGenerously();
    if (process.env['TRAM_WARM_UP'] !== 'off') {
      this.warmUp = new WarmUp(context);
      this.warmUp.begin();
    }
    Atomics.store(words, line + HOST.pid, process.pid);
    Atomics.compareExchange(words, line + HOST.staysDown, STAYS_DOWN.untilStarted, STAYS_DOWN.no);
    Atomics.store(words, line + HOST.state, nextHostStart(Atomics.load(words, line + HOST.state)));
    const { agents } = this;
    if (settings.journal !== undefined) this.journal = await this.openJournal(settings.journal);
    for (const replica of context.map.participantsOf(settings.host)) {
      agents.push(await this.startReplica(replica));
    }
    if (this.journal !== undefined) await this.beginFromJournal(this.journal);
    // A machine with a journal gives its memory up then, and says so itself (`machines/machine-journal.ts`).
    const isSaid = this.journal !== undefined && settings.onMachines !== undefined;
    const tell = (text: string): void => settings.report({ what: 'trouble', text });
    this.lookout = new Lookout(agents, isSaid ? () => undefined : tell);
    const { map, arena } = context;
    const at = {
      parked: line + HOST.parked,
      ready: map.readyOf(settings.host),
      readyLater: map.readyLaterOf(settings.host),
      allParked: map.allParked,
    };
    const { watch, pacing } = settings;
    const { journal } = this;
    const onTurnEnd = journal && (() => journal.endTurn());
    this.duty = new Duty(arena, at, agents, pacing, nowUs, watch, context.network, onTurnEnd);
    if (this.journal !== undefined) Atomics.store(words, line + HOST.era, this.journal.era);
    this.enter(HOST_STATE.running);
    settings.report({ what: 'ready', lastSession: this.lastSession });
  }

  /** The highest session that its replicas know of. */
  private get lastSession(): number {
    const firstLives = this.agents.map(({ replica }) => replica.member.waiting.firstLive);
    return firstLives.reduce(
      (last, firstLive) => firstLive.reduce((a, b) => Math.max(a, b), last),
      0,
    );
  }

  private openJournal(begin: () => JournalStart): Promise<OwnJournal> {
    const { context, settings, line } = this;
    const { config, map, layout, network } = context;
    const { groups: groupCount, replicas } = config.sizes;
    const ready: number[][] = Array.from({ length: groupCount }, () => []);
    for (const participant of map.participantsOf(settings.host)) {
      ready[Math.floor(participant / replicas)].push(map.ready(participant));
    }
    return OwnJournal.open(
      {
        folder: journalFolder(config, settings.host)!,
        host: settings.host,
        groups: [...ready.keys()].filter((group) => ready[group].length > 0),
        groupCount,
        isAwaited: config.durability === 'always',
        snapshotBytes: config.snapshotBytes,
        entryWordsMax: layout.entryWordsMax,
        wakes: {
          arena: settings.arena!,
          parked: line + HOST.parked,
          ready,
          descriptor: network?.wakeDescriptor,
        },
      },
      begin,
    );
  }

  private enter(state: number): void {
    const { words, line } = this;
    Atomics.store(words, line + HOST.state, withHostState(words[line + HOST.state], state));
  }

  private async startReplica(participant: ParticipantId): Promise<ReplicaAgent> {
    const { context, settings } = this;
    const { sizes, service } = context.config;
    const group = Math.floor(participant / sizes.replicas);
    const member = participant % sizes.replicas;
    const { onMachines, resumes } = settings;
    const { arena, map } = context;
    const incarnation = beginIncarnation(
      arena,
      map,
      participant,
      resumes,
      onMachines?.leastIncarnation,
    );
    const past = onMachines?.past ?? (incarnation === 1 ? 'none' : resumes ? 'kept' : 'lost');
    const lastKey = Atomics.load(arena.words, map.participant(participant) + PARTICIPANT.lastKey);
    const firstKey =
      lastKey === OPEN && onMachines !== undefined ? onMachines.firstKey : keyAfter(lastKey, 1);
    const { left } = settings;
    const identity: Identity = {
      group,
      member,
      incarnation,
      firstKey,
      past,
      left: resumes && this.journal === undefined ? left.find(participant) : undefined,
    };
    let application =
      service === undefined
        ? NO_SERVICE
        : await loadService(service, { group, member }, incarnation);
    const trace = this.openTrace(identity);
    if (trace !== undefined) application = traced(application, trace, `${group}/${member}`);
    const observer = this.observe(participant, identity, trace);
    let agent: ReplicaAgent;
    try {
      agent = new ReplicaAgent(
        context,
        participant,
        identity,
        application,
        observer,
        nowUs(),
        this.journal?.group(group),
      );
    } catch (error) {
      if (identity.left === undefined || error instanceof InvariantError) throw error;
      throw cantResume(context.nameOf(participant), error);
    }
    // If its memory is gone, what it left is of no use any more. Only the replica itself knows that for certain.
    if (agent.replica.member.past !== 'kept') left.discard(participant);
    return agent;
  }

  private async beginFromJournal(journal: OwnJournal): Promise<void> {
    const replicas = this.agents.map(({ replica }) => replica);
    await journal.replay(replicas);
    // The history must have what is recovered before the era is open. Without a trace, or with one for each replica.
    for (const [i, trace] of this.traces.entries()) {
      const { group, index } = replicas[i].member;
      if (!journal.openedGroups.includes(group)) continue;
      trace.add({ event: 'opened', replica: `${group}/${index}` });
      trace.flush();
    }
    await journal.run(replicas);
  }

  private openTrace({ group, member, past }: Identity): TraceFile | undefined {
    const { trace: directory, durability } = this.context.config;
    if (directory === undefined) return undefined;
    const replica = `${group}/${member}`;
    const era = this.journal?.era;
    if (era !== undefined) writeOnce(directory, eraName(era), { event: 'era', era, durability });
    const trace = new TraceFile(directory, traceName(group, member));
    this.traces.push(trace);
    if (past !== 'none' || (era !== undefined && era > FIRST_ERA)) {
      trace.add({ event: 'crash', replica });
      trace.add({ event: 'restart', replica, ...(era !== undefined && { era }) });
      trace.add({ event: 'restore', replica, from: replica, count: 0 });
    }
    return trace;
  }

  private observe(
    participant: ParticipantId,
    identity: Identity,
    trace: TraceFile | undefined,
  ): Observer {
    const { words, settings } = this;
    const { group, member } = identity;
    const replica = `${group}/${member}`;
    const statistics = this.context.map.statisticsOf(participant);
    const reportFailure = (failing: 'deliver' | 'snapshot', error: unknown): void => {
      const text = describeThrownByService(error);
      this.tellFailure(describeFailure({ group, member, in: failing, error: text }));
    };
    return {
      // The same function as in the warm-up: what the engine has compiled there stays valid.
      transition: NO_OBSERVER.transition,
      led: (ballot) => {
        words[statistics + STATISTIC.timesLed]++;
        trace?.add({ event: 'leader', group, replica, ballot: describeBallot(ballot) });
        settings.report({ what: 'leader', group, member, ballot: describeBallot(ballot) });
      },
      relayed: (message) => trace?.add({ event: 'touch', id: messageId(message), group }),
      restored: (from, count) =>
        trace?.add({ event: 'restore', replica, from: `${group}/${from}`, count }),
      failed: (error) => reportFailure('deliver', error),
      snapshotFailed: (error) => {
        words[statistics + STATISTIC.failedSnapshots]++;
        reportFailure('snapshot', error);
      },
    };
  }

  /** Returns when the cluster closes, or after `stop`. */
  async run(): Promise<void> {
    try {
      await this.runReplicas();
    } finally {
      this.stopCatching();
      await this.journal?.close();
    }
  }

  private async runReplicas(): Promise<void> {
    while (!this.isStopped && !this.isClosing) {
      this.duty.run(this.warmUp === undefined ? SLICE_US : WARM_UP_SLICE_US);
      if (this.warmUp !== undefined) this.playTurns(this.warmUp);
      for (const trace of this.traces) trace.flush();
      this.lookout.look();
      if (this.journal !== undefined) this.lookAtJournal(this.journal);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await this.journal?.flush();
    this.enter(HOST_STATE.ended);
    for (const trace of this.traces) trace.close();
  }

  /** Messages of the groups that it leads wait meanwhile. A candidate and a member that recovers must not be late. */
  private playTurns(warmUp: WarmUp): void {
    const { duty } = this;
    const roles = this.agents.map(({ replica }) => replica.role);
    if (roles.includes('candidate') || roles.includes('recovering')) return;
    const leads = roles.includes('leader');
    warmUp.play(leads, duty.hasSpareCore && (duty.isIdle || !leads));
    if (warmUp.isComplete) this.warmUp = undefined;
  }

  /** @throws TRAM_JOURNAL_FAILED if its disk has failed */
  private lookAtJournal(journal: OwnJournal): void {
    writeStatus(this.words, this.line + HOST.journal, journal.status);
    const { failure } = journal;
    if (failure === undefined) return;
    const { message, hint } = failure;
    this.settings.report({ what: 'trouble', text: `this host ends: ${message}. ${hint}` });
    throw failure;
  }

  private get isClosing(): boolean {
    return Atomics.load(this.words, ARENA.state) === ARENA_STATE.closing;
  }

  stop(): void {
    this.isStopped = true;
  }

  /** Groups of its replicas that have lost their state for good. */
  get lostGroups(): number[] {
    return this.lookout.lostGroups;
  }

  /** The groups of its replicas of which a quorum takes part, as this host knows. */
  get quorateGroups(): number[] {
    const quorate = this.agents.filter(({ replica: { member, rows, suspicion } }) => {
      let parts = 0;
      for (let other = 0; other < member.replicas; other++) {
        if (other === member.index) continue;
        const { seen, normal } = rows.peer(other);
        if (seen && normal && suspicion.isLive(other)) parts++;
      }
      return parts + (member.normal ? 1 : 0) >= member.quorum;
    });
    return [...new Set(quorate.map(({ replica }) => replica.member.group))];
  }

  /**
   * For each group of its replicas: the hosts whose members take part and have the state, as this host knows; and how many
   * of them it takes to recover from empty memory.
   */
  get copies(): { readonly group: number; readonly hosts: number[]; readonly needed: number }[] {
    const { layout, map } = this.context;
    return this.agents.map(({ replica: { member, rows, suspicion } }) => {
      const { group, index, replicas } = member;
      const hosts: number[] = [];
      for (let other = 0; other < replicas; other++) {
        if (other === index) continue;
        const { seen, normal, needs } = rows.peer(other);
        if (!seen || !normal || needs > 0 || !suspicion.isLive(other)) continue;
        hosts.push(map.hostOf(layout.replicaParticipant(group, other)));
      }
      return { group, hosts, needed: (replicas + 1) / 2 };
    });
  }

  /**
   * After `run`, unless the cluster closes: each replica leaves its state for the next start of this host. With a journal,
   * that has it already.
   * @returns the names of the replicas that have left theirs
   */
  leave(): string[] {
    const { context, settings } = this;
    if (this.isClosing || this.journal !== undefined) return [];
    const names: string[] = [];
    for (const { replica, participant } of this.agents) {
      const name = context.nameOf(participant);
      try {
        const snapshot = replica.leave();
        if (snapshot === undefined) continue;
        if (settings.left.keep(participant, snapshot)) names.push(name);
      } catch (error) {
        const why = describeThrownByService(error);
        this.words[context.map.statisticsOf(participant) + STATISTIC.unsavedEnds]++;
        settings.report({
          what: 'trouble',
          unsavedBy: why,
          text:
            `${name} can't leave its state for its next start, and will fetch it from another replica of its group. ` +
            `If no other one keeps it, the state may be lost: ${why}`,
        });
      }
    }
    if (!this.isClosing) return names;
    // The process that closes the cluster may have removed its files before these were written.
    for (const { participant } of this.agents) settings.left.discard(participant);
    return [];
  }
}

/** The service can't restore what it has left. */
function cantResume(name: string, cause: unknown): TramError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new TramError(
    'TRAM_SERVICE_INVALID',
    `${name} can't resume from the snapshot that it left: ${why}`,
    {
      hint: 'Start the host with the service that has left it; or with empty memory, while other replicas have the state.',
      cause,
    },
  );
}

/** An application that also records its deliveries in the trace. */
function traced(application: Application, trace: TraceFile, replica: string): Application {
  return {
    ...application,
    deliver: (delivery, replier) => {
      const { group } = delivery;
      trace.add({ event: 'deliver', id: messageId(delivery), group, replica });
      return application.deliver(delivery, replier);
    },
    snapshot: () => {
      // What a snapshot covers is not delivered again, so the history must have it.
      trace.flush();
      return application.snapshot();
    },
  };
}
