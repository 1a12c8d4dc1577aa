/** Ticks of a group: when there are any, and how ordered time goes on after failures. */
import { expect } from 'vitest';
import type { ReplicaHost } from '../../src/sim/hosts.js';
import type { WallClock } from '../../src/sim/plan.js';
import { attack, STUCK } from './attack.js';

const HOUR_US = 3_600_000_000;
const RIGHT: WallClock = { offsetUs: 0, speed: 1, jumpAtUs: 0, jumpUs: 0 };

const orderedUs = ({ replica }: ReplicaHost): number => replica.member.delivered.orderedUs;

attack('a group whose service asks for no ticks orders nothing while it is idle', {}, (subject) => {
  const stage = new subject.Stage('replicas=3');
  const [L] = stage.group(0);
  stage.runFor(20_000);
  expect(L.replica.replication.endIndex).toBe(0);
});

attack('a leader without a quorum proposes one tick, and no more', {}, (subject) => {
  const stage = new subject.Stage('replicas=3', { ticks: { everyUs: 300, clocks: [] } });
  const [L, B, C] = stage.group(0);
  stage.until(() => orderedUs(L) > 0);
  stage.hold(L, B, C);
  const { replication } = L.replica;
  stage.until(() => replication.endIndex > replication.decided);
  stage.hopeFor(() => replication.endIndex > replication.decided + 1, 200);
  expect(replication.endIndex).toBe(replication.decided + 1);
  stage.settle();
});

attack('a full log makes room for ticks', {}, (subject) => {
  const stage = new subject.Stage('replicas=3 rings=0', { ticks: { everyUs: 300, clocks: [] } });
  const [L] = stage.group(0);
  const stop = stage.flood(0, [0], 'x'.repeat(32));
  stage.until(() => L.replica.replication.baseIndex > 20);
  const beforeUs = orderedUs(L);
  stage.until(() => orderedUs(L) > beforeUs + 1000);
  stop();
  stage.settle();
});

attack(
  'when all members of a group were down for hours, its time goes on from the wall clock',
  { 'tick-of-kept-log': STUCK },
  (subject) => {
    // 1. L leads. All members stop. Hours later B and C resume with L's log, and deliver it again with all its ticks.
    //    Harm: the next leader believes that it has heard them just now, and time needs hours to catch up.
    const jumps: WallClock = { ...RIGHT, jumpAtUs: 5000, jumpUs: 5 * HOUR_US };
    const ticks = { everyUs: 300, clocks: [jumps, jumps, jumps] };
    const stage = new subject.Stage('replicas=3', { ticks });
    const members = stage.group(0);
    const [L, ...others] = members;
    stage.until(() => members.every((host) => orderedUs(host) > 0));
    const beforeUs = orderedUs(L);
    for (const host of members) stage.stop(host);
    while (stage.world.nowUs < jumps.jumpAtUs) {
      if (stage.world.isIdle) stage.world.fabric.nowUs = jumps.jumpAtUs;
      else stage.world.advance();
    }
    for (const host of others) stage.resume(host);
    stage.until(() => others.every((host) => orderedUs(host) > beforeUs + 4 * HOUR_US));
    stage.resume(L);
    stage.settle();
  },
);

attack(
  'ticks make room for themselves while a member that lags is trusted',
  { 'tick-needs-no-room': /to be greater than 30000/ },
  (subject) => {
    // 1. A member pauses, and the others trust it for long. Nobody sends a message.
    // 2. Ticks fill the log. The leader drops what the member has not delivered, but only if the log is full.
    //    Harm: ordered time stands still until the member is suspected.
    const ticks = { everyUs: 300, clocks: [] };
    const timing = { suspectAfterUs: 100_000 };
    const stage = new subject.Stage('replicas=3 rings=0', { ticks, timing });
    const [L, , C] = stage.group(0);
    stage.until(() => orderedUs(L) > 0);
    stage.world.pause(C);
    const beforeUs = orderedUs(L);
    stage.runFor(50_000);
    expect(orderedUs(L) - beforeUs).toBeGreaterThan(30_000);
  },
);

attack(
  'messages get at least every second place in a full log, however often ticks are due',
  { 'ticks-always-first': /to be greater than/ },
  (subject) => {
    const ticks = { everyUs: 1, clocks: [] };
    const stage = new subject.Stage('replicas=3 clients=2 rings=0', { ticks });
    const [L] = stage.group(0);
    const { member } = L.replica;
    const stops = [0, 1].map((client) => stage.flood(client, [0], 'x'.repeat(32)));
    stage.until(() => L.replica.replication.baseIndex > 20);
    const before = { entries: member.nextToDeliver, messages: member.deliveries };
    stage.until(() => member.nextToDeliver >= before.entries + 200);
    expect(member.deliveries - before.messages).toBeGreaterThan(100);
    for (const stop of stops) stop();
    stage.settle();
  },
);
