/**
 * Recoveries of clusters on a model of their journals, after random runs: what the journals have, which of their snapshots
 * count, and which marks are complete, follows from the definitions.
 */
import { describe, test } from 'vitest';
import { codeOf, Era, FIRST, idOf, isFor, Model, nextFromParent, states } from './model.js';

describe('after random runs, power cuts, and attempts that end early', () => {
  test.each([1, 3])(
    'nothing acknowledged is lost, and messages are in all their groups, on %i hosts',
    (hosts) => {
      for (let seed = 1; seed <= 150; seed++) attempt(seed, hosts);
    },
  );

  function attempt(seed: number, hosts: number): void {
    const random = randomFrom(seed);
    const groups = 1 + random(5);
    const parents = Array.from({ length: groups }, (_, group) =>
      group === 0 ? -1 : random(group),
    );
    const model = new Model(parents, hosts);
    const sent = new Map<number, readonly number[]>();
    const acknowledged = new Set<number>();
    let { era: number } = model.recover();
    for (let round = 0; round < 3; round++) {
      const era = new Era(model, number);
      run(model, era, random, sent, acknowledged);
      for (let tries = random(3); tries > 0; tries--) {
        let left = random(40);
        codeOf(() => model.recover({}, () => left-- === 0));
      }
      model.down.clear();
      if (hosts === 3 && random(2) === 0) model.down.add(random(3));
      number = model.recover().era;
      model.down.clear();
      const what = complaint(model, number, sent, acknowledged);
      if (what !== undefined) throw new Error(`seed ${seed}, round ${round}: ${what}`);
    }
  }

  function run(
    model: Model,
    era: Era,
    random: (below: number) => number,
    sent: Map<number, readonly number[]>,
    acknowledged: Set<number>,
  ): void {
    const groups = model.overlay.groups;
    /** Forwarding stops here, as it does at any moment. */
    const stalled = Array.from({ length: groups }, () => random(4) === 0);
    let marks = 0;
    for (let count = random(16); count > 0; count--) {
      const id = sent.size + 1;
      const isMark = random(3) === 0;
      const destinations = Array.from({ length: groups }, (_, group) => group).filter(
        () => isMark || random(2) === 0,
      );
      if (destinations.length === 0) continue;
      sent.set(id, destinations);
      const stalls = count < 4;
      if (isMark) marks++;
      const reaches = (group: number): boolean => !stalls || !stalled[group];
      era.send(id, destinations, reaches, isMark ? marks : 0);
    }
    const hosts = model.disks
      .map((_, host) => host)
      .filter((host) => model.disks[host].eras.has(era.era));
    for (const host of hosts) {
      for (const group of era.logs.keys()) writeWithGaps(era, host, group, random, marks);
    }
    countComplete(model, era, hosts, random, marks);
    countStable(model, era, hosts, random);
    const { recoverable } = watermarks(model, era, hosts);
    for (const [id, destinations] of sent) {
      const isAcknowledged = destinations.every((group) => {
        const at = era.logs[group].findIndex((entry) => idOf(entry) === id);
        return at >= 0 && FIRST + at < recoverable[group];
      });
      if (isAcknowledged) acknowledged.add(id);
    }
  }

  /** The journal of a host has a part of a group's entries. It may have left some out, again and again, and gone on at marks. */
  function writeWithGaps(
    era: Era,
    host: number,
    group: number,
    random: (below: number) => number,
    marks: number,
  ): void {
    const last = FIRST + era.logs[group].length;
    let end = FIRST + random(last - FIRST + 1);
    era.write(host, group, end);
    for (let mark = 1; mark <= marks; mark++) {
      const index = era.indexAfter(group, mark);
      if (index === undefined || index <= end || random(3) > 0) continue;
      end = index + random(last - index + 1);
      era.writePending(host, group, mark, end);
    }
  }

  /** The last complete mark is told to some: then their snapshots at it, or before it, count. */
  function countComplete(
    model: Model,
    era: Era,
    hosts: readonly number[],
    random: (below: number) => number,
    marks: number,
  ): void {
    const sequences = (host: number, group: number) => {
      const counted = model.disks[host].eras.get(era.era)!.get(group)!;
      return [counted, ...counted.pending];
    };
    const holds = (host: number, group: number, mark: number): boolean =>
      hosts.includes(host) &&
      sequences(host, group).some((one) => one.mark <= mark && one.lastMark >= mark);
    const isComplete = (mark: number): boolean =>
      [...era.logs.keys()].every(
        (group) =>
          model.shape.hostsOf(group).filter((host) => holds(host, group, mark)).length >= 2,
      );
    const complete = Array.from({ length: marks }, (_, i) => marks - i).find(isComplete) ?? 0;
    for (const host of hosts) {
      for (const group of era.logs.keys()) {
        const found = sequences(host, group).findLast(({ mark }) => mark <= complete)!;
        if (random(2) === 0) count(model, era, host, group, found.snapshotIndex);
      }
    }
  }

  /** The snapshot at this index counts. Those that wait and are later stay. */
  function count(model: Model, era: Era, host: number, group: number, index: number): void {
    const before = model.disks[host].eras.get(era.era)!.get(group)!;
    const found = [before, ...before.pending].findLast(
      ({ snapshotIndex, end }) => snapshotIndex <= index && index <= end,
    )!;
    era.write(host, group, found.end, index);
    for (const { snapshotIndex, mark, end } of before.pending) {
      if (snapshotIndex > index) era.writePending(host, group, mark, end);
    }
  }

  /** Each group tells some of its members what is stable: then a snapshot up to there counts. */
  function countStable(
    model: Model,
    era: Era,
    hosts: readonly number[],
    random: (below: number) => number,
  ): void {
    const { recoverable, reached } = watermarks(model, era, hosts);
    for (const [group, log] of era.logs.entries()) {
      let stable = recoverable[group];
      for (const child of model.overlay.children(group)) {
        const first = log.findIndex(
          (entry, i) =>
            FIRST + i >= reached[child] &&
            groupsBelow(model, child).some((below) => isFor(entry, below)),
        );
        if (first >= 0) stable = Math.min(stable, FIRST + first);
      }
      for (const host of hosts) {
        const { snapshotIndex, end, pending } = model.disks[host].eras.get(era.era)!.get(group)!;
        const waiting = pending.filter((one) => one.snapshotIndex <= stable);
        const latest = Math.min(stable, end);
        const regular = snapshotIndex + random(Math.max(0, latest - snapshotIndex) + 1);
        const chosen = random(2) === 0 ? waiting.at(-1)?.snapshotIndex : undefined;
        count(model, era, host, group, chosen ?? regular);
      }
    }
  }

  /** By group: what is recoverable, and of the parent's entries, what is durable. */
  function watermarks(
    model: Model,
    era: Era,
    hosts: readonly number[],
  ): { recoverable: number[]; reached: number[] } {
    const recoverable: number[] = [];
    const reached: number[] = [];
    for (const [group, log] of era.logs.entries()) {
      const ends = model.shape
        .hostsOf(group)
        .map((host) =>
          hosts.includes(host) ? model.disks[host].eras.get(era.era)!.get(group)!.end : 0,
        );
      const durable = ends.sort((one, other) => other - one)[1];
      const parent = model.overlay.parent(group);
      let end = FIRST;
      while (
        end < durable &&
        (parent < 0 || nextFromParent(log.slice(0, end + 1 - FIRST)) <= recoverable[parent])
      )
        end++;
      recoverable[group] = end;
      reached[group] = nextFromParent(log.slice(0, durable - FIRST));
    }
    return { recoverable, reached };
  }

  /** What is wrong; undefined if nothing is. */
  function complaint(
    model: Model,
    era: number,
    sent: ReadonlyMap<number, readonly number[]>,
    acknowledged: ReadonlySet<number>,
  ): string | undefined {
    const found = states(model, era);
    for (const [group, state] of found.entries()) {
      if (new Set(state).size < state.length) return `g${group} has a message twice`;
    }
    for (const [id, destinations] of sent) {
      const having = destinations.filter((group) => found[group].includes(id));
      if (having.length === destinations.length) continue;
      if (having.length > 0) return `g${having[0]} has message ${id}, and others have not`;
      if (acknowledged.has(id)) return `message ${id} was acknowledged, and is lost`;
    }
    for (const one of found) {
      for (const other of found) {
        const common = one.filter((id) => other.includes(id));
        const there = other.filter((id) => one.includes(id));
        if (common.some((id, i) => id !== there[i])) return 'two groups differ in their order';
      }
    }
    return undefined;
  }
});

/** The group itself included. */
function groupsBelow(model: Model, root: number): number[] {
  return model.overlay.parents
    .map((_, group) => group)
    .filter((group) => model.overlay.pathTo(group).includes(root));
}

/** Numbers below a bound, the same for the same seed. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed * 2654435761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}
