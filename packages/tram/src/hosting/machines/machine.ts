/**
 * One machine's share of a cluster: `tram host NAME`. It has an arena of its own, in a file, and a network to the
 * other machines.
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
 * A host may also find memory that is not its latest. Each memory has a birth, and the other hosts refuse an older one
 * than they have seen run (`memory/machines/known-hosts.ts`).
 */
import type { Endpoint } from '../../config/addresses.js';
import type { MachinesConfig } from '../../config/config.js';
import { nearestName } from '../../config/nearest-name.js';
import { TramError } from '../../errors.js';
import {
  ARENA,
  ARENA_STATE,
  HOST,
  HOST_STATE,
  PARTICIPANT,
  withHostState,
} from '../../memory/arena.js';
import { OPEN, RETIRED } from '../../memory/contract.js';
import { CALLER } from '../../memory/machines/handshake.js';
import { Network } from '../../memory/machines/network.js';
import type { ArenaFile } from '../../memory/processes/arena-file.js';
import { native } from '../../memory/processes/native.js';
import { Layout } from '../../protocol/layout.js';
import { keyAfter } from '../../protocol/leadership/key.js';
import type { Identity } from '../../protocol/member.js';
import { nowUs } from '../clock.js';
import { ClusterContext } from '../cluster-context.js';
import { Host, type HostReport, type MachinePast } from '../host.js';
import { LeftFiles } from '../left-snapshots.js';
import { joinTrace } from '../oversight.js';
import { pacingOf } from '../pacing.js';
import { rateLimited } from '../rate-limit.js';
import { traceName } from '../trace.js';
import { bufferWordsOf } from './buffer-words.js';
import type { Credentials } from './cluster-file.js';
import { HomeSlots } from './home-slots.js';
import { closeOwn, hasBegun, openOwn, SINCE_MS } from './own-arena.js';
import { type HostRequest, Requests } from './requests.js';

export type Log = (level: 'info' | 'warn' | 'error', text: string) => void;

export interface MachineSettings {
  readonly config: MachinesConfig;
  readonly credentials: Credentials;
  /** One of the hosts of the configuration. */
  readonly name: string;
  readonly log: Log;
  readonly report: (report: HostReport) => void;
}

/** How often it logs which hosts it waits for. */
const WAITING_US = 5_000_000;
const WAIT_SLICE_US = 5000;
/** How long a host that ends waits for the others to hear of it. */
const FAREWELL_US = 500_000;
/** A peer is given up after this many suspicion time-outs without an answer. */
const PATIENCE = 2;
const LOOKS_PER_YIELD = 2;
/** A few round trips to another host. */
const SPIN_US = 150;
/** Less than a start takes, so the incarnations of a host that restarts in a loop do not run ahead of the time. */
const INCARNATION_MS = 250;
const KEYS_PER_MS = 0.064;

