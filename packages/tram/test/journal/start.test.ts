/** The replicas of a host begin from its journal together, and the host has something else to do meanwhile. */
import { expect, test } from 'vitest';
import { JournalReader } from '../../src/journal/reader.js';
import { replayTogether, startWithinEra } from '../../src/journal/start.js';
import type { Replica } from '../../src/protocol/replica.js';
import { Bench } from './bench.js';
import { MemoryDisk } from './memory-disk.js';

const GROUPS = [0, 1];
const MEMBERS = 2;

test('the host gets its turn after each snapshot that a replica restores, and after each stretch', () => {
  const disk = new MemoryDisk();
  const bench = Bench.open(disk, { groups: GROUPS.length });
  for (const group of GROUPS) bench.add(group, 8, 8);
  bench.settle();
  const reader = new JournalReader(disk);
  let calls = 0;
  const call = (): void => {
    calls++;
  };
  /** Only counts what it is asked to do. */
  const replicaOf = (group: number): Replica => {
    const replay = { deliver: call, end: () => undefined };
    const begin = (): typeof replay => {
      call();
      return replay;
    };
    return { member: { group }, begin } as unknown as Replica;
  };
  const replicas = GROUPS.flatMap((group) =>
    Array.from({ length: MEMBERS }, () => replicaOf(group)),
  );
  const starts = GROUPS.map((group) => startWithinEra(reader.sequence(1, group)!));
  const turns: { calls: number; replayed: number }[] = [];
  for (const replayed of replayTogether(starts, replicas)) {
    turns.push({ calls, replayed });
    calls = 0;
  }
  expect(turns).toEqual([
    ...replicas.map(() => ({ calls: 1, replayed: 0 })),
    { calls: MEMBERS, replayed: 2 },
    { calls: MEMBERS, replayed: 4 },
  ]);
});
