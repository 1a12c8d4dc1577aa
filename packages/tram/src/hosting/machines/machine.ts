/**
 * A host of a cluster across machines. It has an arena of its own, in a file, and a network to the other hosts. A machine
 * runs one host, or one on each of several threads (`machine-hosts.ts`).
 *
 * A starting host must know its past, because a member that has forgotten its promises must not vote:
 *
 * - Its file exists and it has run its replicas: it resumes (`kept`).
 * - There is no file. It asks the other hosts, which remember whether they have seen it run. If one has, this host
 *   has lost its memory (`lost`) and recovers from its groups. If all have been asked and none has, it starts for the
 *   first time (`none`), and tells all others so before its replicas run.
 *
 * So the first start needs all hosts, in any order; a later start needs no particular host.
 *
 * A host without memory may also be a new machine, at another address, that takes the place of one that may still run
 * or come back. Two machines must never act as one host: members would count the promises of both. So the change of an
 * address raises the `revision` of the configuration, and a host that has not run with its revision before needs all
 * hosts once more: they must have the same revision, and promise to refuse older ones from then on, before its replicas run.
 *
 * With a journal, a host without memory does not start before it knows the *era* that the cluster runs in (`recovery.ts`).
 * Either a quorum of each of its groups takes part: then it has lost its memory (`lost`), and its replicas begin with what
 * its journal has of this era. Or it takes part in the recovery that opens a new era, and its replicas start in it for the
 * first time (`none`). A host whose memory is of no use any more gives it up and begins anew (`request` is `recover`): the
 * cluster was recovered without it, or is to be recovered, or its groups have lost their state.
 *
 * A host may also find memory that is not its latest. Each memory has a birth, and the other hosts refuse an older one
 * than they have seen run (`memory/machines/known-hosts.ts`).
 */
import type { MachinesConfig } from '../../config/config.js';
import {
  ARENA,
  ARENA_STATE,
  HOST,
  HOST_STATE,
  PARTICIPANT,
  STAGE,
  withHostState,
} from '../../memory/arena.js';
import { RETIRED } from '../../memory/contract.js';
import { CALLER } from '../../memory/machines/handshake.js';
import { Network } from '../../memory/machines/network.js';
import type { ArenaFile } from '../../memory/processes/arena-file.js';
import { native } from '../../memory/processes/native.js';
import { Layout } from '../../protocol/layout.js';
import type { Identity } from '../../protocol/member.js';
import { nowUs } from '../clock.js';
import { ClusterContext } from '../cluster-context.js';
import { Host, type HostReport } from '../host.js';
import { LeftFiles } from '../left-snapshots.js';
import { joinTrace } from '../oversight.js';
import type { JournalStart } from '../own-journal.js';
import { pacingOf } from '../pacing.js';
import { rateLimited } from '../rate-limit.js';
import { traceName } from '../trace.js';
import { bufferWordsOf } from './buffer-words.js';
import type { Credentials } from './cluster-file.js';
import { HomeSlots } from './home-slots.js';
import { MachineJournal, type OpenedHost } from './machine-journal.js';
import { closeOwn, hasBegun, mappingOfOthers, openOwn } from './own-arena.js';
import { describePast, pastAt } from './past.js';
import type { Entrance, Recovery } from './recovery.js';
import { type HostRequest, Requests } from './requests.js';
import { eraIn, noteEra, publishStanding } from './standing.js';

export type Log = (level: 'info' | 'warn' | 'error', text: string) => void;

export interface MachineSettings {
  readonly config: MachinesConfig;
  readonly credentials: Credentials;
  /** The number of the host. */
  readonly host: number;
  readonly log: Log;
  readonly report: (report: HostReport) => void;
}

/** How often it logs which hosts it waits for. */
const WAITING_US = 5_000_000;
const WAIT_SLICE_US = 5000;
/** How long a host that waits, and may be reading a journal, keeps a connection without an answer. */
const RECOVERY_PATIENCE_US = 30_000_000;
/**
 * How long a host that ends waits for the others to hear of it. If it is to begin with empty memory, it gives up its memory
 * only if enough of them have heard, so it also waits for others that are busy.
 */
const FAREWELL_US = { usual: 500_000, fresh: 5_000_000 } as const;
/** A peer is given up after this many suspicion time-outs without an answer. */
const PATIENCE = 2;
const LOOKS_PER_YIELD = 2;
/** A few round trips to another host. */
const SPIN_US = 150;

export class Machine {
  private running: Host | undefined;
  private isStopped = false;
  /** False if a replica has failed in the middle of a step: its state is not to be kept. */
  private hasRun = false;
  private readonly requests: Requests;
  private readonly journal: MachineJournal | undefined;
  /** While it waits for others, with a journal and without memory. */
  private recovery: Recovery | undefined;
  /** What another machine has asked this host to do, if that is why it ends. */
  request: HostRequest | undefined;

