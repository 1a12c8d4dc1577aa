/** Leaders of a running cluster: where they are at first, and where they are again after a failure. */
import { afterEach, expect, test } from 'vitest';
import { Cluster, pause, type StartOptions, until } from '../built.js';

let cluster: Cluster;

afterEach(() => cluster.destroy());

async function start(options: Partial<StartOptions>): Promise<void> {
  cluster = await Cluster.start({ groups: 3, hosts: 3, clients: 1, ...options });
}

const leaders = (): (number | undefined)[] => cluster.status().groups.map(({ leader }) => leader);

/** The hosts of the leaders. */
const leadingHosts = (): (number | undefined)[] =>
  cluster.status().groups.map(({ leader, replicas }) => replicas[leader ?? -1]?.host);

const untilLedBy = (...members: number[]): Promise<void> =>
  until(() => members.every((member, group) => leaders()[group] === member));

async function choose(group: number, member: number): Promise<void> {
  while (leaders()[group] !== member) {
    cluster.lead(group, member);
    await pause(20);
  }
}

test.each(['threads', 'processes'] as const)(
  'on %s leaders are spread, and return',
  async (memory) => {
    await start({ memory, leaders: 'spread' });
    expect(leadingHosts()).toEqual([0, 1, 2]);
    await cluster.crash(1);
    await until(() => leaders()[1] !== undefined);
    expect(leadingHosts()).not.toContain(1);
    await cluster.restart(1, { fresh: true });
    await untilLedBy(0, 0, 0);
    expect(leadingHosts()).toEqual([0, 1, 2]);
  },
);

test('the choice of an operator holds, also for a first member that was down, until the leader fails', async () => {
  await start({ leaders: 'together' });
  await cluster.crash(0);
  await choose(0, 2);
  await cluster.restart(0);
  // Group 0 would be the first to return.
  await untilLedBy(2, 0, 0);
  await cluster.crash(2);
  await untilLedBy(0, 0, 0);
});
