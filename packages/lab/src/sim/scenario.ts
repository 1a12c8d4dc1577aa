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
import { OverlayError } from 'tram-multicast/internal/protocol/overlay.js';
import { type CommandShape, Commands, runShape } from './commands.js';
import { SimulationFailure } from './ledger.js';
import { Narrator } from './narrator.js';
import { Complaint, makePlan } from './scenario-plan.js';
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

class Scenario {
  private readonly narrator = new Narrator();
  private built: Commands | undefined;
  private isJudged = false;

  /** Those of scenarios alone. */
  private readonly shapes: readonly CommandShape[] = [
    [
      'cluster groups=2 tree=-1,0 replicas=3 clients=1',
      /^cluster(.*)$/,
      ([, given]) => this.build(given),
    ],
    ['run 500us', /^run (\d+)us$/, ([, us]) => this.runFor(Number(us))],
    ['run until quiet', /^run until quiet$/, () => this.runUntilQuiet()],
    ['run until 0/1 leads', /^run until (.+)$/, ([, deed]) => this.runUntilTold(deed)],
    ['state', /^state$/, () => this.describeState()],
    ['delivered', /^delivered$/, () => this.describeDelivered()],
    ['check', /^check$/, () => this.check()],
  ];

  /** Run one command. Returns its output. */
  run(line: string): string[] {
    if (this.isJudged) throw new Complaint('nothing may follow a check');
    if (runShape(this.shapes, line)) return this.narrator.take();
    const shared = this.commands.shapes;
    if (runShape(shared, line)) return this.narrator.take();
    const known = [...this.shapes, ...shared].map(([example]) => `  ${example}`).join('\n');
    throw new Complaint(`unknown command: ${line}\nthe commands are:\n${known}`);
  }

  // --- the cluster ---------------------------------------------------------------------------

  private get commands(): Commands {
    if (this.built === undefined) throw new Complaint('a scenario starts with a cluster');
    return this.built;
  }

  private get world(): World {
    return this.commands.world;
  }

  /** Build a cluster and run it until every group has its leader. */
  private build(given: string): void {
    if (this.built !== undefined) throw new Complaint('there is a cluster already');
    const { onTransition } = this.narrator;
    const world = new World(makePlan(given), { keepsTrace: true, onTransition });
    this.narrator.attach(world);
    this.built = new Commands(world, this.narrator);
    this.runUntilQuiet();
    this.narrator.take();
    world.plan.parents.forEach((parent, group) => {
      this.narrator.print(this.describeGroup(group, parent));
    });
  }

  private describeGroup(group: number, parent: number): string {
    const leader = this.world.leaderOf(group)!;
    const ballot = describeBallot(leader.replica.member.promised);
    const place = parent < 0 ? '' : `, below group ${parent}`;
    return `group ${group}${place}: ${this.narrator.name(leader)} leads with ballot ${ballot}`;
  }

  // --- time ----------------------------------------------------------------------------------

  private advance(): void {
    const { replicas, clients } = this.world;
    if (![...replicas, ...clients].some((host) => host.state === 'up')) {
      throw new Complaint('every participant is down or paused: nothing can happen');
    }
    this.world.advance();
    this.commands.afterEvent();
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