  private constructor(
    readonly context: ClusterContext,
    readonly host: number,
    private readonly file: ArenaFile,
    private readonly slots: HomeSlots,
    private readonly settings: MachineSettings,
  ) {
    const { arena, map } = context;
    this.requests = new Requests(arena.words, map, host, (request) => this.obey(request));
    const { config, log } = settings;
    if (config.durability === 'none') return;
    this.journal = new MachineJournal(context, config, host, log, (start) => this.openHost(start));
  }

  /** Where it listens. */
  get address(): string {
    const { address, port } = this.settings.config.machines[this.host];
    return `${address}:${port}`;
  }

  /** Groups of its replicas that have lost their state for good. */
  get lostGroups(): number[] {
    return this.running?.lostGroups ?? [];
  }

  /** What it waits for before its replicas run, in words; undefined if it does not. */
  get waitsFor(): string | undefined {
    return this.recovery?.waitsFor;
  }

  static open(settings: MachineSettings): Machine {
    const { config, credentials, host, log } = settings;
    const { machines, provider } = config;
    const { address, port } = machines[host];
    let file!: ArenaFile;
    let slots!: HomeSlots;
    let network!: Network;
    const complain = rateLimited((text) => log('error', text));
    const context = ClusterContext.onMachines(config, credentials.digest, (map) => {
      file = openOwn(config, credentials.digest, host, map);
      slots = new HomeSlots(file.words, map, host, config.durability !== 'none');
      const arena = {
        words: file.words,
        address: file.address,
        parking: {
          wait: (_at: number, _expected: number, timeoutUs: number) => network.wait(timeoutUs),
          wake: () => undefined,
        },
        close: () => file.close(),
      };
      try {
        network = new Network({
          map,
          arena,
          self: { caller: CALLER.host, number: host },
          address,
          port,
          hosts: machines.map(({ address: at, port: on }) => ({ host: at, port: on })),
          names: machines.map((machine) => machine.name),
          ...credentials,
          provider,
          patienceUs: config.timing.suspectAfterUs * PATIENCE,
          ...mappingOfOthers(config, host),
          bufferWords: (other) => bufferWordsOf(new Layout(config.sizes), map, host, other),
          slots,
          log,
          onRefusal: rateLimited((text) => log('warn', text)),
          onNewerMemory: (other) => complain(newerMemory(other, file.path)),
          nowUs,
        });
      } catch (error) {
        closeOwn(file);
        throw error;
      }
      return { arena, network };
    });
    try {
      const machine = new Machine(context, host, file, slots, settings);
      machine.sign(HOST_STATE.starting);
      return machine;
    } catch (error) {
      network.close();
      closeOwn(file);
      throw error;
    }
  }

  /** Finds out its past, then starts its replicas. */
  async start(): Promise<void> {
    const { config, log, report } = this.settings;
    const isTraced = config.trace !== undefined;
    // A recovery records what it delivers again. It continues the files of earlier eras.
    if (isTraced && this.journal !== undefined) joinTrace(config, config.trace, []);
    const entrance = this.journal === undefined ? undefined : await this.entrance(this.journal);
    if (this.isStopped) return;
    const past = await this.past(entrance);
    if (this.isStopped || past === undefined) return;
    if (isTraced && this.journal === undefined) this.joinTrace(config.trace, past);
    await this.begin(past, entrance);
    if (this.isStopped) return;
    log('info', describePast(past, entrance));
    this.slots.open(past, entrance?.firstSession);
    const { journal } = this;
    const start = entrance && journal && ((): JournalStart => journal.startWithin(entrance));
    const opened = await journal?.takeOpened(entrance?.what === 'start' ? entrance.era : undefined);
    if (opened !== undefined) {
      this.sign(HOST_STATE.running);
      report({ what: 'ready' });
    }
    this.running = opened ?? (await this.startHost(past, start));
    if (this.isStopped) this.running.stop();
  }

  /** Starts the replicas, which do not run before the era is open. */
  private async openHost(journal: () => JournalStart): Promise<OpenedHost> {
    let lastSession = 0;
    const host = await this.startHost('none', journal, (report) => {
      if (report.what === 'ready') lastSession = report.lastSession ?? 0;
      else this.settings.report(report);
    });
    this.sign(HOST_STATE.starting);
    return { host, lastSession };
  }

