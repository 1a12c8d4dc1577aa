/**
 * The cluster of a chaos run across machines: `tram host` on machines made of network namespaces, and one more machine for
 * clients. Called by rounds and by tests. `machines-status.mjs` reads the status of its hosts.
 */
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import { readClusterFile } from 'tram-multicast/internal/hosting/machines/cluster-file.js';
import { makeSecret } from 'tram-multicast/internal/hosting/machines/secret.js';
import { pause } from 'tram-multicast/internal/hosting/oversight.js';
import { TraceFile } from 'tram-multicast/internal/hosting/trace.js';
import { PARTICIPANT } from 'tram-multicast/internal/memory/arena.js';
import { arenaPath, removeArenaFile } from 'tram-multicast/internal/memory/processes/arena-file.js';
import { CheckError, CLIENT_STDIO, until } from './clients.mjs';
import { hasEnded, MachinesStatus } from './machines-status.mjs';
import { Machines } from './namespaces.mjs';

const COMMAND = fileURLToPath(new URL('../../tram/dist/cli/main.js', import.meta.url));
const SERVICE = fileURLToPath(new URL('./bank.mjs', import.meta.url));
export const PORT = 7411;
export const HTTP_PORT = 7412;
const START_MS = 120_000;
const END_MS = 20_000;
const LOOK_MS = 5;
/** Log levels of pino from `error` up. */
const ERROR_LEVEL = 50;

/**
 * @typedef {object} Events
 * @property {(text: string) => void} log
 * @property {(complaint: string) => void} complain  called if a host ends unasked
 */

/**
 * @typedef {object} MachinesOptions
 * @property {string} directory  for configuration, secret and logs
 * @property {string} name       of the cluster
 * @property {number} hosts
 * @property {number} [guests]   additional machines, without a host
 * @property {string} [trace]    a directory
 * @property {Record<string, unknown>} cluster  the other options of the cluster
 */

/** @typedef {import('./machines-status.mjs').HostProcess} HostProcess */

export class MachinesCluster {
  /** @type {HostProcess[]} */
  hosts = [];
  /** Processes that the run ends on purpose. @type {WeakSet<import('node:child_process').ChildProcess>} */
  ending = new WeakSet();

  /** @param {MachinesOptions} options @param {Events} events */
  constructor(options, events) {
    this.options = options;
    this.events = events;
    const { directory, name, hosts, guests = 0, trace, cluster } = options;
    this.machines = Machines.create(hosts + 1 + guests);
    const { all } = this.machines;
    /** The machine of the clients. */
    this.home = all[hosts];
    this.guests = all.slice(hosts + 1);
    this.hosts = all.slice(0, hosts).map((machine, host) => ({
      name: `h${host}`,
      memory: arenaPath(`${name}-h${host}`),
      machine,
      child: undefined,
      arena: undefined,
    }));
    /** The configuration file: all that clients need. */
    this.address = join(directory, 'cluster.yaml');
    this.secret = join(directory, 'cluster.secret');
    makeSecret(this.secret);
    const config = {
      memory: 'machines',
      name,
      service: SERVICE,
      secret: this.secret,
      ...(trace !== undefined && { trace }),
      ...cluster,
      hosts: this.hosts.map((host) => ({
        name: host.name,
        address: host.machine.address,
        port: PORT,
        http: `${host.machine.address}:${HTTP_PORT}`,
      })),
    };
    // JSON is YAML.
    writeFileSync(this.address, `${JSON.stringify(config, null, 2)}\n`);
  }

  /** Returns once every group has a leader. @param {MachinesOptions} options @param {Events} events */
  static async start(options, events) {
    const cluster = new MachinesCluster(options, events);
    try {
      await cluster.begin();
    } catch (error) {
      await cluster.destroy();
      throw error;
    }
    return cluster;
  }

  async begin() {
    const { config, credentials } = await readClusterFile(this.address);
    this.config = config;
    this.digest = credentials.digest;
    this.context = ClusterContext.onMachines(config, credentials.digest, () => ({
      arena: /** @type {any} */ (undefined),
      network: /** @type {any} */ (undefined),
    }));
    this.observed = new MachinesStatus(this.context, this.hosts);
    await this.startHosts();
  }

  /** Returns once every group has a leader. */
  async startHosts() {
    await Promise.all(this.hosts.map((_, host) => this.startHost(host)));
    await until(
      () => this.status().groups.every(({ leader }) => leader !== undefined),
      START_MS,
      'every group has a leader',
    );
  }

  // --- hosts ---------------------------------------------------------------------------------

