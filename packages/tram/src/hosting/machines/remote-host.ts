/**
 * A host on another machine, which can be asked to end or to restart (`requests.ts`). All hosts of its machine do that with
 * it. What it does then is seen in the mirror. A host that hangs can't obey, and a host that has ended can't be started from here.
 */
import { hostsWith, type Machine } from '../../config/machines.js';
import { TramError } from '../../errors.js';
import { HOST, hostStartsOf, PARTICIPANT } from '../../memory/arena.js';
import { pause } from '../oversight.js';
import {
  costOfEnd,
  deliveredByGroup,
  keptItsMemory,
  requireOtherCopies,
  savedStateCheck,
  untilRejoined,
} from '../rejoin.js';
import { type BeforeEnd, handOver } from '../rolling-restart.js';
import { type ClusterStatus, type ReplicaStatus, statusOf } from '../status.js';
import type { Mirror } from './mirror.js';
import { type HostRequest, requestWord } from './requests.js';

const LOOK_MS = 5;

export class RemoteHost {
  private readonly machine: Machine;
  /** All hosts of its machine. */
  private readonly hosts: readonly number[];

  constructor(
    private readonly mirror: Mirror,
    readonly host: number,
    /** The path of the configuration file, for hints. */
    private readonly config: string,
  ) {
    const { machines, threads } = mirror.context.config;
    this.machine = machines![host];
    this.hosts = hostsWith(threads, host);
  }

  /** The name of its machine. */
  get title(): string {
    return this.machine.machine;
  }

  get status(): ClusterStatus {
    return statusOf(this.mirror.context);
  }

  /** Ends as by SIGKILL. */
  async kill(timeoutMs: number): Promise<void> {
    await this.endBy(() => this.ask('kill'), timeoutMs);
  }

  /** Ends as by SIGTERM. */
  async stop(timeoutMs: number): Promise<void> {
    await this.endBy(() => this.ask('stop'), timeoutMs);
  }

  /** Ends in order, and removes its memory. */
  async forget(timeoutMs: number): Promise<void> {
    await this.endBy(() => this.ask('forget'), timeoutMs);
  }

  /** Ends by what `end` does. Returns when that is seen in the mirror. */
  async endBy(end: () => Promise<unknown>, timeoutMs: number): Promise<void> {
    const before = await this.latestIncarnations();
    await end();
    await this.untilGone(before, Date.now() + timeoutMs);
  }

  /**
   * Hands its leaderships over, ends in order, and is started again by its service manager, or by itself if it was started
   * with `--respawn`. Returns its replicas when they are members of their groups again.
   * @throws TRAM_LAST_COPY if it is to begin with empty memory, and groups could not give it their state; also if the host
   *   has found that itself, and was restarted with its memory; TRAM_SNAPSHOT_FAILED
   */
  async restart(
    fresh: boolean,
    timeoutMs: number,
    beforeEnd?: BeforeEnd,
  ): Promise<ReplicaStatus[]> {
    const { hosts, title } = this;
    const { groups } = this.status;
    if (fresh) requireOtherCopies(groups, hosts, title);
    this.requireReachable();
    await handOver(this.mirror.context, hosts);
    await beforeEnd?.();
    const deadlineMs = Date.now() + timeoutMs;
    const before = await this.latestIncarnations();
    const { starts } = this;
    const requireSaved = savedStateCheck(this.mirror.context, hosts, title);
    await this.ask(fresh ? 'restart-fresh' : 'restart');
    await this.untilGone(before, deadlineMs);
    await this.untilStarted(before, deadlineMs);
    const started = { hosts, title, groups: () => this.status.groups, ended: () => undefined };
    const replicas = await untilRejoined(started, deliveredByGroup(groups), deadlineMs);
    if (!fresh) requireSaved();
    else if (this.starts.some((now, i) => now > starts[i])) {
      throw keptItsMemory(title, 'when it ended, too few other members were connected to it');
    }
    return replicas;
  }

