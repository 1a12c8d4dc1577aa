/**
 * A cluster across machines as a chaos run has it: `tram host` on machines made of network namespaces, and one more machine
 * for clients. Called by rounds and by tests.
 *
 * How the hosts are is read from their memory in /dev/shm, which all namespaces share. So it can be seen however the
 * network is cut, and nothing that is looked at depends on what is being tried.
 */
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import { readClusterFile } from 'tram-multicast/internal/hosting/machines/cluster-file.js';
import { makeSecret } from 'tram-multicast/internal/hosting/machines/secret.js';
import { pause } from 'tram-multicast/internal/hosting/oversight.js';
import { ROLES } from 'tram-multicast/internal/hosting/replica-agent.js';
import { STATISTIC } from 'tram-multicast/internal/hosting/statistics.js';
import { TraceFile } from 'tram-multicast/internal/hosting/trace.js';
import { HOST, HOST_STATE, hostStateOf, PROCESS } from 'tram-multicast/internal/memory/arena.js';
import { arenaPath, openArenaFile } from 'tram-multicast/internal/memory/processes/arena-file.js';
import { describeBallot, NO_BALLOT } from 'tram-multicast/internal/protocol/leadership/ballot.js';
import { Peer, ROW_RECORD_WORDS } from 'tram-multicast/internal/protocol/leadership/rows.js';
import { CheckError, CLIENT_STDIO, until } from './clients.mjs';
import { Machines } from './namespaces.mjs';

const COMMAND = fileURLToPath(new URL('../../tram/dist/cli/main.js', import.meta.url));
const SERVICE = fileURLToPath(new URL('./bank.mjs', import.meta.url));
export const PORT = 7411;
export const HTTP_PORT = 7412;
const START_MS = 60_000;
const END_MS = 20_000;
const LOOK_MS = 5;
/** A row that is being written is whole a moment later. */
const ROW_ATTEMPTS = 100;
/** As pino has them: errors, and what ends a process. */
const ERROR_LEVEL = 50;

/**
 * @typedef {object} Events
 * @property {(text: string) => void} log
 * @property {(complaint: string) => void} complain  a host ended by itself
 */

/**
 * @typedef {object} MachinesOptions
 * @property {string} directory  for configuration, secret and logs
 * @property {string} name       of the cluster
 * @property {number} hosts
 * @property {number} [guests]   further machines
 * @property {string} [trace]    a directory
 * @property {Record<string, unknown>} cluster  the options that are left
 */

/**
 * A host as the run sees it.
 * @typedef {object} HostProcess
 * @property {string} name
 * @property {string} memory     its file
 * @property {import('./namespaces.mjs').Machine} machine
 * @property {import('node:child_process').ChildProcess | undefined} child
 * @property {import('tram-multicast/internal/memory/processes/arena-file.js').ArenaFile | undefined} arena
 */

/** @typedef {import('tram-multicast').GroupStatus} GroupStatus */

export class MachinesCluster {
  /** @type {HostProcess[]} */
  hosts = [];
  /** Processes that end because we want it. @type {WeakSet<import('node:child_process').ChildProcess>} */
  ending = new WeakSet();

  /** @param {MachinesOptions} options @param {Events} events */
  constructor(options, events) {
    this.options = options;
    this.events = events;
    const { directory, name, hosts, guests = 0, trace, cluster } = options;
    this.machines = Machines.create(hosts + 1 + guests);
    const { all } = this.machines;
    /** Where clients run. */
    this.home = all[hosts];
    this.guests = all.slice(hosts + 1);
    this.hosts = all.slice(0, hosts).map((machine, host) => ({
      name: `h${host}`,
      memory: arenaPath(`${name}-h${host}`),
      machine,
      child: undefined,
      arena: undefined,
    }));
    /** The configuration, which is all that clients need. */
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
    await Promise.all(this.hosts.map((_, host) => this.startHost(host)));
    await until(
      () => this.status().groups.every(({ leader }) => leader !== undefined),
      START_MS,
      'every group has a leader',
    );
  }

  // --- hosts ---------------------------------------------------------------------------------

