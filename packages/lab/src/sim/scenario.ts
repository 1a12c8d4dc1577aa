/**
 * Runs a scenario: a text of commands, each followed by `----` and its output. `runScenario` returns the text with the
 * output of this run. A test compares the two, and an update is a diff to review. docs/scenarios.md lists the commands.
 *
 * Seed, delays and timing are fixed, and no faults are drawn unless the scenario asks for weather. The world is that of
 * the simulator: production code on simulated memory.
 */
import { judge } from 'tram-multicast/internal/check/judge.js';
import { InvariantError } from 'tram-multicast/internal/protocol/assert.js';
import { describeBallot } from 'tram-multicast/internal/protocol/leadership/ballot.js';
import { highMask, lowMask, OverlayError } from 'tram-multicast/internal/protocol/overlay.js';
import type { ClientHost, Host, ReplicaHost } from './hosts.js';
import { SimulationFailure } from './ledger.js';
import { Narrator } from './narrator.js';
import { Complaint, makePlan, readOptions, toNumber } from './scenario-plan.js';
import { World } from './world.js';

/** The scenario is wrong, or its run failed. The message starts with file and line. */
export class ScenarioError extends Error {
  override readonly name = 'ScenarioError';
}

const SEPARATOR = '----';
/** Longer than any timeout of the plan: after so long without a line, there will be none. */
const QUIET_US = 1000;
const RUN_LIMIT_US = 50_000;

/** The scenario's text with the outcome of this run. @param file  its name, for errors */
export function runScenario(file: string, text: string): string {
  const scenario = new Scenario();
  const output: string[] = [];
  const lines = text.replace(/\n+$/, '').split('\n');
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    output.push(line);
    if (line.trim() === '' || line.startsWith('#')) continue;
    if (line === SEPARATOR)
      throw new ScenarioError(`${file}:${i + 1}: no command before ${SEPARATOR}`);
    output.push(SEPARATOR, ...runCommand(scenario, line, `${file}:${i + 1}`));
    if (lines[i + 1] === SEPARATOR) i++;
    while (i + 1 < lines.length && lines[i + 1] !== '') i++;
  }
  return `${output.join('\n')}\n`;
}

function runCommand(scenario: Scenario, command: string, where: string): string[] {
  try {
    const lines = scenario.run(command);
    return lines.length > 0 ? lines : ['ok'];
  } catch (error) {
    if (error instanceof SimulationFailure) {
      throw new ScenarioError(`${where}: the run failed (${error.kind}): ${error.message}`);
    }
    if (error instanceof InvariantError) {
      throw new ScenarioError(`${where}: the run failed: ${error.message}`);
    }
    const isUsers = error instanceof Complaint || error instanceof OverlayError;
    if (isUsers || error instanceof RangeError)
      throw new ScenarioError(`${where}: ${error.message}`);
    throw error;
  }
}

/** A fault that interrupts a step of a participant before a certain write. */
interface ArmedFault {
  readonly host: Host;
  readonly verb: 'crash' | 'kill' | 'pause';
  readonly before: string;
}

type Command = (args: RegExpExecArray) => void;

class Scenario {
  private readonly narrator = new Narrator();
  private built: World | undefined;
  private armed: ArmedFault[] = [];
  private isJudged = false;

