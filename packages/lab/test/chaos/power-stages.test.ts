/** Into which stage of a start a power cut falls, as the journals show it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileDisk } from 'tram-multicast/internal/journal/disk.js';
import { eraFolder } from 'tram-multicast/internal/journal/format.js';
import { markOpened, writeIdentity } from 'tram-multicast/internal/journal/identity.js';
import { writeOpening } from 'tram-multicast/internal/journal/snapshot-file.js';
import { expect, onTestFinished, test } from 'vitest';

interface Plan {
  planPower(options: object): { cuts: readonly { during: string; stage: string }[] };
}

interface Stages {
  STAGES: readonly string[];
  StartWatch: new (
    journal: string,
    cluster: { hosts: number; groups: number; isFetching: () => boolean },
  ) => { found(): string };
}

const chaos = (name: string) => import(new URL(`../../chaos/${name}`, import.meta.url).href);
const { planPower } = (await chaos('power-plan.mjs')) as Plan;
const { STAGES, StartWatch } = (await chaos('power-stages.mjs')) as Stages;

const clusterId = '0123456789abcdef0123456789abcdef';
const HOSTS = [0, 1];
const GROUPS = [0, 1];
const BEFORE = 3;
const ERA = 4;

test('the stages of a start follow each other', () => {
  const journal = mkdtempSync(join(tmpdir(), 'tram-stages-'));
  onTestFinished(() => rmSync(journal, { recursive: true }));
  const disks = HOSTS.map((host) => new FileDisk(join(journal, `host-${host}`)));
  const promise = (host: number, promisedEra: number) =>
    writeIdentity(disks[host], { clusterId, host, promisedEra, firstSession: 1 });
  const open = (host: number, group: number) => {
    disks[host].makeFolder(eraFolder(ERA));
    writeOpening(disks[host], { clusterId, era: ERA, group, index: 2 });
  };
  for (const host of HOSTS) {
    disks[host].makeFolder(eraFolder(BEFORE));
    promise(host, BEFORE);
    markOpened(disks[host], BEFORE);
  }
  let fetches = false;
  const watch = new StartWatch(journal, {
    hosts: HOSTS.length,
    groups: GROUPS.length,
    isFetching: () => fetches,
  });
  const stages = [watch.found()];
  const afterEach = (...acts: (() => void)[]) => {
    for (const act of acts) {
      act();
      stages.push(watch.found());
    }
  };
  afterEach(
    () => promise(1, ERA),
    () => promise(0, ERA),
    () => {
      fetches = true;
    },
    () => open(0, 0),
    () => {
      open(0, 1);
      open(1, 0);
    },
    () => open(1, 1),
    () => markOpened(disks[1], ERA),
    () => markOpened(disks[0], ERA),
  );
  expect(stages).toEqual([
    'starting',
    'promising',
    'planning',
    'fetching',
    'opening',
    'opening',
    'marking',
    'marking',
    'open',
  ]);
});

test('the cuts of a plan fall into all stages', () => {
  const options = { durability: 'always', order: 'strict', tree: 'depth', cuts: 60 } as const;
  const stagesOf = (memory: 'machines' | 'processes') => {
    const { cuts } = planPower({ ...options, memory, seed: 1 });
    return new Set(cuts.flatMap((cut) => (cut.during === 'start' ? cut.stage : [])));
  };
  expect(stagesOf('machines')).toEqual(new Set(STAGES));
  expect(stagesOf('processes')).toEqual(new Set(STAGES.filter((stage) => stage !== 'fetching')));
});
