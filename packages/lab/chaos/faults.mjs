/**
 * Injects the planned faults into a cluster of processes. Called by `round.mjs`. The lanes of a plan run concurrently.
 * Within a lane the next fault waits until the host or client of the previous one is back.
 */
import { TramError } from 'tram-multicast';
import { pause } from 'tram-multicast/internal/hosting/oversight.js';
import { CheckError, until } from './clients.mjs';
import { REPLICAS } from './plan.mjs';

/** @typedef {import('./plan.mjs').Fault} Fault */

const REJOIN_MS = 60_000;
const GO_ON_MS = 60_000;
/** A shorter stop may end before any member suspects the host. */
const LONG_STOP_MS = 1000;
/** A group must deliver this many messages without a member before that member comes back. */
const MESSAGES_MEANWHILE = 10;
/** Catching up takes this fraction of the time that starting takes: one in so many. */
const CATCH_UP_SHARE = 20;
const DEATH_MS = 10_000;
const LOOK_MS = 5;

export class Faults {
  /** Injected faults by kind. @type {Map<string, number>} */
  counts = new Map();
  /** Hosts that are down, stopped, or coming back. @type {Set<number>} */
  struck = new Set();
  /** For each restart, the time until the host's replicas were members again. @type {number[]} */
  rejoinedMs = [];
  isOver = false;
  isRestartingAfresh = false;

  /**
   * @param {import('tram-multicast').Cluster} cluster
   * @param {import('./clients.mjs').Clients} clients
   * @param {(text: string) => void} log
   */
  constructor(cluster, clients, log) {
    this.cluster = cluster;
    this.clients = clients;
    this.log = log;
  }

