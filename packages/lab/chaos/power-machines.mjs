/** A cluster across machines, with its clients, that may lose its power at any time. Called by `power-round.mjs`. */
import { existsSync, readFileSync } from 'node:fs';
import { Clients, untilCaughtUp } from './clients.mjs';
import { MachinesCluster } from './machines-cluster.mjs';
import { GROUPS } from './plan.mjs';

const FINISH_MS = 60_000;
const FETCHES = 'fetches what its journal lacks';
/** A slot of a client that was killed is free only after ten seconds, but a recovery frees all of them. */
const SLOTS_PER_CLIENT = 2;

/** @typedef {import('./power-site.mjs').Site} Site */

/** @implements {Site} */
export class MachinesSite {
  /** @type {Clients | undefined} */
  clients;
  /** Of all clients that were ever started. */
  started = 0;
  power = { isOff: true };
  isFinished = false;
  /** How much the hosts had logged before they were started last. @type {number[]} */
  logged = [];

  /** @param {import('./power-site.mjs').SiteOptions & { directory: string }} options */
  constructor(options) {
    this.options = options;
    const { name, directory, clients, complain } = options;
    const { memory: _, hosts, service: __, trace, ...cluster } = options.cluster;
    this.cluster = new MachinesCluster(
      {
        directory,
        name,
        hosts,
        trace,
        cluster: { ...cluster, clients: clients * SLOTS_PER_CLIENT },
      },
      { log: () => undefined, complain },
    );
  }

  async start() {
    const { cluster, options } = this;
    const { clients: count, settingsOf, complain } = options;
    const power = { isOff: false };
    this.power = power;
    this.logged = this.logs().map(({ length }) => length);
    try {
      await (cluster.context === undefined ? cluster.begin() : cluster.startHosts());
    } catch (error) {
      if (power.isOff) return [];
      throw error;
    }
    if (power.isOff) return [];
    const clients = new Clients(
      cluster.address,
      () => settingsOf(`k${this.started++}`),
      (text) => !power.isOff && complain(text),
      cluster.startClient,
    );
    this.clients = clients;
    const started = await Promise.all(Array.from({ length: count }, () => clients.start()));
    return started.flatMap(({ audit }) => audit ?? []);
  }

  async cut() {
    this.power.isOff = true;
    await Promise.all([this.cluster.cutPower(), this.clients?.destroy()]);
  }

  isFetching() {
    return this.logs().some((log, host) => log.includes(FETCHES, this.logged[host]));
  }

  logs() {
    return this.cluster.hosts.map((_, host) => {
      const path = this.cluster.logOf(host);
      return existsSync(path) ? readFileSync(path, 'utf8') : '';
    });
  }

  async finish() {
    const { cluster, clients, options } = this;
    await clients?.finish(FINISH_MS);
    await clients?.takeFingerprints(GROUPS, options.fingerprints, FINISH_MS);
    await untilCaughtUp(cluster);
    this.power.isOff = true;
    await cluster.close([]);
    this.isFinished = true;
  }

  async destroy() {
    if (!this.isFinished) await this.cluster.destroy();
  }

  remains() {
    return this.cluster.hosts
      .filter(({ memory }) => existsSync(memory))
      .map(({ memory }) => `${memory} is left`);
  }
}