  /** Every command: an example, its syntax, and its action. */
  private readonly commands: readonly (readonly [string, RegExp, Command])[] = [
    [
      'cluster groups=2 tree=-1,0 replicas=3 clients=1',
      /^cluster(.*)$/,
      ([, given]) => this.build(given),
    ],
    ['weather torn=100 late=50 jitter=5', /^weather (.+)$/, ([, given]) => this.setWeather(given)],
    [
      'multicast c0 to 0,1 "text"',
      /^multicast (c\d+) to ([\d,]+)((?: "[^"]*")+)$/,
      ([, client, to, texts]) => this.multicast(client, to, texts),
    ],
    ['run 500us', /^run (\d+)us$/, ([, us]) => this.runFor(Number(us))],
    ['run until quiet', /^run until quiet$/, () => this.runUntilQuiet()],
    ['run until 0/1 leads', /^run until (.+)$/, ([, deed]) => this.runUntilTold(deed)],
    ['crash 0/0', /^crash (\S+)$/, ([, who]) => this.end('crash', this.host(who))],
    ['kill 0/0', /^kill (\S+)$/, ([, who]) => this.end('kill', this.host(who))],
    ['pause 0/0', /^pause (\S+)$/, ([, who]) => this.pause(this.upHost(who))],
    [
      'pause 0/0 before a write to 0/2',
      /^(crash|kill|pause) (\S+) before a write to (.+)$/,
      ([, verb, who, place]) => this.arm(verb as ArmedFault['verb'], this.upHost(who), place),
    ],
    ['resume 0/0', /^resume (\S+)$/, ([, who]) => this.resume(this.host(who))],
    ['restart 0/0', /^restart (\S+)$/, ([, who]) => this.restart(this.host(who))],
    [
      'hold 0/0 -> 0/1, 0/2',
      /^hold (.+) -> (.+)$/,
      ([, from, to]) => this.onLinks(from, to, (a, b) => this.world.fabric.hold(a, b)),
    ],
    [
      'release 0/0 -> 0/1, 0/2',
      /^release (.+) -> (.+)$/,
      ([, from, to]) => this.onLinks(from, to, (a, b) => this.world.fabric.release(a, b)),
    ],
    [
      'lose 0/0 -> c0',
      /^lose (.+) -> (.+)$/,
      ([, from, to]) => this.onLinks(from, to, (a, b) => this.world.fabric.breakLink(a, b)),
    ],
    ['campaign 0/1', /^campaign (\S+)$/, ([, who]) => this.campaign(this.upHost(who))],
    ['state', /^state$/, () => this.describeState()],
    ['delivered', /^delivered$/, () => this.describeDelivered()],
    ['check', /^check$/, () => this.check()],
  ];

  /** Run one command. Returns its output. */
  run(line: string): string[] {
    if (this.isJudged) throw new Complaint('nothing may follow a check');
    for (const [, shape, command] of this.commands) {
      const args = shape.exec(line);
      if (args === null) continue;
      command(args);
      return this.narrator.take();
    }
    const known = this.commands.map(([example]) => `  ${example}`).join('\n');
    throw new Complaint(`unknown command: ${line}\nthe commands are:\n${known}`);
  }

  // --- the cluster ---------------------------------------------------------------------------

  private get world(): World {
    if (this.built === undefined) throw new Complaint('a scenario starts with a cluster');
    return this.built;
  }

  /** Build a cluster and run it until every group has its leader. */
  private build(given: string): void {
    if (this.built !== undefined) throw new Complaint('there is a cluster already');
    const { onTransition } = this.narrator;
    this.built = new World(makePlan(given), { keepsTrace: true, onTransition });
    this.narrator.attach(this.built);
    this.runUntilQuiet();
    this.narrator.take();
    this.built.plan.parents.forEach((parent, group) => {
      this.narrator.print(this.describeGroup(group, parent));
    });
  }

  private describeGroup(group: number, parent: number): string {
    const leader = this.world.leaderOf(group)!;
    const ballot = describeBallot(leader.replica.member.promised);
    const place = parent < 0 ? '' : `, below group ${parent}`;
    return `group ${group}${place}: ${this.narrator.name(leader)} leads with ballot ${ballot}`;
  }

  private setWeather(given: string): void {
    const { weather } = this.world.fabric;
    const options = readOptions(given, ['torn', 'late', 'jitter', 'delay']);
    weather.tornPercent = toNumber(options, 'torn', weather.tornPercent);
    weather.lateCompletionPercent = toNumber(options, 'late', weather.lateCompletionPercent);
    weather.jitterUs = toNumber(options, 'jitter', weather.jitterUs);
    weather.delayUs = toNumber(options, 'delay', weather.delayUs);
  }

  private multicast(who: string, to: string, texts: string): void {
    const host = this.upHost(who) as ClientHost;
    const { groups, payloadBytesMax } = this.world.layout.sizes;
    let low = 0;
    let high = 0;
    for (const group of to.split(',').map(Number)) {
      if (group >= groups)
        throw new Complaint(
          `unknown destination group ${group}: there are groups 0 to ${groups - 1}`,
        );
      low |= lowMask(group);
      high |= highMask(group);
    }
    for (const [, text] of texts.matchAll(/"([^"]*)"/g)) {
      const payload = new TextEncoder().encode(text);
      if (payload.length > payloadBytesMax)
        throw new Complaint(`"${text}" exceeds the payload limit of ${payloadBytesMax} bytes`);
      const sent = host.workload.multicast(host.client, low, high, payload);
      if (sent === undefined)
        throw new Complaint(`${who} is back-pressured: it can't take "${text}" now`);
      this.narrator.sent(host, sent);
    }
  }

