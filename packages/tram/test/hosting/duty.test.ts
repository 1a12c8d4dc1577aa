import { expect, test } from 'vitest';
import { type Agent, Duty, MUCH_WORK } from '../../src/hosting/duty.js';
import { PARKED } from '../../src/memory/arena.js';
import { threadsArena } from '../../src/memory/threads.js';

const PARKED_AT = 0;
const READY = 1;
const READY_LATER = 2;
const SLOW_US = 1000;
const PACING = {
  heartbeatUs: 5000,
  quietHeartbeatUs: 5000,
  laterUs: 300,
  spinUs: 60,
  cores: 2,
  relax: () => undefined,
};

/** A host that parks at once takes no more turns than this. */
const TURNS_MAX = 5;

/** Time passes only while the agent works. */
class SlowAgent implements Agent {
  clockUs = 0;
  /** By how much the time of each step was behind the clock when the step began. */
  readonly lateUs: number[] = [];

  constructor(private readonly work: number) {}

  doWork(nowUs: number): number {
    this.lateUs.push(this.clockUs - nowUs);
    this.clockUs += SLOW_US * this.work;
    return this.work;
  }
}

function run(agent: SlowAgent, durationUs: number): void {
  const arena = threadsArena(new SharedArrayBuffer(1024));
  const at = { parked: PARKED_AT, ready: READY, readyLater: READY_LATER, allParked: [PARKED_AT] };
  const relax = (): void => {
    agent.clockUs++;
    arena.words[READY] = 1;
  };
  new Duty(arena, at, [agent], { ...PACING, relax }, () => agent.clockUs).run(durationUs);
}

test('an agent that has done much work, which may have taken long, runs next with the time that it is', () => {
  const agent = new SlowAgent(MUCH_WORK);
  run(agent, 100 * SLOW_US * MUCH_WORK);
  expect(agent.lateUs.length).toBeGreaterThan(90);
  expect(Math.max(...agent.lateUs)).toBe(0);
});

/**
 * A host whose agent does a little work each time that it runs, and much in its next `muchWork` runs. Each turn takes a microsecond,
 * and the host can't be woken.
 */
class IdleHost {
  readonly words: Int32Array;
  clockUs = 0;
  /** How long before each park the agent last ran. */
  readonly spunUs: number[] = [];
  private ranUs = 0;
  readonly duty: Duty;
  muchWork = 0;

  constructor(others: readonly number[] = []) {
    const { words } = threadsArena(new SharedArrayBuffer(1024));
    this.words = words;
    const wait = (at: number, expected: number, timeoutUs: number): void => {
      expect(words[at]).toBe(expected);
      this.spunUs.push(this.clockUs - this.ranUs);
      this.clockUs += timeoutUs;
    };
    const arena = { words, parking: { wait, wake: () => undefined }, close: () => undefined };
    const at = {
      ...{ parked: PARKED_AT, ready: READY, readyLater: READY_LATER },
      allParked: [PARKED_AT, ...others],
    };
    const agent = {
      doWork: (): number => {
        this.ranUs = this.clockUs;
        return this.muchWork-- > 0 ? MUCH_WORK : 1;
      },
    };
    const clock = (): number => ++this.clockUs;
    this.duty = new Duty(arena, at, [agent], PACING, clock);
  }

  run(): void {
    this.duty.run(PACING.heartbeatUs);
  }
}

/** A host that parks as soon as it may. Its two agents have nothing to do, and it beats rarely. */
class SleepyHost {
  readonly words: Int32Array;
  /** Which agents have run, and when it parked. */
  readonly steps: string[] = [];
  private clockUs = 0;
  private readonly duty: Duty;

  constructor() {
    const { words } = threadsArena(new SharedArrayBuffer(1024));
    this.words = words;
    const wait = (_at: number, _expected: number, timeoutUs: number): void => {
      this.steps.push('parked');
      this.clockUs += timeoutUs;
    };
    const arena = { words, parking: { wait, wake: () => undefined }, close: () => undefined };
    const later = READY + 2;
    const at = { parked: PARKED_AT, ready: READY, readyLater: later, allParked: [PARKED_AT] };
    const agent = (name: string): Agent => ({
      doWork: () => {
        this.steps.push(name);
        return 0;
      },
    });
    const pacing = { ...PACING, heartbeatUs: 1e9, quietHeartbeatUs: 1e9, spinUs: -1 };
    const agents = [agent('a'), agent('b')];
    this.duty = new Duty(arena, at, agents, pacing, () => ++this.clockUs);
  }