export class Machine {
  private running: Host | undefined;
  private isStopped = false;
  /** False if a replica has failed in the middle of a step: its state is not to be kept. */
  private hasRun = false;
  private readonly requests: Requests;
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
  }

  /** Where it listens. */
  get address(): string {
    const { address, port } = this.settings.config.machines[this.host];
    return `${address}:${port}`;
  }

  /** The address of its HTTP endpoints, if it has any. */
  get http(): Endpoint | undefined {
    return this.settings.config.machines[this.host].http;
  }

  /** Groups of its replicas that have lost their state for good. */
  get lostGroups(): number[] {
    return this.running?.lostGroups ?? [];
  }

  static open(settings: MachineSettings): Machine {
    const { config, credentials, name, log } = settings;
    const { machines, provider } = config;
    const host = machines.findIndex((machine) => machine.name === name);
    if (host < 0) throw unknownHost(name, config);
    const { address, port } = machines[host];
    let file!: ArenaFile;
    let slots!: HomeSlots;
    let network!: Network;
    const complain = rateLimited((text) => log('error', text));
    const context = ClusterContext.onMachines(config, credentials.digest, (map) => {
      file = openOwn(config, credentials.digest, name, host, map);
      slots = new HomeSlots(file.words, map, host);
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
    const machine = new Machine(context, host, file, slots, settings);
    machine.sign(HOST_STATE.starting);
    return machine;
  }

  /** Finds out its past, then starts its replicas. */
  async start(): Promise<void> {
    const { config, log, report } = this.settings;
    const past = await this.past();
    if (this.isStopped || past === undefined) return;
    if (config.trace !== undefined) this.joinTrace(config.trace, past);
    await this.begin(past);
    if (this.isStopped) return;
    log('info', PASTS[past]);
    this.slots.open(past);
    this.running = await Host.start(this.context, {
      host: this.host,
      resumes: past === 'kept',
      onMachines: { past, ...pastAt(Date.now()) },
      pacing: { ...pacingOf(config), spinUs: SPIN_US, relax: givingWay() },
      report,
      arena: this.file.path,
      left: new LeftFiles(this.file, (text) => log('warn', text)),
      watch: this.requests,
    });
    if (this.isStopped) this.running.stop();
  }

  /** Returns after `stop`. */
  async run(): Promise<void> {
    await this.running?.run();
    this.hasRun = this.running !== undefined;
  }

  stop(): void {
    this.isStopped = true;
    this.running?.stop();
  }

  private obey(request: HostRequest): void {
    this.settings.log('info', `was asked by another machine: ${request}`);
    if (request === 'kill') process.kill(process.pid, 'SIGKILL');
    this.request = request;
    this.stop();
  }

  /** Releases everything, after `run` or instead of it. Its replicas leave their state for the next start. */
  close(): void {
    this.sign(HOST_STATE.ended);
    let forgets = this.request === 'forget';
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
    const untilUs = nowUs() + FAREWELL_US;
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

  /** The host's past; undefined if it was stopped before it knew. */
  private async past(): Promise<Identity['past'] | undefined> {
    if (hasBegun(this.file)) return 'kept';
    const network = this.context.network!;
    const past = await this.until(() => network.past);
    const { revision } = this.settings.config;
    // With a later revision, there may be earlier hosts that none of these remembers.
    if (past === undefined || past === 'lost' || (past === 'none' && revision === 1)) return past;
    network.refuseOlder();
    if (past === 'replaced') {
      this.settings.log('info', `takes the place of an earlier host, with revision ${revision}`);
    }
    const areRefused = await this.until(() => network.areOlderRefused || undefined);
    if (areRefused === undefined) return undefined;
    return past === 'none' ? 'none' : 'lost';
  }

  /** Records that this host has run its replicas; on a first start, at all other hosts too. */
  private async begin(past: Identity['past']): Promise<void> {
    const { map, network } = this.context;
    const { words } = this.file;
    // If it ends before its replicas start, their next incarnations must know that this was not the first.
    if (past === 'lost') {
      for (const replica of map.participantsOf(this.host)) {
        Atomics.store(words, map.participant(replica) + PARTICIPANT.permission, RETIRED);
      }
    }
    // Recorded here first: if it ends before the others know, its memory contains no promise.
    Atomics.store(words, ARENA.state, ARENA_STATE.running);
    network!.announce();
    if (past !== 'none') return;
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
  private async until<T>(answer: () => T | undefined): Promise<T | undefined> {
    const network = this.context.network!;
    let saysAtUs = nowUs() + WAITING_US / 5;
    while (!this.isStopped) {
      const now = nowUs();
      network.poll(now);
      network.flush(now, 0);
      this.requests.doWork();
      const found = answer();
      if (found !== undefined) return found;
      if (now > saysAtUs) {
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

const PASTS: Record<Identity['past'], string> = {
  none: 'starts for the first time',
  kept: 'resumes with the memory that it left behind',
  lost: 'has lost its memory, and recovers from its groups',
};

function unknownHost(name: string, { machines }: MachinesConfig): TramError {
  const names = machines.map((machine) => machine.name);
  const nearest = nearestName(name, names);
  return new TramError(
    'TRAM_UNKNOWN_REPLICA',
    `there is no host ${name}: there are ${names.join(', ')}`,
    { hint: nearest === undefined ? 'Choose one of these names.' : `Did you mean ${nearest}?` },
  );
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

/**
 * Incarnations and first keys are times, so they grow even if a host has lost its memory.
 *
 * A replica makes a few keys with each change of leaders, and far fewer than `KEYS_PER_MS` in the long run. So the next
 * incarnation begins after the keys of this one. Keys begin again after 388 days, and keys
 * of a region that was lost count as old for half of that.
 */
export function pastAt(ms: number): Pick<MachinePast, 'leastIncarnation' | 'firstKey'> {
  const sinceMs = Math.max(0, ms - SINCE_MS);
  return {
    leastIncarnation: Math.max(1, Math.floor(sinceMs / INCARNATION_MS)),
    firstKey: keyAfter(OPEN, 1 + Math.floor(sinceMs * KEYS_PER_MS)),
  };
}
