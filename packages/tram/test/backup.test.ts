/** A backup of a running cluster, under load, is one consistent cut, and a cluster that starts from it goes on there. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { type Client, Cluster, decode, type StartOptions } from './built.js';
import { MAIN } from './cli/command-line.js';

const GROUPS = 3;
const BALANCE = 1000;
const CLIENTS = 3;
/** A bank: each group has one account. A message from a group to another moves 1, one from a group to itself asks. */
const BANK = `
  let balance = ${BALANCE};
  let transfers = 0;
  const state = () => new TextEncoder().encode(balance + ' ' + transfers);
  export function deliver({ payload: [from, to] }, { group }) {
    if (from === to) return state();
    balance += group === from ? -1 : 1;
    transfers++;
    return state();
  }
  export const snapshot = state;
  export const restore = (bytes) => {
    [balance, transfers] = new TextDecoder().decode(bytes).split(' ').map(Number);
  };
`;

/** @param journal  where the journals are */
function optionsFor(memory: 'threads' | 'processes', journal: string): StartOptions {
  return {
    ...{ memory, groups: GROUPS, clients: CLIENTS + 2, callsMax: 4 },
    service: `data:text/javascript,${encodeURIComponent(BANK)}`,
    // Snapshots are taken, and segments used again, while the backup reads them.
    ...{ durability: 'everySecond', journal, snapshotBytes: 4096 },
  };
}

function makeDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'tram-backup-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return directory;
}

async function startCluster(options: StartOptions): Promise<Cluster> {
  const cluster = await Cluster.start(options);
  onTestFinished(() => cluster.destroy());
  return cluster;
}

/** Transfers until it is stopped. */
class Load {
  /** Transfers that were replied to, and those that were begun. */
  done = 0;
  begun = 0;
  private isStopped = false;
  private readonly ends: Promise<void>[];

  constructor(clients: readonly Client[]) {
    this.ends = clients.map((client, i) => this.run(client, i));
  }

  private async run(client: Client, turn: number): Promise<void> {
    for (let i = turn; !this.isStopped; i++) {
      const from = i % GROUPS;
      const to = (from + 1 + (i % (GROUPS - 1))) % GROUPS;
      this.begun++;
      await client.multicast([from, to], Uint8Array.of(from, to));
      this.done++;
    }
  }

  async until(transfers: number): Promise<void> {
    while (this.done < transfers) await new Promise((resolve) => setImmediate(resolve));
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await Promise.all(this.ends);
  }
}

async function audit(cluster: Cluster): Promise<{ total: number; transfers: number }> {
  const client = await cluster.connect();
  const groups = Array.from({ length: GROUPS }, (_, group) => group);
  const replies = await client.multicast(groups, Uint8Array.of(0, 0));
  const states = groups.map((group) => decode(replies.get(group)!)!.split(' ').map(Number));
  await client.close();
  const sum = (field: number): number => states.reduce((total, state) => total + state[field], 0);
  return { total: sum(0), transfers: sum(1) / 2 };
}

test('has all transfers before it, and no half of one', async () => {
  const directory = makeDirectory();
  const options = optionsFor('threads', join(directory, 'journal'));
  const cluster = await startCluster(options);
  const clients = await Promise.all(Array.from({ length: CLIENTS }, () => cluster.connect()));
  const load = new Load(clients);
  await load.until(1000);
  const backup = join(directory, 'backup');
  const doneBefore = load.done;
  await cluster.backup(backup);
  const begunAfter = load.begun;
  await load.until(load.done + 100);
  await load.stop();
  await cluster.close();
  const journal = join(directory, 'restored');
  await Cluster.restore(backup, { journal });
  const restored = await startCluster({ ...options, journal });
  const { total, transfers } = await audit(restored);
  expect(total).toBe(GROUPS * BALANCE);
  expect(transfers).toBeGreaterThanOrEqual(doneBefore);
  expect(transfers).toBeLessThanOrEqual(begunAfter);
  // It goes on from there.
  const client = await restored.connect();
  await client.multicast([0, 1], Uint8Array.of(0, 1));
  expect(await audit(restored)).toEqual({ total, transfers: transfers + 1 });
});

test('by the commands, of a cluster of processes', async (context) => {
  context.skip(process.platform !== 'linux', 'for Linux only');
  const directory = makeDirectory();
  const name = `backup-test-${process.pid}`;
  const options = { ...optionsFor('processes', join(directory, 'journal')), hosts: 1 };
  const cluster = await startCluster({ ...options, name });
  const client = await cluster.connect();
  await client.multicast([1, 2], Uint8Array.of(1, 2));
  const tram = async (...args: string[]): Promise<unknown> => {
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args, '--json']);
    return JSON.parse(stdout);
  };
  const backup = join(directory, 'backup');
  expect(await tram('backup', backup, '--name', name)).toMatchObject({ directory: backup, era: 1 });
  await client.multicast([1, 2], Uint8Array.of(1, 2));
  await cluster.close();
  const journal = join(directory, 'restored');
  expect(await tram('restore', backup, '--journal', journal)).toEqual({
    folders: [join(journal, 'host-0')],
  });
  const restored = await startCluster({ ...options, journal });
  expect(await audit(restored)).toEqual({ total: GROUPS * BALANCE, transfers: 1 });
  const other = { ...options, journal, callsMax: 8 };
  await restored.close();
  await expect(Cluster.start(other)).rejects.toMatchObject({ code: 'TRAM_JOURNAL_MISMATCH' });
});

test('is refused for a cluster without a journal', async () => {
  const cluster = await startCluster({ groups: 1 });
  const backup = join(makeDirectory(), 'backup');
  await expect(cluster.backup(backup)).rejects.toMatchObject({ code: 'TRAM_NOT_SUPPORTED' });
});
