/** The server of the page: what it answers, whom it refuses, and that it changes nothing unless it is told to. */
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Hello, Tick } from '../../src/page/wire.js';
import { Cluster, errorOf, until } from '../built.js';

const SIZES = { clients: 1, logBytes: 65_536, inboxBytes: 16_384, feedBytes: 16_384 };

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Ask {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** A cluster with its page. */
class Watched {
  private constructor(readonly cluster: Cluster) {}

  static async start(page: object): Promise<Watched> {
    const options = { groups: 2, hosts: 3, ...SIZES, page: { port: 0, ...page } };
    return new Watched(await Cluster.start(options));
  }

  get origin(): string {
    return new URL(this.cluster.page!).origin;
  }

  get token(): string | undefined {
    return /^#token=(\S+)$/.exec(new URL(this.cluster.page!).hash)?.[1];
  }

  /** As the page asks. */
  get own(): Record<string, string> {
    const { token, origin } = this;
    return { origin, ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  }

  async open({ path = '/', method = 'GET', headers = {}, body }: Ask): Promise<IncomingMessage> {
    const { hostname, port } = new URL(this.origin);
    // Not as a URL, which would be normalized.
    const sent = request({ hostname, port, path, method, headers: { ...headers } });
    if (body !== undefined) {
      const text = JSON.stringify(body);
      sent.setHeader('content-length', text.length);
      sent.write(text);
    }
    sent.end();
    return new Promise((resolve, reject) => sent.on('response', resolve).on('error', reject));
  }

  async ask(ask: Ask): Promise<Answer> {
    const response = await this.open(ask);
    const { statusCode: status = 0, headers } = response;
    if (status !== 200 || headers['content-type'] !== 'text/event-stream')
      return { status, headers, body: await text(response) };
    response.destroy();
    return { status, headers, body: '' };
  }

  status(ask: Ask): Promise<number> {
    return this.ask(ask).then(({ status }) => status);
  }

  control(body: unknown, headers: Record<string, string> = this.own): Promise<Answer> {
    return this.ask({ path: '/api/control', method: 'POST', headers, body });
  }

  hostStates(): string[] {
    return this.cluster.status().hosts.map(({ state }) => state);
  }
}

const CRASH = { action: 'crash', host: 1 };
const ROUTES = ['/', '/page.js', '/page.css', '/api/events', '/api/control'];

describe('by default', () => {
  let watched: Watched;
  beforeAll(async () => {
    watched = await Watched.start({});
  });
  afterAll(() => watched.cluster.close());

  test('the page is on loopback, and its address has no token', () => {
    expect(watched.cluster.page).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
  });

  test('the page has a strict policy, and no script of its own in the HTML', async () => {
    const { status, headers, body } = await watched.ask({});
    expect(status).toBe(200);
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self'; /);
    expect(headers['content-security-policy']).not.toContain('unsafe');
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(body.match(/<script[^>]*>[^<]*/g)).toEqual(['<script defer src="page.js">']);
    expect(body).not.toMatch(/\son\w+=|\sstyle=|https?:/);
  });

  test('a stream begins with everything, and goes on with pictures', async () => {
    const response = await watched.open({ path: '/api/events' });
    const events: [string, unknown][] = [];
    let rest = '';
    for await (const chunk of response.setEncoding('utf8')) {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop()!;
      for (const block of blocks) {
        const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(block)!;
        events.push([name, JSON.parse(data)]);
      }
      if (events.length >= 2) break;
    }
    const [[first, hello], [second, tick]] = events as [[string, Hello], [string, Tick]];
    expect([first, second]).toEqual(['hello', 'tick']);
    expect(hello).toMatchObject({
      hasControl: false,
      shown: { state: 'running', memory: 'threads' },
    });
    expect(hello.shown.groups.map(({ parent }) => parent)).toEqual([-1, 0]);
    const { groups, hosts } = tick.shown;
    expect(groups[1].replicas.map(({ name }) => name)).toEqual(['g1/0', 'g1/1', 'g1/2']);
    expect(groups[0].leader).toBe(watched.cluster.status().groups[0].leader);
    expect(groups[0].feedFill).toEqual(expect.any(Number));
    expect(groups[1].feedFill).toBeNull();
    expect(hosts.map(({ state }) => state)).toEqual(['up', 'up', 'up']);
    expect(tick.sample).toMatchObject({ answeredPerSecond: 0, latency: null });
  });

  test('no route changes anything: there is none for control', async () => {
    for (const headers of [{}, watched.own, { authorization: 'Bearer x', ...watched.own }])
      expect(await watched.control(CRASH, headers)).toMatchObject({
        status: 404,
        body: 'not found\n',
      });
    for (const path of ROUTES.filter((route) => route !== '/api/control')) {
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])
        expect(await watched.status({ path, method, headers: watched.own, body: CRASH })).toBe(405);
    }
    expect(watched.hostStates()).toEqual(['up', 'up', 'up']);
  });

  test.each(ROUTES)('%s answers no foreign Host', async (path) => {
    for (const host of [
      'evil.example',
      'evil.example:80',
      '127.0.0.1.evil.example',
      '127.0.0.2',
      '@',
    ])
      expect(await watched.status({ path, headers: { host } }), host).toBe(403);
  });

  test.each(ROUTES)('%s answers no foreign Origin', async (path) => {
    const foreign = [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { origin: watched.origin.replace('http:', 'https:') },
      { origin: 'http://127.0.0.1:1' },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
      { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' },
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    ];
    for (const headers of foreign)
      expect(await watched.status({ path, headers: headers as Record<string, string> })).toBe(403);
  });

  test('but the names of loopback, and a link from elsewhere', async () => {
    for (const host of ['localhost', 'localhost:8080', '127.0.0.1'])
      expect(await watched.status({ headers: { host, origin: `http://${host}` } }), host).toBe(200);
    const link = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' };
    expect(await watched.status({ headers: { ...link, 'sec-fetch-dest': 'document' } })).toBe(200);
  });

  test('paths lead nowhere else', async () => {
    for (const path of ['/../server.js', '/%2e%2e/server.js', '/index.html/..', '/api', '//'])
      expect(await watched.status({ path }), path).toBe(404);
  });
});

describe('with control', () => {
  let watched: Watched;
  beforeAll(async () => {
    watched = await Watched.start({ control: true });
  });
  afterAll(() => watched.cluster.close());

  test('the token is in the fragment only', () => {
    const { hash, search, pathname } = new URL(watched.cluster.page!);
    expect(hash).toMatch(/^#token=[\w-]{24}$/);
    expect({ search, pathname }).toEqual({ search: '', pathname: '/' });
  });

  test('nothing is told or done without the token, which only a header may carry', async () => {
    const { origin, token } = watched;
    const wrong = [
      {},
      { authorization: `Bearer ${token}x` },
      { authorization: 'Bearer ' },
      { cookie: `token=${token}` },
    ];
    for (const headers of wrong as Record<string, string>[]) {
      expect((await watched.control(CRASH, { origin, ...headers })).status).toBe(401);
      expect(await watched.status({ path: '/api/events', headers })).toBe(401);
      expect(await watched.status({ path: `/api/events?token=${token}`, headers })).toBe(401);
    }
    expect(await watched.status({ path: '/api/events', headers: watched.own })).toBe(200);
    expect(watched.hostStates()).toEqual(['up', 'up', 'up']);
  });

  test('the token does not help a foreign page', async () => {
    const { own } = watched;
    const { origin: _, ...nowhere } = own;
    for (const headers of [
      { ...own, origin: 'http://evil.example' },
      nowhere,
      { ...own, host: 'evil.example' },
    ])
      expect((await watched.control(CRASH, headers)).status).toBe(403);
    expect(watched.hostStates()).toEqual(['up', 'up', 'up']);
  });

  test.each([
    {},
    null,
    'crash',
    { action: 'stop', host: 0 },
    { action: 'crash', host: '0' },
    { action: 'lead', group: 0 },
    { ...CRASH, more: 'x'.repeat(2000) },
  ])('a request that is none of the page is refused: %j', async (body) => {
    await watched.control(body).then(
      ({ status }) => expect(status).toBe(400),
      // What is too long need not be heard to its end.
      (error: NodeJS.ErrnoException) => expect(error.code).toBe('ECONNRESET'),
    );
    expect(watched.hostStates()).toEqual(['up', 'up', 'up']);
  });

  test('a mistake is explained', async () => {
    const { status, body } = await watched.control({ action: 'crash', host: 7 });
    expect({ status, ...JSON.parse(body) }).toEqual({
      status: 409,
      error: { message: 'there is no host 7: hosts are numbered 0 to 2', hint: expect.any(String) },
    });
    expect((await watched.control({ action: 'lead', group: 0, member: 9 })).status).toBe(409);
    expect((await watched.control({ action: 'lead', group: 9, member: 0 })).status).toBe(409);
  });

  test('hosts crash and come back, and leaders are chosen', async () => {
    const { cluster } = watched;
    expect((await watched.control({ action: 'lead', group: 1, member: 2 })).status).toBe(200);
    expect(cluster.status().groups[1].leader).toBe(2);
    expect((await watched.control(CRASH)).status).toBe(200);
    await until(() => cluster.status().hosts[1].state === 'down');
    const down = cluster.status().groups[1].replicas.find(({ host }) => host === 1)!;
    const refused = await watched.control({ action: 'lead', group: 1, member: down.member });
    expect(refused).toMatchObject({
      status: 409,
      body: expect.stringContaining("is down and can't lead"),
    });
    expect((await watched.control({ action: 'restart', host: 1 })).status).toBe(200);
    expect(watched.hostStates()).toEqual(['up', 'up', 'up']);
  });
});

test('at another address the token is needed to look, too', async () => {
  const watched = await Watched.start({ address: '0.0.0.0' });
  try {
    expect(watched.token).toBeDefined();
    expect(await watched.status({ path: '/' })).toBe(200);
    expect(await watched.status({ path: '/api/events' })).toBe(401);
    expect(await watched.status({ path: '/api/events', headers: watched.own })).toBe(200);
    expect((await watched.control(CRASH)).status).toBe(404);
  } finally {
    await watched.cluster.close();
  }
});

test('a port in use fails the start, and leaves nothing behind', async () => {
  const watched = await Watched.start({});
  const port = Number(new URL(watched.origin).port);
  const error = await errorOf(Watched.start({ port }));
  expect(error).toMatchObject({
    code: 'TRAM_ADDRESS_UNAVAILABLE',
    message: expect.stringContaining(`127.0.0.1:${port}`),
    hint: expect.stringContaining('Choose another one'),
  });
  await watched.cluster.close();
  // The page ends with its cluster.
  await expect(watched.ask({})).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

test.each([
  [{ port: -1 }, 'page.port must be an integer from 0 to 65535, not -1'],
  [{ port: '80' }, 'page.port must be an integer from 0 to 65535, not the string "80"'],
  [{ control: 'no' }, 'page.control must be true or false, not the string "no"'],
  [{ adress: '::1' }, 'unknown option "adress": did you mean address?'],
])('a wrong option is named: %j', async (page, message) => {
  const error = await errorOf(Cluster.start({ groups: 1, page: page as object }));
  expect(error.message).toBe(message);
});
