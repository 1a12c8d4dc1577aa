/** Recovery of a whole cluster, on a model of its journals: which messages each group begins the new era with. */
import { describe, expect, test } from 'vitest';
import { TramError } from '../../src/errors.js';
import type { Ask } from '../../src/journal/recovery-asks.js';
import { lackedFrom } from '../../src/journal/start.js';
import { codeOf, Era, FIRST, HostDisk, Model, states } from './model.js';

/** A root with two children; the second has a child of its own. */
const PARENTS = [-1, 0, 0, 2];
const GROUPS = PARENTS.map((_, group) => group);

/** A cluster in its first era. */
function started(parents: readonly number[] = PARENTS, hosts = 3): { model: Model; era: Era } {
  const model = new Model(parents, hosts);
  return { model, era: new Era(model, model.recover().era) };
}

/** The journals of all hosts have everything, except what `ends` says: by host, by group. */
function writeAll(model: Model, era: Era, ends: Record<number, Record<number, number>> = {}): void {
  for (const host of model.disks.keys()) {
    for (const group of era.logs.keys()) era.write(host, group, ends[host]?.[group]);
  }
}

describe('a cluster without journals', () => {
  test('opens era 1 on all hosts, without state', () => {
    const model = new Model(PARENTS);
    const recovered = model.recover();
    expect(recovered).toMatchObject({
      era: 1,
      isFirst: true,
      firstSession: expect.any(Number),
      losses: [],
    });
    for (const disk of model.disks) {
      expect([...disk.opened]).toEqual([1]);
      for (const group of GROUPS) expect(disk.eras.get(1)?.get(group)?.isFirst).toBe(true);
    }
  });

  test('does not start while a host is missing: its disk could be the only one that is not empty', () => {
    const model = new Model(PARENTS);
    model.down.add(1);
    expect(codeOf(() => model.recover())).toBe('TRAM_RECOVERY_REFUSED');
  });

  test('starts over after an attempt that reached only some of its groups', () => {
    const model = new Model(PARENTS);
    const isBeyond = (ask: Ask): boolean => ask.what === 'open' && ask.host === 1;
    expect(codeOf(() => model.recover({}, isBeyond))).toBe('TRAM_UNAVAILABLE');
    expect(model.disks[0].eras.has(1)).toBe(true);
    expect(model.recover()).toMatchObject({ era: 2, isFirst: true });
  });
});

