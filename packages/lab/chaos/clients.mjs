/**
 * The client processes of a run, seen from the run: starts them, kills and replaces them, and lets them finish.
 * Called by `round.mjs` and `soak-phase.mjs`.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Calm, pause } from 'tram-multicast/internal/hosting/oversight.js';

/**
 * @typedef {object} Totals
 * @property {number} sent
 * @property {number} answered
 * @property {number} givenUp
 * @property {number} audits
 * @property {number} wrongAudits
 */

/**
 * @typedef {object} Running
 * @property {string} name
 * @property {string | undefined} traceName  its name in the trace, once it is connected
 * @property {import('node:child_process').ChildProcess} child
 * @property {boolean} isConnected
 * @property {boolean} isKilled     by the run
 * @property {boolean} isStruck     a fault is under way
 * @property {boolean} isOver
 * @property {Totals | undefined} totals
 * @property {import('./load.mjs').Audit | undefined} audit  the first one, if it was to make one
 */

const SCRIPT = fileURLToPath(new URL('./client.mjs', import.meta.url));
const LOOK_MS = 5;
const CONNECT_MS = 60_000;
const CATCH_UP_MS = 60_000;

/**
 * Starts a script with arguments, an IPC channel and piped stderr.
 * @typedef {(script: string, args: string[]) => import('node:child_process').ChildProcess} Starter
 */

/** @type {import('node:child_process').StdioOptions} */
export const CLIENT_STDIO = ['ignore', 'ignore', 'pipe', 'ipc'];

/** @type {Starter} */
const startHere = (script, args) => fork(script, args, { stdio: CLIENT_STDIO });

export class Clients {
  /** @type {Running[]} */
  running = [];
  /** Trace names of the clients that were killed. @type {string[]} */
  crashed = [];
  /** Names of the clients that were killed, connected or not. @type {string[]} */
  killed = [];
  /** Of all clients that were ever started. @type {number[]} */
  pids = [];
  started = 0;

  /**
   * @param {string} address  of the cluster
   * @param {(name: string, number: number) => import('./load.mjs').ClientSettings} settingsOf
   * @param {(complaint: string) => void} complain
   * @param {Starter} [startProcess]  starts clients elsewhere than on this machine
   */
  constructor(address, settingsOf, complain, startProcess = startHere) {
    this.address = address;
    this.settingsOf = settingsOf;
    this.complain = complain;
    this.startProcess = startProcess;
  }

