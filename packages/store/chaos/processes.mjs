/** The processes of a store: one that starts the cluster and has a gateway, the hosts of the cluster, and further gateways. */
import { spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Cluster } from 'tram-multicast';

const CLI = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const START_MS_MAX = 60_000;

/**
 * @typedef {object} StoreOptions
 * @property {string} folder  for sockets and journals
 * @property {string} name
 * @property {'processes' | 'threads'} memory  with threads, the process of the only gateway has the whole cluster
 * @property {number} shards
 * @property {'none' | 'always'} durability
 * @property {number} gateways
 * @property {readonly string[]} [more]  options of the first gateway
 * @property {readonly string[]} [nodeOptions]  of the first gateway, and of the hosts that it starts
 */

class Gateway {
  /** @type {import('node:child_process').ChildProcess | undefined} */
  #process;
  #errors = '';

  /** @param {string} socket @param {readonly string[]} args @param {readonly string[]} nodeOptions */
  constructor(socket, args, nodeOptions) {
    this.socket = socket;
    this.args = args;
    this.nodeOptions = nodeOptions;
  }

  /** @returns once clients can connect */
  async start() {
    rmSync(this.socket, { force: true });
    this.#errors = '';
    const listen = ['--port', '0', '--unixsocket', this.socket];
    const args = [...this.nodeOptions, CLI, ...listen, ...this.args];
    const env = { ...process.env, TRAM_WARM_UP: 'off' };
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
    this.#process = child;
    const ready = new Promise((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', (text) => {
        this.#errors += text;
        if (this.#errors.includes('ready for clients')) resolve(undefined);
      });
      child.once('exit', () => reject(new Error(`a gateway has ended: ${this.#errors}`)));
    });
    const tooLate = sleep(START_MS_MAX, undefined, { ref: false }).then(() => {
      throw new Error(`a gateway does not start: ${this.#errors}`);
    });
    await Promise.race([ready, tooLate]);
  }

  get pid() {
    return this.#process?.pid ?? 0;
  }

  /** @param {NodeJS.Signals} signal @returns once it has ended */
  async end(signal) {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await ended;
  }
}

export class StoreProcesses {
  /** @param {StoreOptions} options */
  constructor({ folder, name, memory, shards, durability, gateways, more = [], nodeOptions = [] }) {
    this.name = name;
    this.memory = memory;
    const own = ['--memory', memory, '--shards', String(shards), ...more];
    if (memory === 'processes') own.push('--name', name);
    const journal = ['--durability', durability, '--journal', join(folder, 'journal')];
    if (durability !== 'none') own.push(...journal);
    /** The first one starts the cluster. */
    this.gateways = Array.from({ length: gateways }, (_, i) => {
      const socket = join(folder, `${i}.sock`);
      return i === 0
        ? new Gateway(socket, own, nodeOptions)
        : new Gateway(socket, ['--attach', name], []);
    });
  }

  get sockets() {
    return this.gateways.map(({ socket }) => socket);
  }

  get gatewayPids() {
    return this.gateways.map(({ pid }) => pid);
  }

  async hostPids() {
    const { hosts } = await this.#status();
    return hosts.map(({ pid }) => pid);
  }

  async start() {
    const [first, ...others] = this.gateways;
    await first.start();
    await Promise.all(others.map((gateway) => gateway.start()));
  }

  async close() {
    const [first, ...others] = this.gateways;
    await Promise.all(others.map((gateway) => gateway.end('SIGTERM')));
    await first.end('SIGTERM');
  }

  /** Ends the process of a host that leads the group, by SIGKILL. @param {number} group */
  async killLeader(group) {
    const { groups, hosts } = await this.#status();
    const { leader, replicas } = groups[group];
    const host = leader === undefined ? undefined : hosts[replicas[leader].host];
    if (host === undefined || host.state !== 'up') return false;
    process.kill(host.pid, 'SIGKILL');
    return true;
  }

  /**
   * Ends the process of the host that leads the most groups, by SIGKILL. The shards survive the loss of one replica: so not before all
   * replicas are there, and have the state of their shards.
   * @returns whether it has
   */
  async killBusiestHost() {
    const { groups, hosts } = await this.#status();
    const isWell = (/** @type {{ state: string, role: string, lacksState: boolean }} */ replica) =>
      replica.state === 'up' && replica.role !== 'recovering' && !replica.lacksState;
    if (!groups.every(({ replicas }) => replicas.every(isWell))) return false;
    const led = hosts.map(() => 0);
    for (const { leader, replicas } of groups)
      if (leader !== undefined) led[replicas[leader].host]++;
    const host = hosts[led.indexOf(Math.max(...led))];
    if (host.state !== 'up') return false;
    process.kill(host.pid, 'SIGKILL');
    return true;
  }

  /** Starts hosts that are down, as an operator does: who ends often is not restarted by itself. @returns how many there were */
  async bringBackHosts() {
    const cluster = await Cluster.attach(this.name);
    try {
      const { hosts } = cluster.status();
      const down = [...hosts.keys()].filter((host) => hosts[host].state === 'down');
      await Promise.all(down.map((host) => cluster.restart(host)));
      return down.length;
    } finally {
      await cluster.close();
    }
  }

  /** @param {number} gateway  not the first one */
  async killGateway(gateway) {
    await this.gateways[gateway].end('SIGKILL');
    await this.gateways[gateway].start();
  }

  /** Ends all processes at once. Of the cluster, only its journals are left, as after a power cut. */
  async killAll() {
    if (this.memory === 'threads') {
      await this.gateways[0].end('SIGKILL');
      return;
    }
    const { hosts } = await this.#status();
    for (const { pid } of hosts) {
      if (pid > 0 && existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL');
    }
    await Promise.all(this.gateways.map((gateway) => gateway.end('SIGKILL')));
    try {
      await (await Cluster.attach(this.name)).shutDown({ force: true });
    } catch (error) {
      // A host that had just been restarted may have seen that its starter is gone, and have tidied up.
      if (/** @type {{ code?: string }} */ (error).code !== 'TRAM_NOT_FOUND') throw error;
    }
  }

  async #status() {
    const cluster = await Cluster.attach(this.name);
    try {
      return cluster.status();
    } finally {
      await cluster.close();
    }
  }
}
