/** The store as a library: `Store.start()`. */

import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Cluster } from 'tram-multicast';
import { type StartedCluster, startCluster } from './cluster.js';
import { Gateway } from './gateway/gateway.js';
import { GatewayServer } from './gateway/server.js';
import { Settings } from './gateway/settings.js';
import { isLoopback, listenError } from './listen-errors.js';
import { MetricsServer } from './metrics/endpoint.js';
import { StoreError, type StoreOptions } from './options.js';
import { checkTls } from './tls.js';

export type { Tls } from './gateway/server.js';
export { type ClusterOptions, StoreError, type StoreOptions } from './options.js';

/** How long clients may wait for their last replies when the store is closed. */
const GRACE_MS = 5000;

const LOOPBACK = ['127.0.0.1'];

export class Store {
  #closing: Promise<void> | undefined;

  private constructor(
    private readonly server: GatewayServer,
    private readonly metricsServer: MetricsServer | undefined,
    private readonly closeCluster: () => Promise<void>,
    /** Of TCP; undefined if there is none. */
    readonly port: number | undefined,
    /** Of TRAM, to watch it, operate it and back it up. Undefined if this store has joined one that others run. */
    readonly cluster: Cluster | undefined,
    /** Resolves once a client has asked for the end, with SHUTDOWN: then the store closes. */
    readonly shutDown: Promise<void>,
  ) {
    // A program that calls `close` as well gets the error.
    void shutDown.then(() => this.close()).catch(() => undefined);
  }

  /** Starts the cluster and a gateway to it. @returns once clients can connect */
  static async start(options: StoreOptions = {}): Promise<Store> {
    const { port = 6379, bind = LOOPBACK, metrics, tls } = options;
    refuseOpenStore(options);
    if (tls !== undefined) checkTls(tls);
    // A cluster takes a while to start: nobody should wait for it in vain.
    if (port !== false) await requireFree(port, bind, options);
    if (metrics !== undefined) await requireFree(metrics, bind, options);
    let gateway: Gateway | undefined;
    const cluster = await startCluster(options, {
      published: (channel, message, isSharded) => gateway?.published(channel, message, isSharded),
      forgotten: (shard) => gateway?.forgotten(shard),
    });
    gateway = new Gateway(cluster.backend, settingsOf(options, cluster), cluster.facts);
    const server = new GatewayServer(gateway);
    const metricsServer = metrics === undefined ? undefined : new MetricsServer(gateway);
    try {
      await metricsServer?.listen(metrics!, bind);
      await server.listen({
        ...(port !== false && { port, bind }),
        ...(options.unixSocket !== undefined && { unixSocket: options.unixSocket }),
        ...(tls !== undefined && { tls }),
      });
    } catch (error) {
      await metricsServer?.close();
      await cluster.close();
      throw listenError(error, options);
    }
    const ownPort = port === false ? undefined : server.port;
    const { shutDown } = gateway;
    return new Store(server, metricsServer, cluster.close, ownPort, cluster.own, shutDown);
  }

  /** Of `/metrics`; undefined if there is none. */
  get metricsPort(): number | undefined {
    return this.metricsServer?.port;
  }

  /** Clients get the replies that they wait for; then the gateway ends, and the cluster if this process has started it. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.metricsServer?.closing();
    await this.server.close(GRACE_MS);
    await this.metricsServer?.close();
    await this.closeCluster();
  }
}

function settingsOf(options: StoreOptions, { facts }: StartedCluster): Settings {
  const { port = 6379, bind = LOOPBACK } = options;
  return new Settings({
    requirepass: options.password ?? '',
    port: String(port === false ? 0 : port),
    bind: bind.join(' '),
    unixsocket: options.unixSocket ?? '',
    maxclients: String(options.maxclients ?? 10_000),
    appendonly: facts.isDurable ? 'yes' : 'no',
  });
}

/** @throws if something listens at one of the addresses, or nothing can */
async function requireFree(
  port: number,
  bind: readonly string[],
  options: StoreOptions,
): Promise<void> {
  for (const host of bind) {
    const probe = createServer();
    try {
      await once(probe.listen(port, host), 'listening');
    } catch (error) {
      throw listenError(error, options);
    } finally {
      probe.close();
    }
  }
}

/** A store that others can reach needs a password, or clients that show a certificate. */
function refuseOpenStore({ port, bind = [], password, tls }: StoreOptions): void {
  const outside = bind.find((host) => !isLoopback(host));
  if (port === false || outside === undefined || password || tls?.ca !== undefined) return;
  throw new StoreError(
    `anybody who reaches ${outside} could read and change all keys`,
    'Set a password, or require certificates of clients, or listen at 127.0.0.1 only.',
  );
}