  // --- time ----------------------------------------------------------------------------------

  private advance(): void {
    const { replicas, clients } = this.world;
    if (![...replicas, ...clients].some((host) => host.state === 'up')) {
      throw new Complaint('every participant is down or paused: nothing can happen');
    }
    this.world.advance();
    this.narrator.catchUp();
    for (const fault of this.armed) {
      if (!fault.host.memory.isStalled) continue;
      this.armed = this.armed.filter((other) => other !== fault);
      if (fault.verb === 'pause') this.pause(fault.host, fault.before);
      else this.end(fault.verb, fault.host, fault.before);
    }
  }

  private runFor(us: number): void {
    const untilUs = this.world.nowUs + us;
    while (this.world.nowUs < untilUs) this.advance();
  }

  /** Run until no line has been added for `QUIET_US`. */
  private runUntilQuiet(): void {
    const startUs = this.world.nowUs;
    let lastUs = startUs;
    this.listening(
      () => {
        lastUs = this.world.nowUs;
      },
      () => {
        while (this.world.nowUs - lastUs < QUIET_US) {
          if (lastUs - startUs > RUN_LIMIT_US) this.fail('it does not become quiet');
          this.advance();
        }
      },
    );
  }

  /** Run until a line starts with these words. */
  private runUntilTold(words: string): void {
    const limitUs = this.world.nowUs + RUN_LIMIT_US;
    let isTold = false;
    this.listening(
      (deed) => {
        isTold ||= deed === words || deed.startsWith(`${words} `);
      },
      () => {
        while (!isTold) {
          if (this.world.nowUs > limitUs) this.fail(`"${words}" does not happen`);
          this.advance();
        }
      },
    );
  }

  private listening(listener: (deed: string) => void, body: () => void): void {
    this.narrator.listen(listener);
    body();
    this.narrator.listen(undefined);
  }

  private fail(what: string): never {
    const told = this.narrator.take().slice(-20);
    throw new Complaint([`${what} within ${RUN_LIMIT_US} µs; the last lines:`, ...told].join('\n'));
  }

  // --- faults --------------------------------------------------------------------------------

  private arm(verb: ArmedFault['verb'], host: Host, place: string): void {
    host.memory.stallBeforeWriteTo(this.participants(place));
    this.armed.push({ host, verb, before: ` before its write to ${place}` });
  }

  private end(verb: 'crash' | 'kill', host: Host, before = ''): void {
    if (host.state === 'down') throw new Complaint(`${this.narrator.name(host)} is down already`);
    this.armed = this.armed.filter((fault) => fault.host !== host);
    this.world[verb](host);
    this.narrator.forget(host);
    const deed = verb === 'crash' ? 'crashes' : 'is killed';
    this.narrator.tell(`${this.narrator.name(host)} ${deed}${before}`);
  }

  private pause(host: Host, before = ''): void {
    this.world.pause(host);
    this.narrator.tell(`${this.narrator.name(host)} pauses${before}`);
  }

