import { expect, test } from 'vitest';
import { type Agent, Duty, MUCH_WORK } from '../../src/hosting/duty.js';
import { threadsArena } from '../../src/memory/threads.js';

const PARKED = 0;
const READY = 1;
const READY_LATER = 2;
const SLOW_US = 1000;
const PACING = {
  heartbeatUs: 5000,
  quietHeartbeatUs: 5000,
  laterUs: 300,
  spinUs: 60,
  relax: () => undefined,
};

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
  const at = { parked: PARKED, ready: READY, readyLater: READY_LATER };
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
