/**
 * What a host with a journal and without memory does before its replicas run. It looks at what the other hosts publish
 * (`standing.ts`), answers what they ask of its journal, and
 *
 * - joins the cluster, if a quorum of each of its groups takes part;
 * - or takes part in a recovery of the whole cluster from the journals (`journal/recovery.ts`), which one of the waiting
 *   hosts coordinates: the lowest-numbered one. If that ends, the next one begins anew, with a higher era.
 *
 * Hosts that still run their replicas, without a quorum, are asked to begin without memory before (`requests.ts`). So all
 * hosts that a coordinator asks wait, as it does.
 */
import { randomBytes } from 'node:crypto';
import { TramError } from '../../errors.js';
import { type Recovered, recoverCluster } from '../../journal/recovery.js';
import type { Ask, Opening, Promised } from '../../journal/recovery-asks.js';
import type { ClusterShape } from '../../journal/shape.js';
import { type ArenaMap, HOST, STAGE } from '../../memory/arena.js';
import type { Link } from '../../memory/machines/link.js';
import { sessionAt } from './home-slots.js';
import { Mailboxes } from './mailboxes.js';
import { decodeMessage, encodeMessage } from './message.js';
import { requestWord } from './requests.js';
import {
  type Era,
  nextStep,
  publishStanding,
  type Standing,
  type Step,
  standingIn,
} from './standing.js';

export interface RecoveryEdges {
  readonly words: Int32Array;
  readonly map: ArenaMap;
  readonly host: number;
  /** By host; undefined for ourselves. */
  readonly links: readonly (Link | undefined)[];
  readonly shape: ClusterShape;
  /** The highest era that our journal has promised. */
  readonly promised: number;
  /** The groups of which our journal has something. */
  readonly journaled: readonly number[];
  /** Answers from our journal; undefined if it can't or must not. */
  readonly answer: (ask: Ask) => unknown;
  /** Has an operator accepted that messages get lost, if journals are missing? */
  readonly acceptsLoss: () => boolean;
  readonly log: (level: 'info' | 'warn' | 'error', text: string) => void;
  readonly nowUs: () => number;
}

/** In which era the replicas run, and how: see `Step`. */
export interface Entrance extends Era {
  readonly what: 'start' | 'join';
}

/** What hosts send each other. */
type Message = { readonly ask: Ask } | { readonly begin: Entrance };

/** How often we look at what others publish, and how often we say what we wait for. */
const LOOK_US = 200_000;
const SAY_US = 5_000_000;
/**
 * How long a recovery waits for hosts that are missing: they may have memory, and then there is no need to recover; or longer
 * journals.
 */
const PATIENCE_US = { inevitable: 2_000_000, avoidable: 10_000_000 } as const;
/** How much longer for each host that should rather coordinate. */
const RANK_US = 10_000_000;
/** How long a coordinator waits after it has failed, at least and at most. */
const BACK_OFF_US = { least: 1_000_000, most: 3_000_000 } as const;
/** How long it waits if it needs an operator. */
const REFUSED_US = 10_000_000;
/** How long hosts that run get to begin without memory, and hosts that wait to hear that the era is open. */
const STOP_US = 15_000_000;
const BEGIN_US = 2_000_000;
/** What we read of the lines of others. */
const LINE_WORDS = HOST.journal;
/** No process has this id. */
const NOT_READ = -1;
const CLUSTER_ID_BYTES = 16;

export class Recovery {
  private readonly mailboxes: Mailboxes;
  /** By host, as last read. */
  private lines: readonly Int32Array[];
  private lookedUs = Number.NEGATIVE_INFINITY;
  private said = '';
  private saidUs = Number.NEGATIVE_INFINITY;
  /** Since when the next step is to recover; undefined if it is not. */
  private recoverableUs: number | undefined;
  private notBeforeUs = 0;
  private isCoordinating = false;
  /** The era that we have promised last, and the one whose opening snapshots are durable here, since we wait. */
  private promisedEra = 0;
  private openedEra = 0;
  private entrance: Entrance | undefined;
  /** A bug. */
  private failure: unknown;
  private hasEnded = false;

  constructor(private readonly edges: RecoveryEdges) {
    const { words, map, host, links, nowUs } = edges;
    this.mailboxes = new Mailboxes(
      words,
      map,
      host,
      links,
      (_, message) => this.answer(message),
      nowUs,
    );
    this.lines = links.slice(0, map.hosts).map(() => new Int32Array(LINE_WORDS));
    this.publish(STAGE.waiting);
  }

