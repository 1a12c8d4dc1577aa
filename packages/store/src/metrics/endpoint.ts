/** The HTTP endpoints of a gateway, which are those of a host of TRAM: `/healthz`, `/readyz` and `/metrics`. */

import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Gateway } from '../gateway/gateway.js';
import { familiesOf } from './families.js';
import { metricsText } from './text.js';

const METHODS = new Set(['GET', 'HEAD']);

export class MetricsServer {
  readonly #servers: Server[] = [];
  #isClosing = false;

  constructor(private readonly gateway: Gateway) {}

  get port(): number {
    return (this.#servers[0].address() as AddressInfo).port;
  }

  /** @throws if nothing can listen at one of the addresses. Then nothing listens */
  async listen(port: number, bind: readonly string[]): Promise<void> {
    try {
      for (const host of bind) {
        await this.#listenAt(host, this.#servers.length === 0 ? port : this.port);
      }
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** From now on, the gateway is not ready. */
  closing(): void {
    this.#isClosing = true;
  }

  async close(): Promise<void> {
    const closed = this.#servers.map(
      (server) => new Promise<void>((resolve) => server.close(() => resolve())),
    );
    for (const server of this.#servers) server.closeAllConnections();
    await Promise.all(closed);
  }

  #listenAt(host: string, port: number): Promise<void> {
    const server = createServer((request, response) => {
      const [path] = (request.url ?? '').split('?');
      if (!METHODS.has(request.method ?? '')) respond(response, 405, 'only GET\n');
      else if (path === '/healthz') respond(response, 200, 'ok\n');
      else if (path === '/readyz') this.#respondReadiness(response).catch(() => response.destroy());
      else if (path === '/metrics') this.#respondMetrics(response).catch(() => response.destroy());
      else respond(response, 404, 'there are /healthz, /readyz and /metrics\n');
    });
    server.requestTimeout = 5000;
    server.headersTimeout = 5000;
    server.maxConnections = 64;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.off('error', reject);
        // Such as too many open files.
        server.on('error', () => undefined);
        this.#servers.push(server);
        resolve();
      });
    });
  }

  /** The gateway serves clients if all shards answer. */
  async #respondReadiness(response: ServerResponse): Promise<void> {
    if (this.#isClosing) {
      respond(response, 503, 'the gateway ends\n');
      return;
    }
    const shards = await this.gateway.reports.ask();
    const silent = shards.flatMap((report, shard) =>
      report === undefined ? [`shard ${shard} does not answer\n`] : [],
    );
    if (silent.length === 0) respond(response, 200, 'ready\n');
    else respond(response, 503, silent.join(''));
  }

  async #respondMetrics(response: ServerResponse): Promise<void> {
    const { gateway } = this;
    const [shards, leaders] = await Promise.all([
      gateway.reports.ask(),
      gateway.facts.lookAtShards(),
    ]);
    respond(response, 200, metricsText(familiesOf(gateway, { shards, leaders })));
  }
}

function respond(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
  response.end(text);
}