  /** What its sudden end costs, in words. */
  get costOfEnd(): string | undefined {
    return costOfEnd(this.status.groups, this.hosts);
  }

  /** The names of the replicas of its machine, and of those among them that lead. */
  get roles(): { readonly replicas: string[]; readonly led: string[] } {
    const { groups } = this.status;
    const isLeader = ({ group, member }: ReplicaStatus): boolean => groups[group].leader === member;
    const names = (replicas: readonly ReplicaStatus[]): string[] =>
      replicas.map(({ name }) => name);
    return { replicas: names(this.replicas), led: names(this.replicas.filter(isLeader)) };
  }

  private get replicas(): readonly ReplicaStatus[] {
    const replicas = this.status.groups.flatMap((group) => group.replicas);
    return replicas.filter(({ host }) => this.hosts.includes(host));
  }

  /** Of each host of its machine, that of its first replica: it changes with every start. */
  private get incarnations(): number[] {
    const { map, arena } = this.mirror.context;
    return this.hosts.map((host) => {
      const [first] = map.participantsOf(host);
      return arena.words[map.participant(first) + PARTICIPANT.incarnation];
    });
  }

  /** How often each host of its machine has started with the memory that it has. */
  private get starts(): number[] {
    const { map, arena } = this.mirror.context;
    return this.hosts.map((host) => hostStartsOf(arena.words[map.host(host) + HOST.state]));
  }

  private async latestIncarnations(): Promise<number[]> {
    await this.mirror.update(this.hosts);
    return this.incarnations;
  }

  private async ask(request: HostRequest): Promise<void> {
    this.requireReachable();
    const at = this.mirror.context.map.host(this.host) + HOST.request;
    const hasLanded = await this.mirror.change(this.host, at, (word) => requestWord(word, request));
    if (!hasLanded) throw this.unreachable('it did not confirm the request, and may still obey');
  }

  private requireReachable(): void {
    const complaint = this.mirror.complaintOf(this.host);
    if (complaint !== undefined) throw this.unreachable(complaint);
  }

  private async untilGone(before: readonly number[], deadlineMs: number): Promise<void> {
    const isOneThere = (): boolean =>
      this.incarnations.some((now, i) => this.isReachable(i) && now === before[i]);
    while (isOneThere()) {
      if (Date.now() > deadlineMs) {
        throw new TramError('TRAM_TIMEOUT', `host ${this.title} was asked to end, and still runs`, {
          hint: `Look at its log ${this.place}.`,
        });
      }
      await pause(LOOK_MS);
    }
  }

  private async untilStarted(before: readonly number[], deadlineMs: number): Promise<void> {
    const areAllUp = (): boolean =>
      this.incarnations.every((now, i) => this.isReachable(i) && now !== before[i]);
    while (!areAllUp()) {
      if (Date.now() > deadlineMs) {
        const { title, place } = this;
        throw new TramError('TRAM_TIMEOUT', `host ${title} has ended, but is not up again`, {
          hint:
            'A host that is asked to restart needs a service manager that starts it again, or the option --respawn. ' +
            `Otherwise run \`${this.command(`host ${title}`)}\` ${place}.`,
        });
      }
      await pause(LOOK_MS);
    }
  }

  /** @param index  of a host of its machine */
  private isReachable(index: number): boolean {
    return this.mirror.complaintOf(this.hosts[index]) === undefined;
  }

  private get place(): string {
    return `on its machine (${this.machine.address})`;
  }

  private unreachable(why: string): TramError {
    const { address, port } = this.machine;
    return new TramError(
      'TRAM_UNREACHABLE',
      `host ${this.title} (${address}:${port}) can't be asked from this machine: ${why}`,
      {
        hint:
          `If it has ended, start it with \`${this.command(`host ${this.title}`)}\` ${this.place}. ` +
          'If it hangs, kill its process there.',
      },
    );
  }

  private command(words: string): string {
    return `tram ${words} --config ${this.config}`;
  }
}
