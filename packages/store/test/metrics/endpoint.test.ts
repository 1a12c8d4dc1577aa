import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SHARD_REPORT, type ShardReport } from '../../src/commands/internal.js';
import { ShardReports } from '../../src/gateway/shard-reports.js';
import type { Shards } from '../../src/gateway/shards.js';
import { MetricsServer } from '../../src/metrics/endpoint.js';
import { metricsText } from '../../src/metrics/text.js';
import { ReplyWriter } from '../../src/resp/writer.js';
import { PlainClient, type Started, startGateway } from '../gateway/started.js';
import { type Metric, parseMetrics } from './prometheus.js';

let started: Started;
let metrics: MetricsServer;
let client: PlainClient;

beforeEach(async () => {
  started = await startGateway();
  metrics = new MetricsServer(started.gateway);
  await metrics.listen(0, ['127.0.0.1']);
  client = await PlainClient.connect(started.port);
});

afterEach(async () => {
  await metrics.close();
  await started.close();
});

async function get(path: string, method = 'GET'): Promise<{ status: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${metrics.port}${path}`, { method });
  return { status: response.status, text: await response.text() };
}

async function scrape(): Promise<Map<string, Metric>> {
  return parseMetrics((await get('/metrics')).text);
}

describe('/metrics', () => {
  it('is what Prometheus reads', async () => {
    const response = await fetch(`http://127.0.0.1:${metrics.port}/metrics`);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const families = parseMetrics(await response.text());
    for (const [name, { help }] of families) {
      expect(name).toMatch(/^(tram_store|process)_/);
      expect(help).toMatch(/^[A-Z0-9].*\.$/);
    }
  });

  it('has what clients did, by command', async () => {
    const value = async (name: string, labels = ''): Promise<number | undefined> =>
      (await scrape()).get(`tram_store_${name}`)?.samples.get(labels);
    await client.ask('set a 1');
    for (const request of ['get a', 'get b', 'lpush a x', 'get']) await client.ask(request);
    await client.ask('eval return{err="ODD\\"\\\\CODE\\32x"} 0');
    await client.ask('subscribe news');
    expect(await value('connected_clients')).toBe(1);
    expect(await value('connections_total')).toBe(1);
    expect(await value('commands_total', '{command="get"}')).toBe(2);
    expect(await value('failed_commands_total', '{command="lpush"}')).toBe(1);
    expect(await value('rejected_commands_total', '{command="get"}')).toBe(1);
    expect(await value('command_seconds', '_count{command="get"}')).toBe(2);
    expect(await value('error_replies_total', '{code="WRONGTYPE"}')).toBe(1);
    expect(await value('error_replies_total', '{code="ODD\\"\\\\CODE"}')).toBe(1);
    expect(await value('subscriptions', '{kind="channel"}')).toBe(1);
    expect(await value('input_bytes_total')).toBe(started.gateway.stats.inputBytes);
    expect(await value('batched_commands_total')).toBeGreaterThan(4);
  });

  it('has what shards have', async () => {
    await client.ask('set a 1');
    await client.ask('get a');
    const families = await scrape();
    const total = (name: string): number =>
      [...families.get(`tram_store_${name}`)!.samples.values()].reduce((sum, one) => sum + one, 0);
    expect([total('shard_up'), total('keys'), total('keyspace_hits_total')]).toEqual([4, 1, 1]);
    expect(total('memory_bytes')).toBeGreaterThan(0);
  });

  it('has how coordinated transactions end', async () => {
    const ended = async (outcome: string): Promise<number | undefined> =>
      (await scrape()).get('tram_store_transactions_total')?.samples.get(`{outcome="${outcome}"}`);
    await client.ask('mset a 1 b 2 c 3 d 4');
    await client.ask('rename a x1');
    await client.ask('rename b x2');
    expect(await ended('committed')).toBeGreaterThan(0);
    const other = await PlainClient.connect(started.port);
    await client.ask('watch c d x1 x2');
    await other.ask('incr c');
    for (const request of ['multi', 'get a', 'exec']) await client.ask(request);
    expect(await ended('changed')).toBe(1);
    const waiting = await PlainClient.connect(started.port);
    waiting.send(['blpop', 'q1', 'q2', 'q3', 'q4', '0']);
    await expect.poll(() => ended('waiting')).toBe(1);
    const begun = (await scrape()).get('tram_store_transactions_begun_total')!.samples.get('')!;
    const { transactions } = started.gateway.backend.traffic;
    expect(Object.values(transactions).reduce((sum, one) => sum + one, 0)).toBe(begun);
  });

  it('counts what is too long for a message or a reply', async () => {
    await client.ask(`set long ${'x'.repeat(200_000)}`);
    await client.ask('get long');
    const { samples: uploaded } = (await scrape()).get('tram_store_uploaded_pieces_total')!;
    const { samples: fetched } = (await scrape()).get('tram_store_fetched_pieces_total')!;
    expect(uploaded.get('')).toBe(Math.ceil(200_000 / 65_536));
    expect(fetched.get('')).toBe(Math.ceil(200_000 / 16_383));
  });
});