describe('a cluster with journals', () => {
  test('begins the next era with everything, and sessions above all that were found', () => {
    const { model, era } = started();
    era.send(1, [1, 3]);
    era.send(2, [2]);
    era.send(3, [0, 3]);
    writeAll(model, era);
    const recovered = model.recover();
    expect(recovered).toMatchObject({ era: 2, isFirst: false, firstSession: 1 + 65_536 });
    expect(states(model, 2)).toEqual([[3], [1], [2], [1, 3]]);
  });

  test('has sessions above those of an era that has left none in the journals', () => {
    const { model } = started();
    const { firstSession } = model.recover();
    expect(model.recover().firstSession).toBeGreaterThan(firstSession + 65_000);
  });

  test('takes the longest journal of a group, and gives it to the hosts that have less', () => {
    const { model, era } = started([-1]);
    for (let id = 1; id <= 5; id++) era.send(id, [0]);
    writeAll(model, era, { 0: { 0: FIRST + 2 }, 1: { 0: FIRST + 5 }, 2: { 0: FIRST } });
    model.recover();
    for (const disk of model.disks) {
      expect([...disk.eras.get(2)!.get(0)!.readSnapshot()!]).toEqual([1, 2, 3, 4, 5]);
    }
  });

  test('cuts a child where its parent ends, and all that follows there', () => {
    const { model, era } = started();
    era.send(1, [1, 2]);
    era.send(2, [1, 2]);
    era.send(3, [1]);
    const rootEnd = FIRST + 1;
    writeAll(model, era, { 0: { 0: rootEnd }, 1: { 0: rootEnd }, 2: { 0: rootEnd } });
    model.recover();
    expect(states(model, 2)).toEqual([[], [1], [1], []]);
  });

  test('names a loss if a snapshot that counts lies beyond the cut, which never happens', () => {
    const { model, era } = started();
    era.send(1, [1, 2]);
    era.send(2, [1, 2]);
    const rootEnd = FIRST + 1;
    writeAll(model, era, { 0: { 0: rootEnd }, 1: { 0: rootEnd }, 2: { 0: rootEnd } });
    era.write(0, 1, FIRST + 2, FIRST + 2);
    expect(() => model.recover()).toThrow(/g1: the journal of host 0 has effects of messages/);
  });

  test('appends what a child lacks of its parent, also through two levels', () => {
    const { model, era } = started();
    era.send(1, [1, 3]);
    era.send(2, [3]);
    era.send(3, [0, 3]);
    era.send(4, [1, 3]);
    const ends = { 2: FIRST + 1, 3: FIRST + 1 };
    writeAll(model, era, { 0: ends, 1: ends, 2: ends });
    model.recover();
    expect(states(model, 2)).toEqual([[3], [1, 4], [], [1, 3, 4]]);
  });

  test('cuts and appends at once: what a grandchild had by way of a lost entry, it gets in its new place', () => {
    const { model, era } = started();
    era.send(1, [2, 3]);
    era.send(2, [1, 3]);
    era.send(3, [3]);
    // g2 has lost both of its entries. g0 still has message 2 for it. g3 had messages 1, 2 and 3.
    writeAll(model, era, { 0: { 2: FIRST }, 1: { 2: FIRST }, 2: { 2: FIRST } });
    model.recover();
    expect(states(model, 2)).toEqual([[], [2], [], [2]]);
  });

  test('with any majority of its hosts', () => {
    for (const absent of [0, 1, 2]) {
      const { model, era } = started();
      era.send(1, [1, 3]);
      writeAll(model, era);
      model.down.add(absent);
      model.recover();
      expect(states(model, 2)).toEqual([[], [1], [], [1]]);
    }
  });

  test('ignores what an older era has, on a host that missed the last one', () => {
    const { model, era } = started([-1]);
    era.send(1, [0]);
    writeAll(model, era);
    model.down.add(2);
    model.recover();
    const second = new Era(model, 2);
    second.send(2, [0]);
    second.write(0, 0);
    second.write(1, 0);
    model.down.clear();
    // The journal of host 2 is longer than the others, but of era 1.
    for (let id = 10; id < 20; id++) era.send(id, [0]);
    era.write(2, 0);
    model.down.add(0);
    expect(model.recover().era).toBe(3);
    expect(model.stateOf(3, 0)).toEqual([1, 2]);
  });

  test('counts members that share the journal of one host', () => {
    const { model, era } = started([-1, 0], 1);
    era.send(1, [0, 1]);
    writeAll(model, era);
    model.recover();
    expect(states(model, 2)).toEqual([[1], [1]]);
  });
});