  run(): void {
    this.duty.run(PACING.heartbeatUs);
  }
}

test('after urgent work a host spins, and then parks', () => {
  const host = new IdleHost();
  host.words[READY] = 1;
  host.run();
  expect(host.spunUs[0]).toBeGreaterThan(PACING.spinUs);
  expect(host.words[PARKED_AT]).toBe(PARKED.absent);
});

test('a host does not spin if more hosts are awake than there are cores', () => {
  const others = [100, 101, 102];
  const crowded = new IdleHost(others);
  crowded.words[READY] = 1;
  for (const other of others) crowded.words[other] = PARKED.parked;
  crowded.words[others[1]] = PARKED.awake;
  crowded.words[others[2]] = PARKED.awake;
  crowded.run();
  expect(crowded.spunUs[0]).toBeLessThan(TURNS_MAX);
  const spared = new IdleHost(others);
  spared.words[READY] = 1;
  for (const other of others) spared.words[other] = PARKED.parked;
  spared.words[others[2]] = PARKED.awake;
  spared.run();
  expect(spared.spunUs[0]).toBeGreaterThan(PACING.spinUs);
});

test('of two cores one is spare for a host between two runs while all others sleep', () => {
  const others = [100, 101, 102];
  const host = new IdleHost(others);
  for (const other of others) host.words[other] = PARKED.parked;
  host.run();
  expect(host.duty.hasSpareCore).toBe(true);
  host.words[others[1]] = PARKED.awake;
  expect(host.duty.hasSpareCore).toBe(false);
});

test('after work that was not urgent a host parks at once', () => {
  const host = new IdleHost();
  host.run();
  host.spunUs.length = 0;
  host.words[READY_LATER] = 1;
  host.run();
  expect(host.spunUs[0]).toBeLessThan(TURNS_MAX);
});

test('much work that was urgent stays urgent until it is done', () => {
  const host = new IdleHost();
  host.words[READY] = 1;
  host.muchWork = 10 * PACING.spinUs;
  host.run();
  expect(host.muchWork).toBeLessThan(0);
  expect(host.spunUs[0]).toBeGreaterThan(PACING.spinUs);
});

test('much work that was not urgent does not get urgent', () => {
  const host = new IdleHost();
  host.run();
  host.spunUs.length = 0;
  host.words[READY_LATER] = 1;
  host.muchWork = 10 * PACING.spinUs;
  host.run();
  expect(host.muchWork).toBeLessThan(0);
  expect(host.spunUs[0]).toBeLessThan(TURNS_MAX);
});

test('after an idle turn, the first agent whose flag is set gets a second look before the host parks', () => {
  const host = new SleepyHost();
  host.run();
  host.steps.length = 0;
  host.words[READY + 1] = 1;
  host.run();
  expect(host.steps.slice(0, 3)).toEqual(['b', 'b', 'parked']);
  host.steps.length = 0;
  host.words[READY] = 1;
  host.words[READY + 1] = 1;
  host.run();
  expect(host.steps.slice(0, 4)).toEqual(['a', 'b', 'a', 'parked']);
});

/** Of so many turns, each as long as `laterUs` at least: in how many does an agent run whose flag is marked later in each of them? */
function laterRuns(turns: number, work: number): number {
  const { words } = threadsArena(new SharedArrayBuffer(1024));
  const later = READY + 1;
  let clockUs = 0;
  let runs = 0;
  const busy = {
    doWork: (): number => {
      clockUs += PACING.laterUs;
      words[READY] = 1;
      words[later + 2] = 1;
      return work;
    },
  };
  const patient = {
    doWork: (): number => {
      runs++;
      return 0;
    },
  };
  const at = { parked: PARKED_AT, ready: READY, readyLater: later + 1, allParked: [PARKED_AT] };
  const arena = {
    words,
    parking: { wait: () => undefined, wake: () => undefined },
    close: () => undefined,
  };
  const pacing = { ...PACING, heartbeatUs: 1e9, quietHeartbeatUs: 1e9, spinUs: 1e9 };
  const duty = new Duty(arena, at, [busy, patient], pacing, () => clockUs);
  words[READY] = 1;
  duty.run(turns * PACING.laterUs);
  return runs;
}

test('while there is work, agents in no hurry run in every fourth turn at most', () => {
  const runs = laterRuns(400, MUCH_WORK);
  expect(runs).toBeGreaterThanOrEqual(99);
  expect(runs).toBeLessThanOrEqual(102);
});