  /** Returns once it runs its replicas. @param {number} number */
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
      this.events.complain(`host ${number} ended by itself: ${signal ?? code}`);
    });
    const deadlineMs = Date.now() + START_MS;
    while (this.stateOf(number) !== 'up') {
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

  /** @param {number} number @param {{ fresh: boolean }} how  without the memory that it left behind */
  async restart(number, { fresh }) {
    if (fresh) rmSync(this.hosts[number].memory, { force: true });
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

  /** What a host has logged, from its first life on. @param {number} number @returns {string[]} */
  linesOf(number) {
    return readFileSync(this.logOf(number), 'utf8').split('\n').filter(Boolean);
  }

  // --- looking -------------------------------------------------------------------------------

  /** @returns the words of its arena, once they are there. @param {number} number */
  wordsOf(number) {
    const host = this.hosts[number];
    try {
      host.arena ??= openArenaFile(host.memory);
    } catch {
      // It has not been made as yet.
    }
    return host.arena?.words;
  }

  /** @param {number} number @returns {'up' | 'starting' | 'down'} */
  stateOf(number) {
    const { child } = this.hosts[number];
    if (child === undefined || hasEnded(child)) return 'down';
    const words = this.wordsOf(number);
    if (words === undefined) return 'starting';
    const line = this.context.map.host(number);
    // An earlier life has left its state behind.
    const isOfThisLife = words[line + HOST.pid] === child.pid;
    const isRunning = hostStateOf(words[line + HOST.state]) === HOST_STATE.running;
    return isOfThisLife && isRunning ? 'up' : 'starting';
  }

  /** As `Cluster.status`, as far as runs need it. */
  status() {
    const { parents } = this.config;
    const hosts = this.hosts.map(({ child }, host) => ({
      host,
      pid: child?.pid ?? 0,
      state: this.stateOf(host),
    }));
    return { groups: parents.map((_, group) => this.groupStatus(group, hosts)), hosts };
  }

  /** @param {number} group @param {{ state: 'up' | 'starting' | 'down' }[]} hosts */
  groupStatus(group, hosts) {
    const { replicas: count } = this.config.sizes;
    const members = Array.from({ length: count }, (_, member) => {
      const process = this.context.layout.replicaProcess(group, member);
      const host = this.context.map.hostOf(process);
      return this.memberStatus(process, host, hosts[host].state);
    });
    const leader = leaderAmong(members);
    const replicas = members.map(({ row, ...status }, member) => ({ group, member, ...status }));
    const ballot =
      leader === undefined ? undefined : describeBallot(members[leader].row?.ledBallot ?? 0);
    return { group, leader, ballot, replicas };
  }

  /** @param {number} process @param {number} host @param {'up' | 'starting' | 'down'} state */
  memberStatus(process, host, state) {
    const { context } = this;
    const { map } = context;
    const words = this.wordsOf(host);
    const row = words === undefined ? undefined : this.readRow(words, process);
    const incarnation = words?.[map.process(process) + PROCESS.incarnation] ?? 0;
    const statistics = map.statisticsOf(process);
    // What an earlier life has left behind says nothing of this one.
    const hasPublished = row?.incarnation === incarnation;
    const isNormal = hasPublished && row.normal;
    return {
      name: context.nameOf(process),
      host,
      state,
      hasPublished,
      role: isNormal ? ROLES[words?.[statistics + STATISTIC.role] ?? 0] : 'recovering',
      incarnation,
      delivered: row?.delivered ?? 0,
      messages: (words?.[statistics + STATISTIC.messages] ?? 0) >>> 0,
      timesLed: words?.[statistics + STATISTIC.timesLed] ?? 0,
      row,
    };
  }

  /** @param {Int32Array} words @param {number} process */
  readRow(words, process) {
    const { layout, map } = this.context;
    const at = map.region(process) + layout.row;
    const row = new Peer(process, layout.sizes.origin, 0, 0);
    for (let attempt = 0; attempt < ROW_ATTEMPTS; attempt++) {
      row.buffer.words.set(words.subarray(at, at + ROW_RECORD_WORDS));
      if (row.accept(0)) return row;
    }
    return undefined;
  }

  /** Ask a replica to lead its group. @param {number} group @param {number} member */
  lead(group, member) {
    const { layout, map } = this.context;
    const process = layout.replicaProcess(group, member);
    const words = this.wordsOf(map.hostOf(process));
    if (words !== undefined) Atomics.add(words, map.process(process) + PROCESS.standRequests, 1);
  }

  // --- clients -------------------------------------------------------------------------------

  /** For `Clients`: on the machine that is theirs. */
  get startClient() {
    return (/** @type {string} */ script, /** @type {string[]} */ args) =>
      this.home.spawn(process.execPath, [script, ...args], { stdio: CLIENT_STDIO });
  }

  // --- the end -------------------------------------------------------------------------------

  /** Errors that hosts have logged. @returns {string[]} */
  get errors() {
    return this.hosts.flatMap(({ name }, host) =>
      this.linesOf(host)
        .filter((line) => !line.startsWith('{') || JSON.parse(line).level >= ERROR_LEVEL)
        .map((line) => `${name} says: ${line}`),
    );
  }

  /** Let all hosts end as they should; the history ends with it. @param {string[]} crashedClients */
  async close(crashedClients) {
    const ends = this.hosts.map((_, host) => this.end(host, 'SIGTERM'));
    const codes = await Promise.race([Promise.all(ends), pause(END_MS)]);
    if (codes?.some((code) => code !== 0) !== false) {
      throw new CheckError(`hosts that were told to end exited with ${codes ?? 'nothing'}`);
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

  /** Whatever they do. */
  async destroy() {
    await Promise.all(this.hosts.map((_, host) => this.end(host, 'SIGKILL')));
    this.removeAll();
  }

  removeAll() {
    for (const host of this.hosts) {
      host.arena?.close();
      host.arena = undefined;
      rmSync(host.memory, { force: true });
    }
    this.machines.close();
  }
}

/** @param {import('node:child_process').ChildProcess} child */
function hasEnded({ exitCode, signalCode }) {
  return exitCode !== null || signalCode !== null;
}

/**
 * Who leads: of those that are up the one with the highest ballot, unless most have promised a higher one.
 * @param {{ state: string, role: string, row: Peer | undefined }[]} members
 */
function leaderAmong(members) {
  let leader;
  let ledBallot = NO_BALLOT;
  for (const [member, { state, role, row }] of members.entries()) {
    const led = row?.ledBallot ?? NO_BALLOT;
    if (state !== 'up' || role === 'recovering' || led <= ledBallot) continue;
    ledBallot = led;
    leader = member;
  }
  const doubters = members.filter(({ row }) => row === undefined || row.promised > ledBallot);
  return 2 * doubters.length > members.length ? undefined : leader;
}