  /** What we wait for, in words. */
  get waitsFor(): string {
    return this.said;
  }

  /** To be called after each poll of the network. @returns how to run the replicas, once that is known */
  doWork(nowUs: number): Entrance | undefined {
    if (this.failure !== undefined) throw this.failure;
    this.mailboxes.doWork(nowUs);
    if (nowUs - this.lookedUs >= LOOK_US) this.look(nowUs);
    return this.entrance;
  }

  /** Nothing is asked or answered any more. */
  end(): void {
    this.hasEnded = true;
    for (const host of this.lines.keys()) this.mailboxes.giveUp(host);
  }

  private look(nowUs: number): void {
    this.lookedUs = nowUs;
    const { links, map } = this.edges;
    for (const [host, line] of this.lines.entries()) {
      const link = links[host];
      if (link?.isOpen === false) line.fill(0);
      else link?.readWords(map.host(host), line, 0, LINE_WORDS);
      if (link !== undefined && line[HOST.stage] === STAGE.running) this.mailboxes.giveUp(host);
    }
    if (!this.isCoordinating && this.entrance === undefined) this.take(this.step(), nowUs);
  }

  private step(): Step {
    const { host: self, shape, acceptsLoss: accepts } = this.edges;
    const { openedEra, standings } = this;
    const promisedEra = Math.max(this.edges.promised, this.promisedEra);
    const isFresh = (host: number): boolean => this.lines[host][HOST.pid] !== NOT_READ;
    const acceptsLoss = accepts();
    return nextStep({ self, shape, standings, isFresh, promisedEra, openedEra, acceptsLoss });
  }

  private get standings(): (Standing | undefined)[] {
    const { words, map, host: self } = this.edges;
    const own = words.subarray(map.host(self), map.host(self) + LINE_WORDS);
    return this.lines.map((line, host) => standingIn(host === self ? own : line));
  }

  private take(step: Step, nowUs: number): void {
    if (step.what === 'start' || step.what === 'join') {
      this.entrance = step;
      return;
    }
    if (step.what === 'wait') {
      this.recoverableUs = undefined;
      this.say(step.why, nowUs);
      return;
    }
    this.recoverableUs ??= nowUs;
    const { rank, missing, isInevitable } = step;
    const patienceUs = isInevitable ? PATIENCE_US.inevitable : PATIENCE_US.avoidable;
    const waitsUs = (missing > 0 ? patienceUs : 0) + rank * RANK_US;
    if (nowUs < Math.max(this.recoverableUs + waitsUs, this.notBeforeUs)) {
      this.say('is about to recover the cluster from the journals of its hosts', nowUs);
      return;
    }
    this.isCoordinating = true;
    this.publish(STAGE.recovering);
    void this.coordinate().catch((error: unknown) => this.onFailure(error));
  }

  private say(what: string, nowUs: number): void {
    if (what === this.said && nowUs - this.saidUs < SAY_US) return;
    this.said = what;
    this.saidUs = nowUs;
    this.edges.log('info', what);
  }

  private publish(stage: number): void {
    const { words, map, host, journaled } = this.edges;
    publishStanding(words, map.host(host), stage, journaled);
  }

  // --- coordinating ----------------------------------------------------------------------------

  private async coordinate(): Promise<void> {
    const { shape, log } = this.edges;
    const newClusterId = randomBytes(CLUSTER_ID_BYTES).toString('hex');
    this.said = 'recovers the cluster from the journals of its hosts';
    log('info', this.said);
    await this.stopOthers();
    const acceptLoss = this.edges.acceptsLoss();
    const onLoss = (losses: readonly string[]): void => {
      for (const loss of losses)
        log('warn', `as an operator has accepted, messages are lost: ${loss}`);
    };
    const recovering = recoverCluster(shape, { newClusterId, acceptLoss, onLoss });
    let step = recovering.next();
    while (step.done !== true) {
      const answers = await Promise.all(step.value.map((ask) => this.ask(ask)));
      step = recovering.next(answers);
    }
    const { era, clusterId } = step.value;
    // Also above those that clients have got after the last message that a journal has.
    const firstSession = Math.max(step.value.firstSession, sessionAt(Date.now()));
    log('info', describeRecovered(step.value));
    const entrance: Entrance = { what: 'start', era, firstSession, clusterId };
    await this.tellAll({ begin: entrance });
    if (this.openedEra === era) this.entrance = entrance;
    else this.resumeWaiting(0);
  }

