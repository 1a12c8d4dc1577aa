/**
 * Injects the planned faults into a cluster across machines: those of `faults.mjs`, and network faults. Called by
 * `machines-round.mjs`. A host that was cut off counts as away until the network has healed and its replicas have caught up.
 */
import { pause } from 'tram-multicast/internal/hosting/oversight.js';
import { Faults } from './faults.mjs';

/**
 * @typedef {import('./plan.mjs').Fault} Fault
 * @typedef {import('./namespaces.mjs').Machine} Machine
 * @typedef {() => void} Undo
 */

/** A shorter cut may end before any member suspects the host. */
const LONG_CUT_MS = 1000;
const NO_HOST = -1;

export class MachinesFaults extends Faults {
  /** During long partial cuts: how often all groups made progress, and how often some did not. */
  partial = { progressed: 0, stalled: 0 };

  /** @returns {import('./machines-cluster.mjs').MachinesCluster} */
  get machinesCluster() {
    return /** @type {any} */ (this.cluster);
  }

  /** @param {Fault} fault @param {number[]} hosts */
  async strikeHost(fault, hosts) {
    if (!fault.kind.startsWith('cut-') && fault.kind !== 'kill-cut') {
      await super.strikeHost(fault, hosts);
      return;
    }
    const host = this.aim(fault, hosts);
    const others = hosts.filter((other) => other !== host);
    const other = others[(fault.draw >>> 8) % others.length];
    this.struck.add(host);
    switch (fault.kind) {
      case 'cut-pair':
        await this.cutPair(fault, host, other);
        break;
      case 'cut-one-way':
        await this.cutOneWay(fault, host, other);
        break;
      case 'kill-cut':
        await this.killCut(fault, host);
        break;
      default:
        await this.cut(fault, host);
    }
    this.struck.delete(host);
  }

  /** @param {number} host */
  machineOf(host) {
    return this.machinesCluster.hosts[host].machine;
  }

  /** The machines of all hosts but one. @param {number} host */
  machinesBut(host) {
    return this.machinesCluster.hosts
      .filter((_, other) => other !== host)
      .map(({ machine }) => machine);
  }

  /** Cuts a host off from all machines, or from all hosts but not from clients. @param {Fault} fault @param {number} host */
  async cut(fault, host) {
    const machine = this.machineOf(host);
    const undo =
      fault.kind === 'cut-leader-group'
        ? this.cutLinks(this.machinesBut(host).flatMap((other) => both(machine, other)))
        : this.cutOff(machine);
    this.note(fault, `host ${host} for ${fault.stopMs} ms`);
    await this.cutAway(fault, host, undo);
  }

  /** @param {Machine} machine @returns {Undo} */
  cutOff(machine) {
    const { machines } = this.machinesCluster;
    machines.cut(machine);
    return () => machines.heal(machine);
  }

  /** @param {readonly [Machine, Machine][]} links  sender and receiver @returns {Undo} */
  cutLinks(links) {
    const { machines } = this.machinesCluster;
    for (const [from, to] of links) machines.cutOneWay(from, to);
    return () => {
      for (const [from, to] of links) machines.healOneWay(from, to);
    };
  }

  /** @param {Fault} fault @param {number} host @param {Undo} undo */
  async cutAway(fault, host, undo) {
    await (fault.stopMs < LONG_CUT_MS ? pause(fault.stopMs) : this.away(host, fault.stopMs));
    undo();
    await this.untilBack(host);
  }

  /** @param {Fault} fault @param {number} host @param {number} other */
  async cutPair(fault, host, other) {
    const undo = this.cutLinks(both(this.machineOf(host), this.machineOf(other)));
    this.note(fault, `hosts ${host} and ${other} for ${fault.stopMs} ms`);
    await this.partlyCut(fault, [host, other], undo);
  }

  /**
   * Loses the packets of a host in one direction: to or from all machines, or one other host.
   * @param {Fault} fault
   * @param {number} host
   * @param {number} other
   */
  async cutOneWay(fault, host, other) {
    const machine = this.machineOf(host);
    const isOut = (fault.draw & 1) === 0;
    const isAll = (fault.draw & 2) === 0;
    const peers = isAll
      ? [...this.machinesBut(host), this.machinesCluster.home]
      : [this.machineOf(other)];
    const undo = this.cutLinks(peers.map((peer) => (isOut ? [machine, peer] : [peer, machine])));
    const whom = isAll ? 'all' : `host ${other}`;
    this.note(fault, `host ${host} ${isOut ? 'to' : 'from'} ${whom} for ${fault.stopMs} ms`);
    if (isAll) await this.cutAway(fault, host, undo);
    else await this.partlyCut(fault, [host, other], undo);
  }

  /**
   * A cut between two hosts that both reach the third. No host is away. The run records whether all groups make progress
   * meanwhile, and requires it only after the cut.
   * @param {Fault} fault
   * @param {readonly number[]} hosts
   * @param {Undo} undo
   */
  async partlyCut(fault, hosts, undo) {
    const before = this.furthest();
    await pause(fault.stopMs);
    if (fault.stopMs >= LONG_CUT_MS) {
      const after = this.furthest();
      const stalled = before.flatMap((delivered, group) =>
        after[group] === delivered ? group : [],
      );
      if (stalled.length === 0) this.partial.progressed++;
      else this.partial.stalled++;
      if (stalled.length > 0) this.log(`groups ${stalled} made no progress meanwhile`);
    }
    undo();
    for (const host of hosts) await this.untilBack(host);
  }

  /** By group, the most that any member has delivered. */
  furthest() {
    return this.targetsOf(NO_HOST);
  }

  /** A power failure: the host dies and its connections are not closed. @param {Fault} fault @param {number} host */
  async killCut(fault, host) {
    const undo = this.cutOff(this.machineOf(host));
    await this.crash(host);
    const memory = fault.fresh ? 'without its memory' : 'with its memory';
    this.note(fault, `host ${host} for ${fault.downMs} ms, then ${memory}`);
    await this.away(host, fault.downMs);
    undo();
    await this.bringBack(host, fault.fresh);
  }

  /** Waits until a host has caught up with the others. @param {number} host */
  async untilBack(host) {
    const startedMs = Date.now();
    await this.untilCaughtUp(host, this.targetsOf(host));
    this.rejoinedMs.push(Date.now() - startedMs);
    this.log(`host ${host} has caught up, ${Date.now() - startedMs} ms`);
  }

  /** The other hosts may have closed their connections to a stopped host, so it must reconnect. @param {Fault} fault @param {number} host */
  async stop(fault, host) {
    await super.stop(fault, host);
    await this.untilBack(host);
  }
}

/** Both directions. @param {Machine} one @param {Machine} other @returns {[Machine, Machine][]} */
function both(one, other) {
  return [
    [one, other],
    [other, one],
  ];
}