  private startHost(
    past: Identity['past'],
    journal: (() => JournalStart) | undefined,
    report = this.settings.report,
  ): Promise<Host> {
    const { config, log } = this.settings;
    return Host.start(this.context, {
      host: this.host,
      resumes: past === 'kept',
      onMachines: { past, ...pastAt(Date.now()) },
      pacing: { ...pacingOf(config, SPIN_US), relax: givingWay() },
      report,
      arena: this.file.path,
      left: new LeftFiles(this.file, (text) => log('warn', text)),
      watch: {
        look: (now) => this.watch(now),
        hasNews: () => this.context.network!.takeLostHost(),
      },
      journal,
    });
  }

  private watch(nowUs: number): void {
    this.requests.doWork();
    const useless = this.running && this.journal?.follow(this.running, nowUs);
    if (useless !== undefined) this.beginAnew(useless);
  }

  /** Returns after `stop`. */
  async run(): Promise<void> {
    await this.running?.run();
    this.hasRun = this.running !== undefined;
    // It may have been stopped before an era was open.
    await this.journal?.takeOpened(undefined);
  }

  stop(): void {
    this.isStopped = true;
    this.running?.stop();
  }

  private obey(request: HostRequest): void {
    if (request === 'recover' && this.running === undefined) return;
    this.settings.log('info', `was asked by another machine: ${request}`);
    if (request === 'kill') process.kill(process.pid, 'SIGKILL');
    this.endFor(request);
  }

  /** Ends, and `close` does what the request says. */
  endFor(request: HostRequest): void {
    this.request = request;
    this.stop();
  }

  /** Releases everything, after `run` or instead of it. Its replicas leave their state for the next start. */
  close(): void {
    this.sign(HOST_STATE.ended);
    let forgets = this.request === 'forget' || this.request === 'recover';
    // Before the others notice that it has ended.
    if (forgets) this.file.removeFile();
    // First: then the other hosts need not wait for the snapshots before they take over.
    const staying = this.sayFarewell();
    if (this.request === 'restart-fresh' && this.canRecoverFrom(staying)) {
      forgets = true;
      this.file.removeFile();
    }
    this.context.network!.close();
    const left = this.hasRun && !forgets ? this.running!.leave() : [];
    if (left.length > 0) {
      this.settings.log('info', `has left the state of ${left.join(', ')} for its next start`);
    }
    closeOwn(this.file);
  }

  /**
   * So that the others do not take the end of the connections for a failure.
   * @returns the hosts that know that this one ends, and do not end themselves. So of two hosts that end at the same time,
   *   at least one knows it of the other.
   */
  private sayFarewell(): readonly number[] {
    const network = this.context.network!;
    let staying = Array.from({ length: this.context.map.hosts }, (_, host) => host);
    const look = (): void => {
      staying = staying.filter(
        (host) => network.isConnected(host) && !network.hasSaidFarewell(host),
      );
    };
    network.sayFarewell();
    const { usual, fresh } = FAREWELL_US;
    const untilUs = nowUs() + (this.request === 'restart-fresh' ? fresh : usual);
    while (!network.isSettled && nowUs() < untilUs) {
      network.flush(nowUs(), 0);
      network.wait(WAIT_SLICE_US);
      network.poll(nowUs());
      look();
    }
    look();
    return staying.filter((host) => network.links[host]!.isSettled);
  }

  /** Can its replicas get promises and state back from these hosts, if it gives its memory up? */
  private canRecoverFrom(staying: readonly number[]): boolean {
    // Without replicas that run there is nothing to lose.
    const copies = this.running?.copies ?? [];
    const lacking = copies.filter(
      ({ hosts, needed }) => hosts.filter((host) => staying.includes(host)).length < needed,
    );
    if (lacking.length === 0) return true;
    const names = lacking.map(({ group }) => `g${group}`).join(', ');
    const text = `keeps its memory, because too few other members of ${names} take part and have the state`;
    this.settings.log('warn', text);
    return false;
  }

  private sign(state: number): void {
    const { words } = this.file;
    const line = this.context.map.host(this.host);
    words[line + HOST.pid] = process.pid;
    words[line + HOST.state] = withHostState(words[line + HOST.state], state);
  }

  // --- with a journal --------------------------------------------------------------------------

  /** In which era its replicas run, and how; undefined if it was stopped before it knew. */
  private async entrance(journal: MachineJournal): Promise<Entrance | undefined> {
    const { network, map } = this.context;
    const line = this.file.words.subarray(map.host(this.host));
    if (hasBegun(this.file)) {
      // What its last start has seen says nothing any more.
      publishStanding(line, 0, STAGE.running, []);
      return { what: 'join', ...eraIn(line) };
    }
    const recovery = journal.findEra();
    this.recovery = recovery;
    // Reading and replaying a journal takes long.
    network!.setPatience(RECOVERY_PATIENCE_US);
    const entrance = await this.until((now) => recovery.doWork(now));
    network!.setPatience();
    recovery.end();
    this.recovery = undefined;
    return entrance;
  }