  private onFailure(error: unknown): void {
    if (!(error instanceof TramError)) {
      this.failure = error;
      return;
    }
    const { least, most } = BACK_OFF_US;
    const isInterrupted = error.code === 'TRAM_UNAVAILABLE';
    this.edges.log(isInterrupted ? 'warn' : 'error', error.message);
    this.resumeWaiting(isInterrupted ? least + Math.random() * (most - least) : REFUSED_US);
  }

  private resumeWaiting(backOffUs: number): void {
    this.notBeforeUs = this.edges.nowUs() + backOffUs;
    this.recoverableUs = undefined;
    this.isCoordinating = false;
    this.publish(STAGE.waiting);
  }

  /** Hosts that run their replicas have no quorum. They write all that they have to their journals, and wait as we do. */
  private async stopOthers(): Promise<void> {
    const { links, map, nowUs } = this.edges;
    const untilUs = nowUs() + STOP_US;
    const asked = new Set<number>();
    const running = (): number[] =>
      this.standings.flatMap((standing, host) => (standing?.stage === STAGE.running ? [host] : []));
    for (let hosts = running(); nowUs() < untilUs; hosts = running()) {
      for (const host of hosts) {
        if (asked.has(host)) continue;
        asked.add(host);
        const word = requestWord(this.lines[host][HOST.request], 'recover');
        links[host]!.writeWords(map.host(host) + HOST.request, Int32Array.of(word));
        links[host]!.wake(map.participantsOf(host)[0], true);
      }
      const areBack = [...asked].every((host) => this.standings[host]?.stage === STAGE.waiting);
      if (areBack) return;
      await pause();
    }
  }

  /** Undefined: the host can't be had. */
  async ask(ask: Ask): Promise<unknown> {
    if (ask.host === this.edges.host) return this.answerAsk(ask);
    return this.send(ask.host, { ask });
  }

  private async send(host: number, message: Message): Promise<unknown> {
    if (this.hasEnded || this.standings[host] === undefined) return undefined;
    const answer = await this.mailboxes.ask(host, encodeMessage(message));
    if (answer === undefined) return undefined;
    return (decodeMessage(answer) as { readonly answer?: unknown }).answer;
  }

  /** Waits only a little: hosts that do not hear it see that others run in the era. */
  private async tellAll(message: Message): Promise<void> {
    const { nowUs, host: self } = this.edges;
    const others = [...this.lines.keys()].filter((host) => host !== self);
    let isTold = false;
    void Promise.all(others.map((host) => this.send(host, message))).then(() => {
      isTold = true;
    });
    for (const untilUs = nowUs() + BEGIN_US; !isTold && nowUs() < untilUs; ) await pause();
  }

  // --- answering -------------------------------------------------------------------------------

  private async answer(words: Int32Array): Promise<Int32Array> {
    const message = decodeMessage(words) as Message;
    if ('ask' in message) return encodeMessage({ answer: await this.answerAsk(message.ask) });
    const { begin } = message;
    if (this.openedEra === begin.era) this.entrance ??= begin;
    return encodeMessage({});
  }

  private async answerAsk(ask: Ask): Promise<unknown> {
    // We may have joined an older era since another promise, if that came to nothing.
    if (ask.what === 'open' && ask.plan.era !== this.promisedEra) return undefined;
    if (ask.what === 'survey') this.mistrustLines();
    try {
      const answer = await this.edges.answer(ask);
      if (ask.what === 'promise' && (answer as Promised).isAccepted) this.promisedEra = ask.era;
      if (ask.what === 'open' && this.hasOpened(answer as Opening)) this.openedEra = ask.plan.era;
      return answer;
    } catch (error) {
      const { message } = error as Error;
      this.edges.log('error', `can't take part in the recovery: ${message}`);
      return undefined;
    }
  }

  /** What we know of others is older than our answer to a survey. Reads that are under way may be older as well. */
  private mistrustLines(): void {
    this.lines = this.lines.map((line) => line.slice());
    for (const line of this.lines) line[HOST.pid] = NOT_READ;
  }

  /** Are the opening snapshots of all our groups durable here? */
  private hasOpened(opening: Opening | undefined): boolean {
    const { shape, host } = this.edges;
    return shape.overlay.parents.every(
      (_, group) => !shape.hostsOf(group).includes(host) || opening?.groups.includes(group),
    );
  }
}

/** Others run meanwhile. */
function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function describeRecovered({ era, isFirst, losses }: Recovered): string {
  if (isFirst) return `the cluster starts for the first time, with era ${era}`;
  const how = losses.length === 0 ? '' : ', with losses';
  return `the cluster is recovered${how}: era ${era} is open`;
}
