/** The checks after a round: each accepts a correct history and reports a planted error. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { History, type TraceEvent } from 'tram-multicast/check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const {
  checkAcknowledged,
  checkAudits,
  checkFingerprints,
  checkPromise,
  checkRemains,
  checkVerdict,
  readFingerprints,
} = (await import(new URL('../../chaos/verify.mjs', import.meta.url).href)) as Checks;

interface Acknowledged {
  id: string;
  groups: number[];
  total?: number;
}

interface Checks {
  checkVerdict(history: History, isComplete: boolean): string[];
  checkAcknowledged(history: History, records: Acknowledged[]): string[];
  checkAudits(records: Acknowledged[], groups: number): string[];
  checkFingerprints(fingerprints: string[][]): string[];
  checkPromise(history: History, order: string, durability?: string): string[];
  readFingerprints(directory: string, groups: number, replicas: number): string[][];
  checkRemains(arena: string, clientPids: number[]): string[];
}

describe('checks of a history', () => {
  const groups: TraceEvent = { event: 'groups', groups: { 0: ['0/0', '0/1'], 1: ['1/0', '1/1'] } };
  const sent = (id: string, ...destinations: number[]): TraceEvent => ({
    event: 'multicast',
    id,
    client: 'c1',
    destinations,
    entryGroup: 0,
  });
  const delivered = (id: string, replica: string): TraceEvent => ({
    event: 'deliver',
    id,
    group: Number(replica[0]),
    replica,
  });
  const end: TraceEvent = { event: 'end', quiescent: true };

  function historyOf(...events: TraceEvent[]): History {
    const history = new History();
    for (const event of [groups, ...events]) history.add(event);
    return history;
  }

  const restored: TraceEvent[] = [
    { event: 'restart', replica: '0/1' },
    { event: 'restore', replica: '0/1', from: '0/0', count: 1 },
  ];
  const [first, second] = [delivered('a', '0/0'), delivered('a', '0/1')];

  test('accept a correct history', () => {
    const history = historyOf(sent('a', 0), first, second, ...restored, end);
    expect(checkVerdict(history, true)).toEqual([]);
    expect(checkAcknowledged(history, [{ id: 'a', groups: [0] }])).toEqual([]);
  });

  test('report an acknowledged message that is delivered nowhere, not everywhere, or lost again', () => {
    const record = { id: 'a', groups: [0] };
    expect(checkAcknowledged(historyOf(end), [record])).toEqual([
      '1 acknowledged messages are in no trace',
    ]);
    expect(checkAcknowledged(historyOf(sent('a', 0), first, end), [record])).toEqual([
      'a to groups 0 was acknowledged, and 0/1 has delivered it 0 times',
    ]);
    const lost = historyOf(sent('a', 0), first, second, restored[0], end);
    expect(checkAcknowledged(lost, [record])).toHaveLength(1);
    expect(checkVerdict(lost, true)[0]).toContain('validity is violated');
  });

  test('report a message that is delivered twice, or by a group that is no destination', () => {
    const record = { id: 'a', groups: [0] };
    const twice = historyOf(sent('a', 0), first, second, ...restored, second, end);
    expect(checkAcknowledged(twice, [record])).toEqual([
      'a to groups 0 was acknowledged, and 0/1 has delivered it 2 times',
    ]);
    const astray = historyOf(sent('a', 0), first, second, delivered('a', '1/0'), end);
    expect(checkAcknowledged(astray, [record])).toHaveLength(1);
    expect(checkAcknowledged(twice, [record, record])[0]).toBe('a was acknowledged twice');
  });

  test('accept an unknown property only after a round that was aborted', () => {
    const history = historyOf(sent('a', 0), first, second);
    expect(checkVerdict(history, true)[0]).toContain('validity is unknown');
    expect(checkVerdict(history, false)).toEqual([]);
  });

  test('report a trace that promises another order than the cluster', () => {
    expect(checkPromise(historyOf(), 'multicast')).toEqual([]);
    expect(checkPromise(historyOf(), 'strict')).toHaveLength(1);
  });

  test('report an era that promises another durability than the cluster', () => {
    const history = historyOf({ event: 'era', era: 1, durability: 'everySecond' });
    expect(checkPromise(history, 'multicast', 'everySecond')).toEqual([]);
    expect(checkPromise(history, 'multicast', 'always')).toEqual([
      'an era promises durability everySecond, not always',
    ]);
    expect(checkPromise(history, 'multicast')).toHaveLength(1);
  });

  test('report an audit with a wrong total', () => {
    const right = 2 * 8192 * 1000;
    const audits = [right, right + 1].map((total, i) => ({ id: `a${i}`, groups: [0, 1], total }));
    expect(checkAudits(audits, 2)).toEqual([`audit a1 found ${right + 1}, not ${right}`]);
  });
});

describe('checks of files and processes', () => {
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'tram-verify-'));
  });

  afterEach(() => rmSync(directory, { recursive: true }));

  test('fingerprints of a group must be equal and complete', () => {
    for (const member of [0, 1]) writeFileSync(join(directory, `0-${member}`), 'the same\n');
    writeFileSync(join(directory, '1-0'), 'one\n');
    writeFileSync(join(directory, '1-1'), 'other\n');
    const check = (groups: number, replicas: number) =>
      checkFingerprints(readFingerprints(directory, groups, replicas));
    expect(check(2, 2)).toHaveLength(1);
    expect(check(1, 2)).toEqual([]);
    expect(check(1, 3)[0]).toContain('none');
  });

  test('processes and memory that are left are reported', () => {
    expect(checkRemains(join(directory, 'nothing'), [])).toEqual([]);
    expect(checkRemains(directory, [process.pid])).toHaveLength(2);
  });
});
