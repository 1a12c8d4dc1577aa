/** A short run of `npm run chaos`, and that its checks would notice what they are there for. */
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { History, TraceEvent } from 'tram-multicast/check';
import { afterAll, describe, expect, test } from 'vitest';
import { Cluster, projectDirectory } from '../../../tram/test/built.js';

const execute = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'tram-chaos-test-'));
// The checks work on histories as the built package makes them.
const { History: BuiltHistory } = (await import(
  new URL('../../../tram/dist/check/index.js', import.meta.url).href
)) as { History: typeof History };
const { checkAcknowledged, checkAudits, checkFingerprints, checkRemains, checkVerdict } =
  (await import(new URL('../../chaos/verify.mjs', import.meta.url).href)) as Checks;

interface Acknowledged {
  id: string;
  groups: number[];
  total?: number;
}

interface Checks {
  checkVerdict(history: History, isComplete: boolean): string[];
  checkAcknowledged(history: History, records: Acknowledged[]): string[];
  checkAudits(records: Acknowledged[], groups: number): string[];
  checkFingerprints(directory: string, groups: number, replicas: number): string[];
  checkRemains(arena: string, clientPids: number[]): string[];
}

afterAll(() => rmSync(directory, { recursive: true }));

test('a short run with one fault of each kind', { timeout: 120_000 }, async () => {
  const script = join(projectDirectory, 'packages/lab/chaos/main.mjs');
  const options = '--seed 4 --trees base --hosts 3 --faults 12 --seconds 6 --clients 3 --json';
  const { stdout } = await execute(process.execPath, [script, ...options.split(' ')]);
  const { isFine, rounds } = JSON.parse(stdout);
  expect(rounds[0].complaints).toEqual([]);
  expect(isFine).toBe(true);
  expect(Object.keys(rounds[0].faults)).toHaveLength(12);
  expect(rounds[0].acknowledged).toBeGreaterThan(0);
  expect(rounds[0].audits).toBeGreaterThan(0);
});

describe('the checks', () => {
  const groups: TraceEvent = { event: 'groups', groups: { 0: ['0/0', '0/1'], 1: ['1/0', '1/1'] } };
  const sent = (id: string, ...destinations: number[]): TraceEvent => ({
    event: 'multicast',
    id,
    client: 'c1',
    destinations,
    entry: 0,
  });
  const delivered = (id: string, replica: string): TraceEvent => ({
    event: 'deliver',
    id,
    group: Number(replica[0]),
    replica,
  });
  const end: TraceEvent = { event: 'end', quiescent: true };

  function historyOf(...events: TraceEvent[]): History {
    const history = new BuiltHistory();
    for (const event of [groups, ...events]) history.add(event);
    return history;
  }

  const restored: TraceEvent[] = [
    { event: 'restart', replica: '0/1' },
    { event: 'restore', replica: '0/1', from: '0/0', count: 1 },
  ];
  const [first, second] = [delivered('a', '0/0'), delivered('a', '0/1')];

  test('are content with what is right', () => {
    const history = historyOf(sent('a', 0), first, second, ...restored, end);
    expect(checkVerdict(history, true)).toEqual([]);
    expect(checkAcknowledged(history, [{ id: 'a', groups: [0] }])).toEqual([]);
  });

  test('miss what was acknowledged and is delivered nowhere, or not everywhere, or lost again', () => {
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

  test('notice what is there twice, or at the wrong place', () => {
    const record = { id: 'a', groups: [0] };
    const twice = historyOf(sent('a', 0), first, second, ...restored, second, end);
    expect(checkAcknowledged(twice, [record])).toEqual([
      'a to groups 0 was acknowledged, and 0/1 has delivered it 2 times',
    ]);
    const astray = historyOf(sent('a', 0), first, second, delivered('a', '1/0'), end);
    expect(checkAcknowledged(astray, [record])).toHaveLength(1);
    expect(checkAcknowledged(twice, [record, record])[0]).toBe('a was acknowledged twice');
  });

  test('insist that everything could be judged, unless the round was given up', () => {
    const history = historyOf(sent('a', 0), first, second);
    expect(checkVerdict(history, true)[0]).toContain('validity is unknown');
    expect(checkVerdict(history, false)).toEqual([]);
  });

  test('add up what audits found', () => {
    const right = 2 * 8192 * 1000;
    const audits = [right, right + 1].map((total, i) => ({ id: `a${i}`, groups: [0, 1], total }));
    expect(checkAudits(audits, 2)).toEqual([`audit a1 found ${right + 1}, not ${right}`]);
  });

  test('compare what replicas have become', () => {
    for (const member of [0, 1]) writeFileSync(join(directory, `0-${member}`), 'the same\n');
    writeFileSync(join(directory, '1-0'), 'one\n');
    writeFileSync(join(directory, '1-1'), 'other\n');
    expect(checkFingerprints(directory, 2, 2)).toHaveLength(1);
    expect(checkFingerprints(directory, 1, 2)).toEqual([]);
    expect(checkFingerprints(directory, 1, 3)[0]).toContain('none');
  });

  test('find what is left behind', () => {
    expect(checkRemains(join(directory, 'nothing'), [])).toEqual([]);
    expect(checkRemains(directory, [process.pid])).toHaveLength(2);
  });
});

test('of a client that crashed its crash is known, though the next one crashed before it sent anything', async () => {
  const trace = join(directory, 'trace');
  const cluster = await Cluster.start({ groups: 1, memory: 'processes', clients: 1, trace });
  const script = fileURLToPath(new URL('../../../tram/test/other-process.mjs', import.meta.url));
  try {
    for (let client = 0; client < 2; client++) {
      const child = fork(script, [String(cluster.address)]);
      await once(child, 'message');
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  } finally {
    await cluster.close();
  }
  const events = readdirSync(trace).flatMap((name) =>
    readFileSync(join(trace, name), 'utf8').trimEnd().split('\n').filter(Boolean),
  );
  const crashes = events
    .map((line) => JSON.parse(line))
    .filter(({ event }) => event === 'client-crash');
  expect(crashes.map(({ client }) => client).sort()).toEqual(['c1', 'c2']);
});
