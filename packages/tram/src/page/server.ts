/**
 * The server of the page: `tram watch`, and the option `page` of `Cluster.start`. It sends the built page, a stream of
 * what the cluster looks like (server-sent events) and, with `control` only, does what an operator asks for.
 *
 *   GET  /             the page and its files
 *   GET  /api/events   `hello`, then a `tick` with every interval
 *   POST /api/control  with `control` only; otherwise there is no such route
 *
 * guard.ts says which requests are answered. Both routes below /api need a token, unless the server is on loopback and has
 * no control: other users of this machine can reach loopback too, and may look, but not change anything. The page itself
 * holds no data.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { TramError } from '../errors.js';
import { act, type Control } from './control.js';
import { type PageFile, pageFiles } from './files.js';
import { hasToken, isLoopback, refusalOf } from './guard.js';
import { type Source, Watcher } from './watcher.js';
import type { Hello, Sample, Tick } from './wire.js';

export interface PageSettings {
  readonly source: Source;
  readonly address: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly intervalMs: number;
  /** Without it, the page can't change anything. */
  readonly control?: Control | undefined;
}

/** For a page that has nothing from elsewhere, and shows what is now. */
const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

const TOKEN_BYTES = 18;
const STREAMS_MAX = 16;
const CONNECTIONS_MAX = 64;
const RECEIVE_MS = 5000;

/** A page that listens. */
interface Stream {
  readonly response: ServerResponse;
  /** How many news it has been sent, since the start of the server. */
  newsSent: number;
}

type Route = (response: ServerResponse) => void;

export class PageServer {
  /** Where the user opens the page, with the token if one is needed. */
  readonly url: string;
  private readonly watcher: Watcher;
  private readonly streams = new Set<Stream>();
  /** Undefined if none is needed. */
  private readonly token: string | undefined;

  private constructor(
    private readonly settings: PageSettings,
    private readonly files: ReadonlyMap<string, PageFile>,
    private readonly server: Server,
  ) {
    const { source, intervalMs, address, control } = settings;
    const { port } = server.address() as AddressInfo;
    const needsToken = control !== undefined || !isLoopback(address);
    if (needsToken) this.token = randomBytes(TOKEN_BYTES).toString('base64url');
    const host = reachableAddress(address);
    const origin = `http://${isIPv6(host) ? `[${host}]` : host}:${port}/`;
    this.url = needsToken ? `${origin}#token=${this.token}` : origin;
    this.watcher = new Watcher(source, intervalMs, (sample) => this.tick(sample));
  }

  /** @throws TRAM_ADDRESS_UNAVAILABLE; TRAM_NOT_FOUND if the page is not built */
  static async open(settings: PageSettings): Promise<PageServer> {
    const files = pageFiles();
    const server = createServer();
    server.requestTimeout = RECEIVE_MS;
    server.headersTimeout = RECEIVE_MS;
    server.maxConnections = CONNECTIONS_MAX;
    await listen(server, settings);
    const page = new PageServer(settings, files, server);
    server.on('request', (request, response) => page.route(request)(response));
    return page;
  }

  /** What the cluster looked like last. */
  get state(): string {
    return this.watcher.shown.state;
  }

  /** What the page has asked for and is under way goes on. */
  async close(): Promise<void> {
    this.watcher.close();
    for (const { response } of this.streams) response.end();
    const closed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    this.server.closeAllConnections();
    await closed;
  }

  /** What is done with a request. */
  private route(request: IncomingMessage): Route {
    const { control, address } = this.settings;
    const refusal = refusalOf(request, address);
    if (refusal !== undefined) return refuse(403, refusal);
    const [path] = (request.url ?? '').split('?');
    const file = this.files.get(path);
    if (file !== undefined) return only('GET', request, (response) => sendFile(response, file));
    const isControl = path === '/api/control' && control !== undefined;
    if (!isControl && path !== '/api/events') return refuse(404, 'not found');
    if (this.token !== undefined && !hasToken(request, this.token))
      return refuse(401, 'wrong token: open the link that the server has printed');
    if (!isControl) return only('GET', request, (response) => this.stream(response));
    // Browsers send it with every POST, so a request without it is not from the page.
    if (request.headers.origin === undefined) return refuse(403, 'no Origin');
    return only('POST', request, (response) => void respondToControl(request, response, control));
  }

  private stream(response: ServerResponse): void {
    const { watcher, settings, streams } = this;
    if (streams.size >= STREAMS_MAX) {
      send(response, 503, 'too many pages are open');
      return;
    }
    const { history, news, shown } = watcher;
    const stream: Stream = { response, newsSent: watcher.newsCount };
    streams.add(stream);
    response.on('close', () => streams.delete(stream));
    response.writeHead(200, { ...HEADERS, 'content-type': 'text/event-stream' });
    const hello: Hello = { hasControl: settings.control !== undefined, history, news, shown };
    write(response, 'hello', hello);
  }

  private tick(sample: Sample): void {
    const { watcher } = this;
    for (const stream of this.streams) {
      // A page that does not keep up misses pictures, but no news.
      if (stream.response.writableNeedDrain) continue;
      const tick: Tick = { sample, news: watcher.newsSince(stream.newsSent), shown: watcher.shown };
      stream.newsSent = watcher.newsCount;
      write(stream.response, 'tick', tick);
    }
  }
}

function write(response: ServerResponse, event: string, data: unknown): void {
  response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

function only(method: string, request: IncomingMessage, route: Route): Route {
  return request.method === method ? route : refuse(405, `only ${method}`);
}

function refuse(status: number, text: string): Route {
  return (response) => send(response, status, text);
}

function sendFile(response: ServerResponse, { type, bytes }: PageFile): void {
  response.writeHead(200, { ...HEADERS, 'content-type': type }).end(bytes);
}

async function respondToControl(
  request: IncomingMessage,
  response: ServerResponse,
  control: Control,
): Promise<void> {
  const { status, answer } = await act(control, request);
  response.writeHead(status, { ...HEADERS, 'content-type': 'application/json' });
  response.end(JSON.stringify(answer));
}

function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' });
  response.end(`${text}\n`);
}

/** An address of this machine that others reach, if the server listens at all of them. */
function reachableAddress(address: string): string {
  if (address !== '0.0.0.0' && address !== '::') return address;
  const all = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses);
  const outer = all.find(({ internal, family }) => !internal && family === 'IPv4');
  return outer?.address ?? '127.0.0.1';
}

function listen(server: Server, { address, port }: PageSettings): Promise<void> {
  return new Promise((resolve, reject) => {
    server.on('error', (cause: NodeJS.ErrnoException) => {
      const hint =
        cause.code === 'EADDRINUSE'
          ? 'Another program uses this port: perhaps another `tram watch`. Choose another one, or 0 for any that is free.'
          : undefined;
      const message = `can't serve the page at ${address}:${port}: ${cause.message}`;
      reject(new TramError('TRAM_ADDRESS_UNAVAILABLE', message, { hint, cause }));
    });
    server.listen(port, address, resolve);
  });
}
