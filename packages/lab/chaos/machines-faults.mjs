/**
 * Makes planned faults happen to a cluster across machines: those of `faults.mjs`, and those of its network. Whoever was
 * cut off is away until the network is whole again and it has delivered what its groups had then.
 */
import { pause } from 'tram-multicast/internal/hosting/oversight.js';
import { Faults } from './faults.mjs';

/**
 * @typedef {import('./plan.mjs').Fault} Fault
 * @typedef {import('./namespaces.mjs').Machine} Machine
 * @typedef {() => void} Undo
 */

/** A cut that is shorter may end before anybody has noticed. */
const LONG_CUT_MS = 1000;
/** No host. */
const NOBODY = -1;

export class MachinesFaults extends Faults {
  /** While two hosts were cut off from each other for long: how often all groups went on, and how often some stood still. */
  partial = { went: 0, stood: 0 };

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

  /** All hosts but one. @param {number} host */
  machinesBut(host) {
    return this.machinesCluster.hosts
      .filter((_, other) => other !== host)
      .map(({ machine }) => machine);
  }

  /** From all, or from all hosts but not from clients. @param {Fault} fault @param {number} host */
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

  /** @param {readonly [Machine, Machine][]} links  from whom to whom @returns {Undo} */
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
   * What a host sends is lost, or what it is sent: to or from all, or one other host.
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
   * Nobody is away: each of the two reaches the third. It is noted whether all groups go on; what is asked is that they
   * do after it.
   * @param {Fault} fault
   * @param {readonly number[]} hosts
   * @param {Undo} undo
   */
  async partlyCut(fault, hosts, undo) {
    const before = this.furthest();
    await pause(fault.stopMs);
    if (fault.stopMs >= LONG_CUT_MS) {
      const after = this.furthest();
      const stood = before.flatMap((delivered, group) => (after[group] === delivered ? group : []));
      if (stood.length === 0) this.partial.went++;
      else this.partial.stood++;
      if (stood.length > 0) this.log(`groups ${stood} stood still meanwhile`);
    }
    undo();
    for (const host of hosts) await this.untilBack(host);
  }

  /** How far each group has come. */
  furthest() {
    return this.targetsOf(NOBODY);
  }

  /** As if power failed: nobody is told. @param {Fault} fault @param {number} host */
  async killCut(fault, host) {
    const undo = this.cutOff(this.machineOf(host));
    await this.crash(host);
    const memory = fault.fresh ? 'without its memory' : 'with its memory';
    this.note(fault, `host ${host} for ${fault.downMs} ms, then ${memory}`);
    await this.away(host, fault.downMs);
    undo();
    await this.bringBack(host, fault.fresh);
  }

  /** Level with the others. @param {number} host */
  async untilBack(host) {
    const startedMs = Date.now();
    await this.untilLevel(host, this.targetsOf(host));
    this.rejoinedMs.push(Date.now() - startedMs);
    this.log(`host ${host} is level again, ${Date.now() - startedMs} ms`);
  }

  /** Its connections were given up meanwhile. @param {Fault} fault @param {number} host */
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