  /** Returns once the host runs its replicas. @param {number} number */
  async startHost(number) {
    const host = this.hosts[number];
    host.arena?.close();
    host.arena = undefined;
    const log = openSync(this.logOf(number), 'a');
    const args = [COMMAND, 'host', host.name, '--config', this.address];
    const child = host.machine.spawn(process.execPath, args, { stdio: ['ignore', log, log] });
    closeSync(log);
    host.child = child;
    child.once('close', (code, signal) => {
      if (this.ending.has(child)) return;
      this.events.complain(`host ${number} ended unasked: ${signal ?? code}`);
    });
    const deadlineMs = Date.now() + START_MS;
    while (this.observed.stateOf(number) !== 'up') {
      if (hasEnded(child)) throw new Error(`host ${number} ended while it started`);
      if (Date.now() > deadlineMs)
        throw new Error(`host ${number} did not start in ${START_MS} ms`);
      await pause(LOOK_MS);
    }
  }

  /** SIGKILL. @param {number} number */
  async crash(number) {
    await this.end(number, 'SIGKILL');
  }

  /** Kills all hosts at once, and removes their memory. Also while they start. */
  async cutPower() {
    const ends = this.hosts.map((_, host) => this.end(host, 'SIGKILL'));
    await Promise.all(ends);
    this.removeMemory();
  }

  /** @param {number} number @param {{ fresh: boolean }} how  fresh: remove the memory of the previous incarnation */
  async restart(number, { fresh }) {
    if (fresh) removeArenaFile(this.hosts[number].memory);
    await this.startHost(number);
  }

  /** @param {number} number @param {NodeJS.Signals} signal @returns its exit code, if it has one */
  async end(number, signal) {
    const { child } = this.hosts[number];
    if (child === undefined || hasEnded(child)) return child?.exitCode;
    const exit = once(child, 'exit');
    this.ending.add(child);
    child.kill(signal);
    await exit;
    return child.exitCode;
  }

  /** @param {number} number */
  logOf(number) {
    return join(this.options.directory, `host-${number}.log`);
  }

  /** What a host has logged in all its incarnations. @param {number} number @returns {string[]} */
  linesOf(number) {
    return readFileSync(this.logOf(number), 'utf8').split('\n').filter(Boolean);
  }

  /** The part of `Cluster.status` that runs need. */
  status() {
    return this.observed.read();
  }

  /** Asks a replica to lead its group. @param {number} group @param {number} member */
  lead(group, member) {
    const { layout, map } = this.context;
    const participant = layout.replicaParticipant(group, member);
    const words = this.observed.wordsOf(map.hostOf(participant));
    if (words === undefined) return;
    Atomics.add(words, map.participant(participant) + PARTICIPANT.campaignRequests, 1);
  }

  // --- clients -------------------------------------------------------------------------------

  /** Starts a client of `Clients` on the machine of the clients. */
  get startClient() {
    return (/** @type {string} */ script, /** @type {string[]} */ args) =>
      this.home.spawn(process.execPath, [script, ...args], { stdio: CLIENT_STDIO });
  }

  // --- the end -------------------------------------------------------------------------------

  /** The errors in the logs of all hosts. @returns {string[]} */
  get errors() {
    return this.hosts.flatMap(({ name }, host) =>
      this.linesOf(host)
        .filter((line) => !line.startsWith('{') || JSON.parse(line).level >= ERROR_LEVEL)
        .map((line) => `${name} says: ${line}`),
    );
  }

  /** Shuts down all hosts and ends the trace. @param {string[]} crashedClients */
  async close(crashedClients) {
    const ends = this.hosts.map((_, host) => this.end(host, 'SIGTERM'));
    const codes = await Promise.race([Promise.all(ends), pause(END_MS)]);
    if (codes?.some((code) => code !== 0) !== false) {
      throw new CheckError(`after SIGTERM the hosts exited with ${codes ?? 'nothing'}`);
    }
    this.endTrace(crashedClients);
    this.removeAll();
  }

  /** @param {string[]} crashedClients */
  endTrace(crashedClients) {
    if (this.config.trace === undefined) return;
    const file = new TraceFile(this.config.trace, 'end');
    for (const client of crashedClients) file.add({ event: 'client-crash', client });
    file.add({ event: 'end', quiescent: true });
    file.close();
  }

  /** Kills all hosts that still run. */
  async destroy() {
    await Promise.all(this.hosts.map((_, host) => this.end(host, 'SIGKILL')));
    this.removeAll();
  }

  removeAll() {
    this.removeMemory();
    this.machines.close();
  }

  removeMemory() {
    for (const host of this.hosts) {
      host.arena?.close();
      host.arena = undefined;
      removeArenaFile(host.memory);
    }
  }
}