describe('journals that have left entries out, and have snapshots at marks that do not count', () => {
  const BOTH = [0, 1];

  /** A root and a child. Messages 1, 3, 5, … go to both. The marks 1, 2, … have the ids 2, 4, … */
  function withMarks(count: number): { model: Model; era: Era } {
    const { model, era } = started([-1, 0]);
    for (let mark = 1; mark <= count; mark++) {
      era.send(2 * mark - 1, BOTH);
      era.send(2 * mark, BOTH, undefined, mark);
    }
    return { model, era };
  }

  test('begin from them if every group has one at the same mark', () => {
    // Neither group has f+1 journals without a gap, so nothing is stable.
    const { model, era } = withMarks(1);
    era.send(3, BOTH);
    writeAll(model, era, {
      0: { 0: FIRST, 1: FIRST },
      1: { 0: FIRST, 1: FIRST },
      2: { 0: FIRST, 1: FIRST },
    });
    for (const group of BOTH) {
      for (const host of [0, 1]) era.writePending(host, group, 1);
    }
    model.down.add(1);
    model.recover();
    expect(states(model, 2)).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  test('begin with the entries after them too, and give the child what the parent has', () => {
    const { model, era } = withMarks(1);
    era.send(3, BOTH);
    era.send(4, [1]);
    writeAll(model, era, {
      0: { 0: FIRST, 1: FIRST },
      1: { 0: FIRST, 1: FIRST },
      2: { 0: FIRST, 1: FIRST },
    });
    era.writePending(0, 0, 1, FIRST + 3);
    era.writePending(1, 1, 1);
    model.recover();
    expect(states(model, 2)).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ]);
  });

  test('ignore one if some group does not reach its mark', () => {
    const { model, era } = withMarks(2);
    const end = FIRST + 2;
    writeAll(model, era, { 0: { 0: end, 1: end }, 1: { 0: end, 1: end }, 2: { 0: end, 1: end } });
    // It has replaced message 3, which the child lacks.
    era.writePending(0, 0, 2);
    model.recover();
    expect(states(model, 2)).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  test('ignore one if a group reaches its mark only by one that is ignored', () => {
    // The root can begin at mark 2 and has mark 3, its child has only mark 4: it does not reach mark 2.
    const { model, era } = withMarks(4);
    writeAll(model, era, {
      0: { 0: FIRST, 1: FIRST },
      1: { 0: FIRST, 1: FIRST },
      2: { 0: FIRST, 1: FIRST },
    });
    era.writePending(0, 0, 2, era.indexAfter(0, 3));
    era.writePending(0, 1, 4);
    model.recover();
    expect(states(model, 2)).toEqual([[], []]);
  });

  test('begin from one whose mark another group reaches by its entries', () => {
    const { model, era } = withMarks(2);
    writeAll(model, era, { 0: { 1: FIRST }, 1: { 1: FIRST }, 2: { 1: FIRST } });
    era.writePending(2, 1, 2);
    model.recover();
    expect(states(model, 2)).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ]);
  });
});

test('a host replays the longest sequence that it has itself, whether it counts or not', () => {
  const { model, era } = started([-1]);
  for (let id = 1; id <= 3; id++) era.send(id, [0], undefined, id);
  era.write(0, 0, FIRST + 2);
  era.writePending(0, 0, 2, FIRST + 3);
  const counted = model.disks[0].eras.get(era.era)!.get(0)!;
  const own = [counted, ...counted.pending];
  const plan = {
    group: 0,
    fromEra: 1,
    source: 1,
    keepFrom: FIRST + 2,
    keepBelow: FIRST + 3,
    append: [],
  };
  for (const sequences of [own, own.toReversed()])
    expect(lackedFrom(plan, sequences)).toBe(FIRST + 3);
  expect(lackedFrom(plan, [counted])).toBe(FIRST + 2);
  expect(lackedFrom({ ...plan, keepBelow: FIRST + 1, keepFrom: FIRST }, own)).toBe(FIRST + 1);
  expect(lackedFrom({ ...plan, keepFrom: FIRST + 4, keepBelow: FIRST + 5 }, own)).toBeUndefined();
});