  /** Starts a client; returns once it is connected. */
  async start() {
    const number = this.started++;
    const name = `k${number}`;
    const settings = this.settingsOf(name, number);
    const child = this.startProcess(SCRIPT, [this.address, JSON.stringify(settings)]);
    /** @type {Running} */
    const client = {
      name,
      traceName: undefined,
      child,
      isConnected: false,
      isKilled: false,
      isStruck: false,
      isOver: false,
      totals: undefined,
      audit: undefined,
    };
    let printed = '';
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      printed += text;
    });
    child.on('message', (/** @type {any} */ message) => {
      if (message.what === 'connected') {
        client.isConnected = true;
        client.traceName = message.name;
        client.audit = message.audit;
      } else {
        client.totals = message;
        child.kill('SIGKILL');
      }
    });
    child.on('close', (code, signal) => {
      client.isOver = true;
      if (client.isKilled || client.totals !== undefined) return;
      this.complain(`client ${name} ended by itself (${signal ?? code}): ${printed}`);
    });
    if (child.pid !== undefined) this.pids.push(child.pid);
    this.running.push(client);
    await until(() => client.isConnected || client.isOver, CONNECT_MS, `client ${name} connects`);
    return client;
  }

  /** Picks a client that no fault has struck, if there is one. @param {number} draw */
  pick(draw) {
    const unharmed = this.running.filter(({ isStruck, isOver }) => !isStruck && !isOver);
    return unharmed.length === 0 ? undefined : unharmed[draw % unharmed.length];
  }

  /** Kills the process of a client, as a crash does. @param {Running} client */
  async kill(client) {
    client.isKilled = true;
    client.child.kill('SIGKILL');
    while (!client.isOver) await pause(LOOK_MS);
    this.killed.push(client.name);
    if (client.traceName !== undefined) this.crashed.push(client.traceName);
    this.running.splice(this.running.indexOf(client), 1);
  }

  /** Lets all clients finish: each waits until its messages are answered. @param {number} timeoutMs */
  async finish(timeoutMs) {
    for (const { child, isOver } of this.running) if (!isOver) child.send('stop');
    await until(
      () => this.running.every(({ isOver }) => isOver),
      timeoutMs,
      () => {
        const silent = this.running.filter(({ isOver }) => !isOver).map(({ name }) => name);
        return `all messages of the clients ${silent.join(', ')} are answered`;
      },
    );
  }

  /** The totals of the clients that have finished. */
  get finished() {
    return this.running.flatMap(({ totals }) => (totals === undefined ? [] : [totals]));
  }

  /** By trace name, how many messages each client that has finished gave up. */
  get givenUpByFinished() {
    return new Map(
      this.running.flatMap(({ traceName, totals }) =>
        traceName === undefined || totals === undefined ? [] : [[traceName, totals.givenUp]],
      ),
    );
  }

  /**
   * Waits until no message waits, and asks every replica, not only leaders, to write a fingerprint of its state.
   * @param {number} groups @param {string} directory @param {number} timeoutMs
   */
  async takeFingerprints(groups, directory, timeoutMs) {
    const settings = { name: 'last', seed: 0, groups, fingerprints: directory };
    const child = this.startProcess(SCRIPT, [this.address, JSON.stringify(settings)]);
    if (child.pid !== undefined) this.pids.push(child.pid);
    let isDone = false;
    child.on('message', (/** @type {any} */ { what }) => {
      if (what !== 'done') return;
      isDone = true;
      child.kill('SIGKILL');
    });
    await until(
      () => child.exitCode !== null || child.signalCode !== null,
      timeoutMs,
      'nothing waits any more, and all replicas write their fingerprints',
    );
    if (!isDone) this.complain('the client that takes fingerprints failed');
  }

  /** Kills all clients that still run, at once. */
  async destroy() {
    const left = this.running.filter(({ isOver }) => !isOver);
    for (const client of left) {
      client.isKilled = true;
      client.child.kill('SIGKILL');
    }
    for (const client of left) await this.kill(client);
  }
}

/**
 * Waits until all replicas are members, have delivered the same, and deliver no more. Once is not enough: what a replica has
 * delivered it notes only after it has replied. @param {{ status(): any }} cluster
 */
export async function untilCaughtUp(cluster) {
  const calm = new Calm();
  /** @returns {import('tram-multicast').GroupStatus[]} */
  const look = () => cluster.status().groups;
  const isMember = (/** @type {import('tram-multicast').ReplicaStatus} */ { state, role }) =>
    state === 'up' && role !== 'recovering';
  await until(
    () => {
      const groups = look();
      const areStill = calm.holds(groups, Date.now());
      return areStill && groups.every(({ replicas }) => replicas.every(isMember));
    },
    CATCH_UP_MS,
    () => `all replicas have delivered the same: ${JSON.stringify(look())}`,
  );
}

/** A check failed: the cluster did not keep a promise. */
export class CheckError extends Error {
  name = 'CheckError';
}

/**
 * Waits for a condition that a correct cluster reaches.
 * @param {() => boolean} isSo
 * @param {number} timeoutMs
 * @param {string | (() => string)} what
 */
export async function until(isSo, timeoutMs, what) {
  const deadlineMs = Date.now() + timeoutMs;
  while (!isSo()) {
    if (Date.now() > deadlineMs) {
      const text = typeof what === 'string' ? what : what();
      throw new CheckError(`did not happen within ${timeoutMs} ms: ${text}`);
    }
    await pause(LOOK_MS);
  }
}
