/** A host looks once per group, and says that a state is lost only after two looks. */
import { expect, test } from 'vitest';
import { Lookout, type Observed } from '../../src/hosting/lookout.js';

const LOOK_US = 1_000_000;

/** A member of a group whose three members have all lost their memory, as `index` sees it. */
function agentOf(index: number, noted: boolean[] = []) {
  const peer = { seen: true, incarnation: 2, beats: 0, normal: false, promised: 0, logBallot: 0 };
  const peers = [0, 1, 2].map(() => ({ ...peer, delivered: 0, needs: 0 }));
  const member = {
    ...{ group: 7, index, replicas: 3, incarnation: 2, normal: false, promised: 0 },
    ...{ nextToDeliver: 0, needs: 0, log: { current: () => undefined } },
  };
  const rows = { peer: (other: number) => peers[other] };
  const suspicion = { isLive: () => true };
  const agent = {
    replica: { member, rows, suspicion },
    noteStateLost: (isLost: boolean) => noted.push(isLost),
  } as unknown as Observed;
  const beat = (): void => {
    for (const other of peers) other.beats += 2;
  };
  return { agent, peers, beat };
}

test('two looks find it, if the others were heard from in between', () => {
  const told: string[] = [];
  const noted: boolean[] = [];
  const { agent, beat } = agentOf(0, noted);
  const lookout = new Lookout([agent], (text) => told.push(text));
  lookout.look(LOOK_US);
  expect(lookout.lostGroups).toEqual([]);
  lookout.look(2 * LOOK_US);
  expect(lookout.lostGroups).toEqual([]);
  beat();
  lookout.look(2 * LOOK_US + 1);
  expect(lookout.lostGroups).toEqual([]);
  lookout.look(3 * LOOK_US);
  expect(lookout.lostGroups).toEqual([7]);
  expect(noted).toEqual([false, false, true]);
  beat();
  lookout.look(4 * LOOK_US);
  expect(told).toEqual([expect.stringMatching(/^the state of g7 is lost: /)]);
});

test('several members of a group on one host do not count as several looks', () => {
  const agents = [0, 1, 2].map((index) => agentOf(index));
  const lookout = new Lookout(
    agents.map(({ agent }) => agent),
    () => undefined,
  );
  for (const { beat } of agents) beat();
  lookout.look(LOOK_US);
  expect(lookout.lostGroups).toEqual([]);
});

test('a member that has restarted in between starts the looks anew', () => {
  const { agent, peers, beat } = agentOf(0);
  const lookout = new Lookout([agent], () => undefined);
  lookout.look(LOOK_US);
  beat();
  peers[1].incarnation++;
  lookout.look(2 * LOOK_US);
  expect(lookout.lostGroups).toEqual([]);
  beat();
  lookout.look(3 * LOOK_US);
  expect(lookout.lostGroups).toEqual([7]);
});