  private resume(host: Host): void {
    const name = this.narrator.name(host);
    if (host.state === 'paused') {
      this.narrator.tell(`${name} resumes`);
      this.world.resume(host);
    } else if (host.leftMemory && 'member' in host) {
      this.narrator.tell(`${name} comes back to its memory`);
      this.world.resumeReplica(host as ReplicaHost);
    } else {
      throw new Complaint(`${name} is not paused`);
    }
  }

  private restart(host: Host): void {
    if (host.state !== 'down') throw new Complaint(`${this.narrator.name(host)} is not down`);
    this.narrator.tell(`${this.narrator.name(host)} restarts with empty memory`);
    if ('member' in host) this.world.startReplica(host as ReplicaHost);
    else this.world.startClient(host as ClientHost, 0);
  }

  private campaign(host: Host): void {
    if (!('member' in host)) throw new Complaint('only a replica can lead');
    this.world.campaign(host as ReplicaHost);
  }

  private onLinks(from: string, to: string, act: (from: number, to: number) => void): void {
    for (const one of this.participants(from)) {
      for (const other of this.participants(to)) if (one !== other) act(one, other);
    }
  }

  // --- names ---------------------------------------------------------------------------------

  /** `0/1`, `c0`, `group 2`, or several of them. */
  private participants(places: string): number[] {
    return places.split(/, */).flatMap((place) => {
      const group = /^group (\d+)$/.exec(place);
      if (group === null) return [this.host(place).participant];
      const members = this.world.members(Number(group[1]));
      if (members.length === 0) throw new Complaint(`there is no ${place}`);
      return members.map(({ participant }) => participant);
    });
  }

  private host(name: string): Host {
    const { replicas, clients } = this.world;
    const host = [...replicas, ...clients].find(
      (candidate) => this.narrator.name(candidate) === name,
    );
    if (host === undefined) throw new Complaint(`there is no ${name}`);
    return host;
  }

  private upHost(name: string): Host {
    const host = this.host(name);
    if (host.state !== 'up') throw new Complaint(`${name} is ${host.state}`);
    return host;
  }

  // --- output --------------------------------------------------------------------------------

  private describeState(): void {
    for (const host of this.world.replicas) {
      const log = this.narrator.logOf(host).join(', ') || 'empty';
      const paused = host.state === 'paused' ? ' (paused)' : '';
      const isDown = host.state === 'down';
      this.narrator.print(
        isDown
          ? `${this.narrator.name(host)} down`
          : `${host.replica.describe()} log: ${log}${paused}`,
      );
    }
  }

  private describeDelivered(): void {
    for (const host of this.world.replicas) {
      const { deliveries } = host.replica.member;
      const order = this.world.ledger.orders[host.group].slice(0, deliveries);
      const texts = order.map((sent) => this.narrator.textOfSent(sent)).join(', ') || 'nothing';
      const down = host.state === 'down' ? ' (down)' : '';
      this.narrator.print(`${this.narrator.name(host)}: ${texts}${down}`);
    }
  }

  /** Run until quiet, then judge the history. */
  private check(): void {
    this.runUntilQuiet();
    this.isJudged = true;
    const { ledger } = this.world;
    ledger.record({ event: 'end', quiescent: true });
    const { outcome, properties, counts } = judge(ledger.history);
    const { messages, deliveries } = counts;
    this.narrator.print(...this.narrator.unanswered);
    this.narrator.print(
      `${outcome}: ${count(messages, 'message')}, ${count(deliveries, 'delivery')}`,
    );
    for (const verdict of properties) {
      if (verdict.outcome !== 'violated') continue;
      this.narrator.print(`  ${verdict.property}: ${this.narrator.inTexts(verdict.witness)}`);
    }
  }
}

function count(number: number, noun: string): string {
  if (number === 1) return `1 ${noun}`;
  return `${number} ${noun.replace(/y$/, 'ie')}s`;
}