  get total() {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  /** @param {import('./plan.mjs').RoundPlan} plan */
  async run({ hostLanes, leadLane, clientLane }) {
    await Promise.all([
      ...hostLanes.map((lane, place) =>
        this.runLane(lane, (fault) => this.strikeHost(fault, this.hostsOfLane(place))),
      ),
      this.runLane(leadLane, (fault) => this.requestLead(fault)),
      this.runLane(clientLane, (fault) => this.strikeClient(fault)),
    ]);
  }

  /** @param {number} lane */
  hostsOfLane(lane) {
    return Array.from({ length: REPLICAS }, (_, member) => lane * REPLICAS + member);
  }

  /**
   * @param {readonly Fault[]} lane
   * @param {(fault: Fault) => Promise<void>} strike
   */
  async runLane(lane, strike) {
    for (const fault of lane) {
      await pause(fault.pauseMs);
      if (this.isOver) return;
      await strike(fault);
    }
  }

  /** @param {Fault} fault @param {string} what */
  note({ kind }, what) {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    this.log(`${kind}: ${what}`);
  }

  // --- hosts ---------------------------------------------------------------------------------

  /** @param {Fault} fault @param {number[]} hosts */
  async strikeHost(fault, hosts) {
    const host = this.aim(fault, hosts);
    this.struck.add(host);
    switch (fault.kind) {
      case 'stop-leader':
      case 'stop-follower':
        await this.stop(fault, host);
        break;
      case 'kill-stopped':
        await this.killStopped(fault, host);
        break;
      case 'kill-again':
        await this.killAgain(fault, host);
        break;
      default:
        await this.kill(fault, host);
    }
    this.struck.delete(host);
  }

  /** The host that has the targeted role; any host if the group has no leader. @param {Fault} fault @param {number[]} hosts */
  aim({ kind, group, draw }, hosts) {
    const { leader, replicas } = this.cluster.status().groups[group];
    if (leader === undefined) return hosts[draw % hosts.length];
    const led = replicas[leader].host;
    if (kind.includes('leader')) return led;
    const others = hosts.filter((host) => host !== led);
    return kind.includes('follower') ? others[draw % others.length] : hosts[draw % hosts.length];
  }

  /** @param {Fault} fault @param {number} host */
  async stop(fault, host) {
    const pid = this.pidOf(host);
    process.kill(pid, 'SIGSTOP');
    this.note(fault, `host ${host} for ${fault.stopMs} ms`);
    await (fault.stopMs < LONG_STOP_MS ? pause(fault.stopMs) : this.away(host, fault.stopMs));
    process.kill(pid, 'SIGCONT');
  }

  /**
   * Waits for the given time, and then until each group of the host has made progress without it.
   * @param {number} host
   * @param {number} leastMs
   */
  async away(host, leastMs) {
    const before = this.cluster
      .status()
      .groups.map((group) => mostWithout(host, group, 'messages'));
    await pause(leastMs);
    const stuck = () =>
      this.cluster
        .status()
        .groups.filter(({ replicas }) => replicas.some((replica) => replica.host === host))
        .filter(
          (group) =>
            mostWithout(host, group, 'messages') < before[group.group] + MESSAGES_MEANWHILE,
        );
    await until(
      () => this.isOver || stuck().length === 0,
      GO_ON_MS,
      () => `groups ${stuck().map(({ group }) => group)} make progress without host ${host}`,
    );
  }

  /** @param {number} host */
  pidOf(host) {
    return this.cluster.status().hosts[host].pid;
  }

  /** @param {Fault} fault @param {number} host */
  async kill(fault, host) {
    await this.crash(host);
    this.note(fault, `host ${host} for ${fault.downMs} ms`);
    await this.away(host, fault.downMs);
    await this.bringBack(host, fault.fresh);
  }

  /** @param {Fault} fault @param {number} host */
  async killStopped(fault, host) {
    process.kill(this.pidOf(host), 'SIGSTOP');
    await pause(fault.stopMs);
    await this.crash(host);
    this.note(fault, `host ${host} after ${fault.stopMs} ms, ${describeRestart(fault)}`);
    await this.away(host, fault.downMs);
    await this.bringBack(host, fault.fresh);
  }

  /** Kills a host twice: the second time while it starts, or while its replicas catch up. @param {Fault} fault @param {number} host */
  async killAgain(fault, host) {
    await this.crash(host);
    await pause(fault.downMs);
    while (this.mustWait(fault.fresh)) await pause(LOOK_MS);
    const restarted = this.restart(host, fault.fresh);
    restarted.catch(() => undefined);
    const isUp = () => this.cluster.status().hosts[host].state === 'up';
    if (fault.draw % 4 < 2) {
      await Promise.race([restarted, until(isUp, REJOIN_MS, `host ${host} is up`)]);
    }
    await pause(fault.draw % 4 < 2 ? fault.againMs / CATCH_UP_SHARE : fault.againMs);
    await this.crash(host);
    const state = await restarted.then(
      () => 'catching up',
      () => 'starting',
    );
    this.note(fault, `host ${host}, ${state} ${describeRestart(fault)}`);
    await this.away(host, fault.downMs);
    await this.bringBack(host, fault.draw % 2 === 0);
  }

  /** @param {number} host */
  async crash(host) {
    await this.cluster.crash(host);
    await until(
      () => this.cluster.status().hosts[host].state === 'down',
      DEATH_MS,
      `host ${host}, which was killed, is down`,
    );
  }

  /** @param {number} host @param {boolean} fresh */
  async restart(host, fresh) {
    while (this.mustWait(fresh)) await pause(LOOK_MS);
    if (this.isOver) return;
    if (!fresh) return this.cluster.restart(host, { fresh });
    this.isRestartingAfresh = true;
    try {
      await this.restartAfresh(host);
    } finally {
      this.isRestartingAfresh = false;
    }
  }

  /**
   * Tries again while TRAM refuses it, because another host is not struck but lags, and has to fetch the state first.
   * @param {number} host
   */
  async restartAfresh(host) {
    const deadlineMs = Date.now() + REJOIN_MS;
    for (;;) {
      try {
        return await this.cluster.restart(host, { fresh: true });
      } catch (error) {
        const isRefused = error instanceof TramError && error.code === 'TRAM_LAST_COPY';
        if (!isRefused || this.isOver || Date.now() > deadlineMs) throw error;
      }
      await pause(LOOK_MS);
    }
  }

  /** TRAM restarts only one host at a time with empty memory, and refuses others. @param {boolean} fresh */
  mustWait(fresh) {
    return fresh && this.isRestartingAfresh && !this.isOver;
  }

  /**
   * Restarts a host and waits until its replicas have delivered as much as their groups had before the restart.
   * @param {number} host
   * @param {boolean} fresh
   */
  async bringBack(host, fresh) {
    const startedMs = Date.now();
    const targets = this.targetsOf(host);
    try {
      await this.restart(host, fresh);
    } catch (error) {
      if (this.isOver) return;
      throw new CheckError(`host ${host} did not restart: ${error}`);
    }
    await this.untilCaughtUp(host, targets);
    this.rejoinedMs.push(Date.now() - startedMs);
    this.log(`host ${host} is back ${describeRestart({ fresh })}, ${Date.now() - startedMs} ms`);
  }

  /** By group, how much a host that comes back must deliver to have caught up. @param {number} host */
  targetsOf(host) {
    return this.cluster.status().groups.map((group) => mostWithout(host, group, 'delivered'));
  }

  /**
   * Waits until all replicas of a host are members and have delivered at least so much.
   * @param {number} host
   * @param {number[]} targets  by group
   */
  async untilCaughtUp(host, targets) {
    const missing = () =>
      this.cluster
        .status()
        .groups.flatMap(({ replicas }) => replicas)
        .filter((replica) => replica.host === host)
        .filter(
          ({ state, role, group, delivered }) =>
            state !== 'up' || role === 'recovering' || delivered < targets[group],
        );
    await until(
      () => this.isOver || missing().length === 0,
      REJOIN_MS,
      () => `${missing().map(({ name }) => name)} of host ${host} are members again`,
    );
  }

  // --- leaders -------------------------------------------------------------------------------

  /** @param {Fault} fault */
  async requestLead(fault) {
    const { leader, replicas } = this.cluster.status().groups[fault.group];
    const able = replicas.filter(({ host, member }) => !this.struck.has(host) && member !== leader);
    if (able.length === 0) return;
    const first = fault.draw % able.length;
    const asked = fault.kind === 'rivals' ? able : [able[first]];
    for (const { group, member } of asked) this.cluster.lead(group, member);
    this.note(fault, asked.map(({ name }) => name).join(' and '));
  }

  // --- clients -------------------------------------------------------------------------------

  /** @param {Fault} fault */
  async strikeClient(fault) {
    const client = this.clients.pick(fault.draw);
    if (client === undefined) return;
    client.isStruck = true;
    if (fault.kind === 'client-kill') {
      await this.clients.kill(client);
      this.note(fault, client.name);
      if (!this.isOver) await this.clients.start();
    } else {
      client.child.kill('SIGSTOP');
      this.note(fault, `${client.name} for ${fault.stopMs} ms`);
      await pause(fault.stopMs);
      client.child.kill('SIGCONT');
    }
    client.isStruck = false;
  }
}

/** @param {{ fresh: boolean }} fault */
function describeRestart({ fresh }) {
  return fresh ? 'with empty memory' : 'with its memory';
}

/**
 * The most that any member on another host has delivered: messages, or entries, which include ticks.
 * @param {number} host
 * @param {import('tram-multicast').GroupStatus} group
 * @param {'messages' | 'delivered'} what
 */
function mostWithout(host, { replicas }, what) {
  const others = replicas.filter((replica) => replica.host !== host);
  return Math.max(...others.map((replica) => replica[what]));
}
