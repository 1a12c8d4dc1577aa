/**
 * What scripts and users do to a simulated cluster: multicast messages, crash, pause and resume participants, hold back
 * links. A command is a line of text. Scenarios are made of such lines (docs/scenarios.md), and so is what a user does on
 * the page.
 */
import { highMask, lowMask } from 'tram-multicast/internal/protocol/overlay.js';
import type { ClientHost, Host, ReplicaHost } from './hosts.js';
import type { Narrator } from './narrator.js';
import { Complaint, readOptions, toNumber } from './scenario-plan.js';
import type { World } from './world.js';

/** A fault that interrupts a step of a participant before a certain write. */
interface ArmedFault {
  readonly host: Host;
  readonly verb: 'crash' | 'kill' | 'pause';
  readonly before: string;
}

type Command = (args: RegExpExecArray) => void;

/** An example of a command, its syntax, and its action. */
export type CommandShape = readonly [string, RegExp, Command];

export class Commands {
  private armed: ArmedFault[] = [];

  constructor(
    readonly world: World,
    private readonly narrator: Narrator,
  ) {}

  readonly shapes: readonly CommandShape[] = [
    ['weather torn=100 late=50 jitter=5', /^weather (.+)$/, ([, given]) => this.setWeather(given)],
    [
      'multicast c0 to 0,1 "text"',
      /^multicast (c\d+) to ([\d,]+)((?: "[^"]*")+)$/,
      ([, client, to, texts]) => this.multicast(client, to, texts),
    ],
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
    [
      'cut 0/0 -> 0/1, 0/2',
      /^cut (.+) -> (.+)$/,
      ([, from, to]) => this.onLinks(from, to, (a, b) => this.world.fabric.goesDown(a, b)),
    ],
    [
      'slow 0/0 -> 0/1, 0/2 by 500us',
      /^slow (.+) -> (.+) by (\d+)us$/,
      ([, from, to, us]) =>
        this.onLinks(from, to, (a, b) => this.world.fabric.slowDown(a, b, Number(us))),
    ],
    [
      'mend 0/0 -> 0/1, 0/2',
      /^mend (.+) -> (.+)$/,
      ([, from, to]) => this.onLinks(from, to, (a, b) => this.mend(a, b)),
    ],
    ['campaign 0/1', /^campaign (\S+)$/, ([, who]) => this.campaign(this.upHost(who))],
  ];

  /** @throws {Complaint} if there is no such command, or if it can't be carried out now */
  run(line: string): void {
    if (!runShape(this.shapes, line)) throw new Complaint(`unknown command: ${line}`);
  }

  /** To be called after every event: describes it, and applies faults that it has made due. */
  afterEvent(): void {
    this.narrator.catchUp();
    for (const fault of this.armed) {
      if (!fault.host.memory.isStalled) continue;
      this.armed = this.armed.filter((other) => other !== fault);
      if (fault.verb === 'pause') this.pause(fault.host, fault.before);
      else this.end(fault.verb, fault.host, fault.before);
    }
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

  private mend(from: number, to: number): void {
    this.world.fabric.comesBack(from, to);
    this.world.fabric.slowDown(from, to, 0);
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
}

/** Carry out a command. Returns false if none of these has its shape. */
export function runShape(shapes: readonly CommandShape[], line: string): boolean {
  for (const [, shape, command] of shapes) {
    const args = shape.exec(line);
    if (args === null) continue;
    command(args);
    return true;
  }
  return false;
}
