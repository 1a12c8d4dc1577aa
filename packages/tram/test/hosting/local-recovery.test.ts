/** Clusters that lose all their hosts at once, and start again from their journals. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { acceptLoss, journalsIn, lossesOf } from '../../src/hosting/journal-loss.js';
import { checksumOf, encodeIdentity, FORMAT_VERSION } from '../../src/journal/format.js';
import { Cluster, decode, encode, errorOf, keeping, type StartOptions } from '../built.js';

/** Replies to `read` with all texts that it was given. */
const RECORDER = new URL('../recorder.mjs', import.meta.url);

let journal: string;
const leftOver: Cluster[] = [];

beforeEach(() => {
  journal = mkdtempSync('/dev/shm/test-of-tram-journal-');
});

afterEach(async () => {
  for (const cluster of leftOver.splice(0)) await cluster.destroy();
  rmSync(journal, { recursive: true, force: true });
});

async function start(options: Partial<StartOptions> = {}): Promise<Cluster> {
  const defaults = { groups: 2, hosts: 3, service: RECORDER, durability: 'always' } as const;
  const cluster = await Cluster.start({ ...defaults, journal, ...options });
  leftOver.push(cluster);
  return cluster;
}

/** Sends texts to both groups. */
async function send(cluster: Cluster, ...texts: string[]): Promise<void> {
  const client = await cluster.connect();
  await Promise.all(texts.map((text) => client.multicast([0, 1], encode(text))));
  await client.close();
}

/** What both groups have. */
async function read(cluster: Cluster): Promise<(string | undefined)[]> {
  const client = await cluster.connect();
  const replies = await client.multicast([0, 1], encode('read'));
  await client.close();
  return [0, 1].map((group) => decode(replies.get(group)));
}

function loseDisk(host: number): void {
  rmSync(join(journal, `host-${host}`), { recursive: true });
}

test.each([
  ['threads', 2],
  ['processes', 3],
] as const)(
  'what was acknowledged is there after all hosts were killed, on %s, in %i starts',
  async (memory, starts) => {
    const texts: string[] = [];
    for (let round = 1; round <= starts; round++) {
      const cluster = await start({ memory });
      expect(cluster.status().era).toBe(round);
      expect(await read(cluster)).toEqual([texts.join(), texts.join()]);
      for (const text of [`${round}a`, `${round}b`]) {
        await send(cluster, text);
        texts.push(text);
      }
      if (memory === 'processes') {
        for (const { pid } of cluster.status().hosts) process.kill(pid, 'SIGKILL');
      }
      await cluster.destroy();
    }
  },
);

test('a cluster that was closed goes on likewise, and its sessions are new', async () => {
  const source = 'export const deliver = ({ id }) => new TextEncoder().encode(id);';
  const service = `data:text/javascript,${encodeURIComponent(source)}`;
  for (const least of [1, 65_536]) {
    const cluster = await start({ service });
    const client = await cluster.connect();
    const replies = await client.multicast([0], encode('a'));
    const [, session] = /^c(\d+):/.exec(decode(replies.get(0))!)!;
    expect(Number(session)).toBeGreaterThanOrEqual(least);
    await cluster.close();
  }
});

test('a host starts again from its disk, and after the loss of its disk from the others', async () => {
  const cluster = await start();
  await send(cluster, 'a');
  await cluster.crash(1);
  await send(cluster, 'b');
  await cluster.restart(1);
  await cluster.restart(2, { fresh: true });
  await cluster.crash(0);
  loseDisk(0);
  await cluster.restart(0);
  await send(cluster, 'c');
  // Once this counts on the new disk, the other two may be lost as well as any.
  const isCaughtUp = (): boolean =>
    cluster.status().groups.every(({ replicas }) => replicas.every(({ durable }) => durable! > 4));
  // A reply has room for a thousand of these.
  for (; !isCaughtUp(); await setTimeout(20)) await send(cluster, 'd');
  const [expected] = await read(cluster);
  await cluster.destroy();
  loseDisk(1);
  expect(await read(await start())).toEqual([expected, expected]);
});

test('too few journals: refused, until an operator accepts what is lost', async () => {
  const first = await start();
  await send(first, 'a');
  await first.destroy();
  loseDisk(1);
  loseDisk(2);
  const { code, message, hint } = await errorOf(start());
  expect(code).toBe('TRAM_RECOVERY_REFUSED');
  expect(message).toMatch(/g0: .* host-1 has none of it, host-2 has none of it: .*\n.*g1: /);
  expect(hint).toMatch(/tram recover/);
  const journals = journalsIn(journal);
  const losses = lossesOf(journals);
  expect(losses).toHaveLength(2);
  acceptLoss(journals);
  const { logger, warnings } = keeping();
  expect(await read(await start({ logger }))).toEqual(['a', 'a']);
  expect(warnings).toEqual(
    losses.map((loss) => `as an operator has accepted, messages are lost: ${loss}`),
  );
});

test('a journal of another format is refused, and stays as it is', async () => {
  const folder = join(journal, 'host-0');
  const identity = encodeIdentity({ clusterId: '0'.repeat(32), host: 0, promisedEra: 1 });
  const words = new Int32Array(identity.buffer);
  const [crc, version, end] = [1, 2, 10];
  words[version] = 99;
  words[crc] = checksumOf(identity.subarray(version * 4, end * 4));
  mkdirSync(folder);
  writeFileSync(join(folder, 'identity'), identity);
  writeFileSync(join(folder, 'cluster.json'), '{"in": "another way"}');
  const { code, message, hint } = await errorOf(start());
  expect(code).toBe('TRAM_VERSION_MISMATCH');
  expect(message).toBe(
    `the journal file ${folder}/identity has format 99, and this version of TRAM has format ${FORMAT_VERSION}`,
  );
  expect(hint).toMatch(/^Use the version of TRAM that has written the journal/);
  expect(readFileSync(join(folder, 'identity'))).toEqual(Buffer.from(identity));
  expect(readFileSync(join(folder, 'cluster.json'), 'utf8')).toBe('{"in": "another way"}');
});

test('a journal is used by one cluster at a time, and only by one of its shape', async () => {
  const cluster = await start();
  expect(await errorOf(start())).toMatchObject({ code: 'TRAM_JOURNAL_IN_USE' });
  await cluster.close();
  const other = await errorOf(start({ groups: 3 }));
  expect(other.code).toBe('TRAM_JOURNAL_MISMATCH');
  expect(other.message).toMatch(/is of a cluster with groups 2, not 3/);
  expect((await errorOf(start({ payloadBytesMax: 64 }))).message).toMatch(/payloadBytesMax is 64/);
});