describe('attempts that end early', () => {
  test('one that reached a minority with its promise shares its number with no other', () => {
    const { model, era } = started();
    era.send(1, [1, 2]);
    writeAll(model, era);
    const isBeyond = (ask: Ask): boolean => ask.what === 'promise' && ask.era > 0 && ask.host > 0;
    expect(codeOf(() => model.recover({}, isBeyond))).toBe('TRAM_UNAVAILABLE');
    expect(model.disks.map(({ promised }) => promised)).toEqual([2, 1, 1]);
    expect(model.recover().era).toBe(3);
  });

  test('a power cut between the opening snapshots of two groups: the era that all groups have is used', () => {
    const { model, era } = started();
    era.send(1, [1, 2]);
    writeAll(model, era);
    expect(codeOf(() => model.recover({}, ({ what }) => what === 'opened'))).toBe(
      'TRAM_UNAVAILABLE',
    );
    // The opening snapshots of g1 were not durable yet.
    for (const disk of model.disks) disk.eras.get(2)!.delete(1);
    expect(model.recover().era).toBe(3);
    expect(states(model, 3)).toEqual([[], [1], [1], []]);
  });

  test('an era that is complete, but was not marked, is used', () => {
    const { model, era } = started();
    era.send(1, [1, 2]);
    writeAll(model, era);
    expect(codeOf(() => model.recover({}, ({ what }) => what === 'opened'))).toBe(
      'TRAM_UNAVAILABLE',
    );
    for (const disk of model.disks) disk.eras.delete(1);
    expect(model.recover().era).toBe(3);
    expect(states(model, 3)).toEqual([[], [1], [1], []]);
  });

  test('a host that has withdrawn its promise, to join an era that runs, ends the attempt', () => {
    // 1. Host 1 promises the new era. Then it joins the old one, which hosts 0 and 2 run.
    // 2. Host 0 loses its memory, and is the last to promise. Hosts 1 and 2 go on, and acknowledge message 2.
    //    Harm: the new era begins on host 0 without message 2. A later recovery prefers it to the old one.
    const { model, era } = started();
    era.send(1, [1, 2]);
    writeAll(model, era);
    const recovery = model.recovery();
    let step = recovery.next();
    while (!step.done && step.value[0].what !== 'survey') {
      step = recovery.next(step.value.map((ask) => model.answer(ask)));
    }
    model.disks[1].promised++;
    const asks = step.value as readonly Ask[];
    expect(() => recovery.next(asks.map((ask) => model.answer(ask)))).toThrow(
      expect.objectContaining({ code: 'TRAM_UNAVAILABLE' }),
    );
  });

  test('of two coordinators at once, at most one opens its era, in whatever order their asks are done', () => {
    for (let order = 0; order < 256; order++) {
      const { model, era } = started();
      era.send(1, [1, 2]);
      writeAll(model, era);
      const turns = Array.from({ length: 8 }, (_, i) => (order >> i) & 1);
      const opened = race(model, turns);
      const eras = opened.filter((recovered) => recovered !== undefined);
      expect(new Set(eras).size).toBe(eras.length);
      expect(eras.length).toBeGreaterThan(0);
      expect(states(model, Math.max(...eras))).toEqual([[], [1], [1], []]);
    }
  });
});

/** Runs two recoveries step by step, in these turns and then in alternation. Returns the eras that they have opened. */
function race(model: Model, turns: readonly number[]): (number | undefined)[] {
  const recoveries = [model.recovery(), model.recovery()];
  const steps = recoveries.map((recovery) => recovery.next());
  const opened: (number | undefined)[] = [undefined, undefined];
  const running = new Set([0, 1]);
  for (let turn = 0; running.size > 0; turn++) {
    const who = turn < turns.length ? turns[turn] : turn & 1;
    const step = steps[who];
    if (!running.has(who)) continue;
    if (step.done) {
      opened[who] = step.value.era;
      running.delete(who);
      continue;
    }
    try {
      steps[who] = recoveries[who].next(step.value.map((ask) => model.answer(ask)));
    } catch (error) {
      if (!(error instanceof TramError) || error.code !== 'TRAM_UNAVAILABLE') throw error;
      running.delete(who);
    }
  }
  return opened;
}