/** When an agent has run. Says what it does in each run, and when it is due after that. */
class Recorded implements Agent {
  readonly ranUs: number[] = [];
  dueUs = Number.POSITIVE_INFINITY;

  constructor(
    private readonly work: readonly number[] = [],
    private readonly everyUs = Number.POSITIVE_INFINITY,
    /** From this run on it is due by its own account. */
    private readonly dueFrom = 0,
  ) {}

  doWork(nowUs: number): number {
    const run = this.ranUs.push(nowUs) - 1;
    if (run >= this.dueFrom) this.dueUs = nowUs + this.everyUs;
    return this.work[run] ?? 0;
  }
}

const QUIET_US = 10_000;
/** When a flag is set. */
const FLAG_US = 1000;
/** The clock is read after some turns. */
const LATE_US = 16;

/** A host that never parks. Each turn takes a microsecond, and the first one is a heartbeat. Sets this flag once. */
function runQuietly(agents: readonly Agent[], flag?: number, heartbeatUs = 1e9): void {
  const { words } = threadsArena(new SharedArrayBuffer(1024));
  const readyLater = READY + agents.length;
  const at = { parked: PARKED_AT, ready: READY, readyLater, allParked: [PARKED_AT] };
  let clockUs = 0;
  const relax = (): void => {
    clockUs++;
    if (flag !== undefined && clockUs === FLAG_US) words[flag] = 1;
  };
  const quietHeartbeatUs = heartbeatUs;
  const pacing = { ...PACING, heartbeatUs, quietHeartbeatUs, spinUs: 1e9, relax };
  const arena = {
    words,
    parking: { wait: () => undefined, wake: () => undefined },
    close: () => undefined,
  };
  new Duty(arena, at, agents, pacing, () => clockUs).run(QUIET_US);
}

function expectAbout(us: number | undefined, expectedUs: number): void {
  expect(us).toBeGreaterThanOrEqual(expectedUs - LATE_US);
  expect(us).toBeLessThanOrEqual(expectedUs + LATE_US);
}

test('while no flag is set, an agent runs when it is due by its own account, and no other does', () => {
  const everyUs = 100;
  const others = [new Recorded(), new Recorded()];
  const punctual = new Recorded([], everyUs);
  runQuietly([others[0], punctual, others[1]]);
  for (const { ranUs } of others) expect(ranUs).toEqual([0]);
  const { ranUs } = punctual;
  expect(ranUs.length).toBeGreaterThan(80);
  for (let i = 1; i < ranUs.length; i++) expectAbout(ranUs[i] - ranUs[i - 1], everyUs);
});

test('an agent that runs because of its flag is due from then on, and no other is', () => {
  const everyUs = 100;
  const other = new Recorded();
  const woken = new Recorded([], everyUs, 1);
  runQuietly([other, woken], READY + 1);
  expect(other.ranUs).toEqual([0]);
  const [, first, second, third] = woken.ranUs;
  expectAbout(first, FLAG_US);
  // A second look.
  expectAbout(second, FLAG_US);
  expectAbout(third - second, everyUs);
});

test('an agent that has done much work because of its flag runs again at once', () => {
  const other = new Recorded();
  const woken = new Recorded([0, 1, MUCH_WORK, MUCH_WORK, 1]);
  runQuietly([other, woken], READY + 1);
  expect(other.ranUs).toEqual([0]);
  // Its flag is set before the second run. The third one is a second look.
  expect(woken.ranUs).toHaveLength(5);
  expectAbout(woken.ranUs[4], FLAG_US);
});

test('while no other flag is set, a flag marked later is served in time', () => {
  const agents = [new Recorded(), new Recorded()];
  runQuietly(agents, READY + agents.length + 1);
  expect(agents[0].ranUs).toEqual([0]);
  expect(agents[1].ranUs).toHaveLength(2);
  expect(agents[1].ranUs[1]).toBeLessThanOrEqual(FLAG_US + PACING.laterUs + LATE_US);
});

test('while no flag is set, each agent runs with every heartbeat', () => {
  const heartbeatUs = 1000;
  const agents = [new Recorded(), new Recorded()];
  runQuietly(agents, undefined, heartbeatUs);
  for (const { ranUs } of agents) {
    expect(ranUs.length).toBeGreaterThanOrEqual(QUIET_US / (heartbeatUs + LATE_US));
    for (let i = 1; i < ranUs.length; i++) expectAbout(ranUs[i] - ranUs[i - 1], heartbeatUs);
  }
});
