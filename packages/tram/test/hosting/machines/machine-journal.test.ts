/** When a host that runs finds that its memory is of no use any more. What its replicas know is given. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type MachinesConfig, resolveConfig } from '../../../src/config/config.js';
import { ClusterContext } from '../../../src/hosting/cluster-context.js';
import type { Host } from '../../../src/hosting/host.js';
import { MachineJournal } from '../../../src/hosting/machines/machine-journal.js';
import { standingIn } from '../../../src/hosting/machines/standing.js';
import { HOST, STAGE } from '../../../src/memory/arena.js';
import type { Network } from '../../../src/memory/machines/network.js';
import { threadsArena } from '../../../src/memory/threads.js';

const SELF = 0;
const ERA = 3;
const SECOND_US = 1_000_000;

let folder: string;
let context: ClusterContext;
let journal: MachineJournal;
let line: Int32Array;
const network = { newestEra: ERA, isConnected: (_host: number) => true };

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tram-machine-journal-'));
  network.newestEra = ERA;
  network.isConnected = () => true;
  const config = resolveConfig(
    {
      memory: 'machines',
      groups: 2,
      secret: 'cluster.secret',
      durability: 'always',
      journal: folder,
      hosts: [2, 3, 4].map((end) => ({ name: `h${end}`, address: `127.0.0.${end}`, port: 7400 })),
    },
    { check: 7, tail: 8 },
  ) as MachinesConfig;
  context = ClusterContext.onMachines(config, new Uint8Array(32), (map) => ({
    arena: threadsArena(new SharedArrayBuffer(map.words * 4)),
    network: network as unknown as Network,
  }));
  line = context.arena.words.subarray(context.map.host(SELF));
  line[HOST.era] = ERA;
  const openHost = (): never => {
    throw new Error('no era is opened here');
  };
  journal = new MachineJournal(context, config, SELF, () => undefined, openHost);
});

afterEach(() => rmSync(folder, { recursive: true }));

function follow(lostGroups: number[], quorateGroups: number[], nowUs: number): string | undefined {
  return journal.follow({ lostGroups, quorateGroups } as unknown as Host, nowUs);
}

test('it tells the others which groups have a quorum', () => {
  expect(follow([], [1], SECOND_US)).toBeUndefined();
  const { stage, era, hasGroup } = standingIn(line)!;
  expect([stage, era, hasGroup(0), hasGroup(1)]).toEqual([STAGE.running, ERA, false, true]);
});

test('if the members that run lack the state', () => {
  expect(follow([0, 1], [], SECOND_US)).toBe('the members of g0, g1 that run lack the state');
});

test('if the cluster was recovered without it', () => {
  network.newestEra = ERA + 1;
  expect(follow([], [0, 1], SECOND_US)).toBe(
    'the cluster was recovered without this host, into era 4',
  );
});

test('if enough members have been connected for a minute, and are no quorum', () => {
  expect(follow([], [0], SECOND_US)).toBeUndefined();
  expect(follow([], [0], 60 * SECOND_US)).toBeUndefined();
  expect(follow([], [0], 61 * SECOND_US)).toBe(
    "enough members of g1 are connected, and can't go on",
  );
});

test('not while too few are connected', () => {
  network.isConnected = () => false;
  expect(follow([], [], SECOND_US)).toBeUndefined();
  expect(follow([], [], 120 * SECOND_US)).toBeUndefined();
});

test('a quorum in between ends the wait', () => {
  expect(follow([], [], SECOND_US)).toBeUndefined();
  expect(follow([], [0, 1], 30 * SECOND_US)).toBeUndefined();
  expect(follow([], [], 61 * SECOND_US)).toBeUndefined();
});