describe('journals that are missing', () => {
  /** Three hosts; the disks of these are replaced by empty ones. */
  function withEmptyDisks(...hosts: number[]): Model {
    const { model, era } = started();
    era.send(1, [1, 3]);
    era.send(2, [3]);
    writeAll(model, era);
    for (const host of hosts) model.disks[host] = new HostDisk();
    return model;
  }

  test('one empty disk of three: the host gets everything from the others', () => {
    const model = withEmptyDisks(0);
    model.recover();
    expect(states(model, 2)).toEqual([[], [1], [], [1, 2]]);
    expect([...model.disks[0].eras.get(2)!.get(3)!.readSnapshot()!]).toEqual([1, 2]);
  });

  test('an empty disk is no journal: with another host down, what they had may be lost', () => {
    const model = withEmptyDisks(0);
    model.down.add(1);
    expect(codeOf(() => model.recover())).toBe('TRAM_RECOVERY_REFUSED');
  });

  test('two empty disks of three: refused, and each group and host is named', () => {
    const model = withEmptyDisks(1, 2);
    expect(() => model.recover()).toThrow(
      /g0: the journals of 1 of its 3 members are there, and it needs 2; host 1 has none of it, host 2 has none of it: messages that only the missing journals have are lost(.|\n)*g3: /,
    );
  });

  test('all disks were replaced, and one host had taken part in an era since: this is no first start', () => {
    const model = withEmptyDisks(0, 1, 2);
    model.disks[0].opened.add(1);
    expect(codeOf(() => model.recover())).toBe('TRAM_RECOVERY_REFUSED');
    const { era } = model.recover({ acceptLoss: true });
    expect(states(model, era)).toEqual([[], [], [], []]);
  });

  describe('where a snapshot that counts was taken at a mark', () => {
    /** All groups have message 1, then mark 1, message 3 and mark 2. What the root had before mark 1 is replaced. */
    function replaced(parents: readonly number[]): { model: Model; era: Era } {
      const { model, era } = started(parents);
      const all = parents.map((_, group) => group);
      for (const [id, mark] of [
        [1, 0],
        [2, 1],
        [3, 0],
        [4, 2],
      ]) {
        era.send(id, all, undefined, mark);
      }
      const index = era.indexAfter(0, 1)!;
      for (const host of model.disks.keys()) {
        era.write(host, 0, index, index);
        for (const group of all.slice(1)) era.write(host, group, FIRST);
      }
      return { model, era };
    }

    /** Hosts 1 and 2 have nothing of the group any more. */
    function remove(model: Model, group: number): void {
      for (const host of [1, 2]) model.disks[host].eras.get(1)!.delete(group);
    }

    function recoverWithLoss(model: Model): { states: unknown; losses: string[] } {
      const losses: string[] = [];
      const onLoss = (lines: readonly string[]): void => void losses.push(...lines);
      const { era } = model.recover({ acceptLoss: true, onLoss });
      return { states: states(model, era), losses };
    }

    test('a group whose journals are missing takes nothing from the others', () => {
      // The mark is complete in g0 and g1, and g2 has lost its journals that have reached it.
      const { model, era } = replaced([-1, 0, 1]);
      for (const host of [0, 1]) era.writePending(host, 1, 1);
      remove(model, 2);
      const found = recoverWithLoss(model);
      expect(found.states).toEqual([[1, 2], [1, 2], []]);
      expect(found.losses).toEqual([expect.stringMatching(/^g2: the journals of 1 of its 3/)]);
    });

    test('a child is named that lacks what was replaced, because its parent lacks what follows', () => {
      const { model, era } = replaced([-1, 0]);
      for (const host of [0, 1]) era.writePending(host, 1, 2);
      remove(model, 0);
      const found = recoverWithLoss(model);
      expect(found.states).toEqual([[1, 2], []]);
      expect(found.losses).toEqual([
        expect.stringMatching(/^g0: the journals of 1 of its 3/),
        expect.stringMatching(/^g1: the journal of host 0 has effects of messages .* not used$/),
      ]);
    });

    test('if journals of all groups are missing, what is there fits together', () => {
      const { model, era } = replaced([-1, 0]);
      era.write(0, 0, FIRST + 4);
      era.writePending(0, 1, 2);
      for (const group of [0, 1]) remove(model, group);
      expect(recoverWithLoss(model).states).toEqual([
        [1, 2, 3, 4],
        [1, 2, 3, 4],
      ]);
    });
  });

  test('with loss accepted, it goes on with what is there, and says so first', () => {
    const model = withEmptyDisks(1, 2);
    const losses: string[] = [];
    const onLoss = (lines: readonly string[]): void => void losses.push(...lines);
    const { era } = model.recover({ acceptLoss: true, onLoss });
    expect(losses).toHaveLength(4);
    expect(states(model, era)).toEqual([[], [1], [], [1, 2]]);
  });

  test.each([
    ['the coordinator', { acceptLoss: true }],
    ['another host', {}],
  ])(
    'with loss accepted by %s, no era is used twice, although the disks are gone that knew it',
    (_, settings) => {
      // 1. Hosts 1 and 2 promise era 2, and host 2 may open it. Host 1 loses its disk, and host 2 is missing.
      // 2. Loss is accepted. Host 0 knows nothing of era 2.
      //    Harm: it opens another era 2. Host 2 comes back and joins that with its own opening snapshots.
      const model = withEmptyDisks();
      model.down.add(0);
      const isOpen = ({ what, host }: Ask): boolean => what === 'open' && host === 1;
      expect(codeOf(() => model.recover({}, isOpen))).toBe('TRAM_UNAVAILABLE');
      model.down.delete(0);
      model.down.add(2);
      model.disks[1] = new HostDisk();
      model.disks[1].acceptsLoss = true;
      expect(model.recover(settings).era).toBeGreaterThan(2);
    },
  );

  test('loss that is accepted after the era was chosen does not count', () => {
    const model = withEmptyDisks(1, 2);
    const { disks } = model;
    const accept = ({ what }: Ask): boolean => {
      if (what === 'survey') disks[0].acceptsLoss = true;
      return false;
    };
    expect(codeOf(() => model.recover({}, accept))).toBe('TRAM_RECOVERY_REFUSED');
    expect(model.recover().losses).toHaveLength(4);
  });

  test('an operator may accept it at one host', () => {
    const model = withEmptyDisks(1, 2);
    model.disks[0].acceptsLoss = true;
    expect(model.recover().losses).toHaveLength(4);
  });

  test('a group without any journal begins without state; its children keep what came through it', () => {
    const model = withEmptyDisks();
    for (const disk of model.disks) disk.eras.get(1)!.delete(2);
    const { era, losses } = model.recover({ acceptLoss: true });
    expect(losses).toEqual([
      expect.stringMatching(/^g2: .*all its state is lost/),
      expect.stringMatching(/^g3: its state has effects of messages that its parent g2 has lost/),
    ]);
    expect(states(model, era)).toEqual([[], [1], [], [1, 2]]);
  });

  test('children drop what follows messages that a parent has lost, and keep a snapshot that has them', () => {
    const { model, era } = started();
    era.send(1, [1, 3]);
    era.send(2, [1, 3]);
    era.send(3, [3]);
    writeAll(model, era, { 0: { 0: FIRST + 1 } });
    era.write(0, 3, FIRST + 3, FIRST + 2);
    model.disks[1] = new HostDisk();
    model.disks[2] = new HostDisk();
    const { era: next, losses } = model.recover({ acceptLoss: true });
    expect(states(model, next)).toEqual([[], [1], [], [1, 2]]);
    expect(losses.slice(4)).toEqual([
      expect.stringMatching(/^g1: its last 1 entries are dropped/),
      expect.stringMatching(/^g2: its last 1 entries are dropped/),
      expect.stringMatching(/^g3: its state has effects of messages that its parent g2 has lost/),
      expect.stringMatching(/^g3: its last 1 entries are dropped/),
    ]);
  });

  test('journals of two clusters are not mixed', () => {
    const model = withEmptyDisks();
    model.disks[2].clusterId = 'another';
    expect(codeOf(() => model.recover())).toBe('TRAM_JOURNAL_MISMATCH');
  });
});