  private beginAnew(why: string): void {
    if (this.request !== undefined) return;
    this.settings.log('warn', `${why}: begins anew, without its memory`);
    this.request = 'recover';
    this.stop();
  }

  // --- its past --------------------------------------------------------------------------------

  /** The host's past; undefined if it was stopped before it knew. */
  private async past(entrance: Entrance | undefined): Promise<Identity['past'] | undefined> {
    if (hasBegun(this.file)) return 'kept';
    if (entrance?.what === 'start') return 'none';
    const network = this.context.network!;
    const { revision } = this.settings.config;
    if (entrance !== undefined && revision === 1) return 'lost';
    const past = await this.until(() => network.past);
    // With a later revision, there may be earlier hosts that none of these remembers.
    if (past === undefined || past === 'lost' || (past === 'none' && revision === 1)) return past;
    network.refuseOlder();
    if (past === 'replaced') {
      this.settings.log('info', `takes the place of an earlier host, with revision ${revision}`);
    }
    const areRefused = await this.until(() => network.areOlderRefused || undefined);
    if (areRefused === undefined) return undefined;
    return past === 'none' && entrance === undefined ? 'none' : 'lost';
  }

  /** Records that this host has run its replicas; on a first start, at all other hosts too. */
  private async begin(past: Identity['past'], entrance: Entrance | undefined): Promise<void> {
    const { map, network } = this.context;
    const { words } = this.file;
    // If it ends before its replicas start, their next incarnations must know that this was not the first.
    if (past === 'lost') {
      for (const replica of map.participantsOf(this.host)) {
        Atomics.store(words, map.participant(replica) + PARTICIPANT.permission, RETIRED);
      }
    }
    if (entrance !== undefined) {
      noteEra(words.subarray(map.host(this.host)), entrance);
    }
    // Recorded here first: if it ends before the others know, its memory contains no promise.
    Atomics.store(words, ARENA.state, ARENA_STATE.running);
    network!.announce();
    // With a journal, a host without memory never starts for the first time, except in a recovery.
    if (past !== 'none' || entrance !== undefined) return;
    await this.until(() => network!.isAnnounced || undefined);
  }

  private joinTrace(directory: string, past: Identity['past']): void {
    const { config, map } = this.context;
    const { replicas } = config.sizes;
    const names = map
      .participantsOf(this.host)
      .map((participant) => traceName(Math.floor(participant / replicas), participant % replicas));
    joinTrace(config, directory, past === 'none' ? names : []);
  }

  /** Runs the network until there is an answer. */
  private async until<T>(answer: (nowUs: number) => T | undefined): Promise<T | undefined> {
    const network = this.context.network!;
    let saysAtUs = nowUs() + WAITING_US / 5;
    while (!this.isStopped) {
      const now = nowUs();
      network.poll(now);
      network.flush(now, 0);
      this.requests.doWork();
      const found = answer(now);
      if (found !== undefined) return found;
      if (now > saysAtUs && this.recovery === undefined) {
        saysAtUs = now + WAITING_US;
        this.sayWhoIsMissing();
      }
      network.wait(WAIT_SLICE_US);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return undefined;
  }

  private sayWhoIsMissing(): void {
    const { config, log } = this.settings;
    const network = this.context.network!;
    const namesOf = (hosts: readonly number[]): string =>
      hosts
        .map((host) => {
          const { name, address, port } = config.machines[host];
          return `${name} (${address}:${port})`;
        })
        .join(' and ');
    const { revision } = config;
    const missing = network.missingHosts();
    const first = revision === 1 ? 'the first start' : `the first start with revision ${revision}`;
    if (missing.length > 0) log('info', `waits for ${namesOf(missing)}: ${first} needs all hosts`);
    const different = network.differentHosts();
    if (different.length === 0) return;
    log('info', `waits until ${namesOf(different)} and this host have the same revision`);
  }
}

function newerMemory(other: string, path: string): string {
  return (
    `${other} has seen newer memory of this host, and refuses this one. End this host, remove ${path}, and start it ` +
    'again: it then recovers from its groups. If the file is new, the clock of this machine is behind: correct it first.'
  );
}

/**
 * What an idle host does between two looks at its flags. Several hosts may share a machine with fewer cores, so it
 * yields the core. But data may arrive in pieces, and each poll of the network takes one piece, so it polls several
 * times first. (Sleeping instead of yielding doubled the latency on a crowded machine.)
 */
function givingWay(): () => void {
  let looks = 0;
  return () => {
    if (++looks % LOOKS_PER_YIELD === 0) native().yieldProcessor();
  };
}