describe('the health of a gateway', () => {
  it('is that of its shards', async () => {
    expect(await get('/healthz')).toEqual({ status: 200, text: 'ok\n' });
    expect(await get('/readyz')).toEqual({ status: 200, text: 'ready\n' });
    const answers: Record<number, boolean> = { 0: true, 1: false, 2: true };
    started.gateway.reports.ask = async () =>
      [0, 1, 2].map((shard) => (answers[shard] ? REPORT : undefined));
    expect(await get('/readyz')).toEqual({ status: 503, text: 'shard 1 does not answer\n' });
    const { samples } = (await scrape()).get('tram_store_shard_up')!;
    expect([...samples.values()]).toEqual([1, 0, 1]);
    expect((await scrape()).get('tram_store_keys')!.samples.size).toBe(2);
    answers[1] = true;
    expect(await get('/readyz')).toEqual({ status: 200, text: 'ready\n' });
    metrics.closing();
    expect(await get('/readyz')).toEqual({ status: 503, text: 'the gateway ends\n' });
    expect(await get('/healthz')).toEqual({ status: 200, text: 'ok\n' });
  });

  it('has no other pages', async () => {
    expect(await get('/')).toMatchObject({ status: 404 });
    expect(await get('/healthz', 'POST')).toMatchObject({ status: 405 });
  });
});

const REPORT: ShardReport = {
  keys: 1,
  expiring: 0,
  bytes: 1,
  expired: 0,
  hits: 0,
  misses: 0,
  evicted: 0,
};

describe('shards that do not answer', () => {
  const reply = (): Uint8Array => {
    const writer = new ReplyWriter();
    writer.write(Object.entries(REPORT).flat(), 3);
    return writer.written();
  };

  it('keep nobody waiting, and are not asked again until they do', async () => {
    const asked: number[] = [];
    let answerLater: () => void = () => undefined;
    const shards: Shards = {
      count: 2,
      isShort: () => false,
      run: ([{ shard, command }], replied) => {
        expect(command.name).toBe(SHARD_REPORT);
        asked.push(shard);
        const answer = (): void => replied([reply()]);
        if (shard === 0) answer();
        else answerLater = answer;
      },
    };
    const reports = new ShardReports(shards, 20);
    expect(await reports.ask()).toEqual([REPORT, undefined]);
    expect(await reports.ask()).toEqual([REPORT, undefined]);
    expect(asked).toEqual([0, 1, 0]);
    answerLater();
    const next = reports.ask();
    answerLater();
    expect(await next).toEqual([REPORT, REPORT]);
  });

  it('are asked again if the question was lost', async () => {
    let isLost = true;
    const shards: Shards = {
      count: 1,
      isShort: () => false,
      run: (_calls, replied, failed) => {
        if (isLost) failed(new Error('lost'));
        else replied([reply()]);
      },
    };
    const reports = new ShardReports(shards);
    expect(await reports.ask()).toEqual([undefined]);
    isLost = false;
    expect(await reports.ask()).toEqual([REPORT]);
  });
});

it.each([
  ['a sample of another metric', '# HELP a A.\n# TYPE a gauge\nb 1\n'],
  ['a quote in a label', '# HELP a A.\n# TYPE a gauge\na{b="""} 1\n'],
  ['a line twice', '# HELP a A.\n# TYPE a gauge\na 1\na 2\n'],
  ['a counter by another name', '# HELP a A.\n# TYPE a counter\na 1\n'],
  ['no number', '# HELP a A.\n# TYPE a gauge\na NaN\n'],
  ['no end', '# HELP a A.\n# TYPE a gauge\na 1'],
  [
    'buckets that shrink',
    '# HELP a A.\n# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
  ],
])('the parser of this test refuses %s', (_what, text) => {
  expect(() => parseMetrics(text)).toThrow();
});

it('labels may have any characters', () => {
  const labels = { code: 'a"b\\c\nd' };
  const text = metricsText([
    { name: 'a', kind: 'gauge', help: 'A.', samples: [{ labels, value: 1 }] },
  ]);
  expect([...parseMetrics(text).get('a')!.samples.keys()]).toEqual(['{code="a\\"b\\\\c\\nd"}']);
});
