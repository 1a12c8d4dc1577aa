/**
 * Machines for network tests: Linux network namespaces with an address each, joined by a bridge. The bridge lies in a
 * namespace of its own, so the network of the real machine is not touched. Tests and chaos runs start processes on them and
 * break their connections.
 *
 * A cut is a black hole: packets do not arrive, and no error is reported to the sender. To this end every machine has
 * permanent neighbour entries for the link addresses of all others. If it had to resolve them, the kernel would notice
 * within seconds that nobody answers and report the host as unreachable.
 *
 * All calls are synchronous: when one returns, it has taken effect. Needs root and iproute2 (`Machines.missing`).
 */
import { spawn } from 'node:child_process';
import {
  attempt,
  batch,
  killAllIn,
  missingForNamespaces,
  newRun,
  pidsIn,
  removeLeftovers,
  removeNamespaces,
  run,
} from './namespace-commands.mjs';

/** Two runs may use the same addresses: their networks are separate. */
const NETWORK = '10.77.0';
const MACHINES_MAX = 250;
/** A link address that no machine has: the bridge drops packets to it. */
const NOWHERE = '02:00:00:00:ff:ff';
const LINK_MS = 10_000;
const LOOK_MS = 2;
/** Delayed packets are bounded by time, not by netem's default of 1000 packets. */
const DELAYED_PACKETS_MAX = 100_000;

/** @typedef {import('./namespaces.d.mts').Delay} Delay */

export class Machine {
  /** @type {Set<import('node:child_process').ChildProcess>} */
  children = new Set();
  /** Machines that packets from here do not reach. @type {Set<Machine>} */
  unreachable = new Set();
  isCutOff = false;
  isDelayed = false;

  /** @param {string} run @param {number} index */
  constructor(run, index) {
    this.index = index;
    this.name = `m${index}`;
    this.namespace = `${run}-${this.name}`;
    /** The machine's end of its cable is `eth0`; this is the end at the bridge. */
    this.port = `port${index}`;
    this.address = `${NETWORK}.${index + 1}`;
    this.linkAddress = `02:00:00:00:00:${(index + 1).toString(16).padStart(2, '0')}`;
  }

  /**
   * Runs a program on this machine. `nsenter` executes the program in place, so its pid is the program's and signals reach it.
   * @param {string} command
   * @param {readonly string[]} [args]
   * @param {import('node:child_process').SpawnOptions} [options]
   */
  spawn(command, args = [], options = {}) {
    const enter = [`--net=/run/netns/${this.namespace}`, '--', command, ...args];
    const child = spawn('nsenter', enter, options);
    this.children.add(child);
    child.once('close', () => this.children.delete(child));
    return child;
  }

  /** All processes on it, including descendants of those that were spawned. */
  pids() {
    return pidsIn(this.namespace);
  }

  /**
   * Kills all processes on it. The kernel closes their connections, and peers notice. To simulate a power failure, cut the
   * machine off first.
   */
  kill() {
    // A child that was only just spawned may not have entered the namespace yet.
    for (const child of this.children) child.kill('SIGKILL');
    killAllIn(this.namespace);
  }
}

export class Machines {
  isClosed = false;

  /** Why machines cannot be made here and how to change that; nothing if they can. */
  static missing() {
    return missingForNamespaces();
  }

  /**
   * @param {number} count
   * @param {{ prefix?: string }} [options]
   */
  static create(count, { prefix = 'tram' } = {}) {
    if (!(count >= 1 && count <= MACHINES_MAX)) {
      throw new RangeError(`there can be 1 to ${MACHINES_MAX} machines, not ${count}`);
    }
    const reason = Machines.missing();
    if (reason !== undefined) throw new Error(reason);
    removeLeftovers(prefix);
    const machines = new Machines(newRun(prefix), count);
    try {
      machines.build();
    } catch (error) {
      machines.close();
      throw error;
    }
    return machines;
  }

  /** Use `create`. @param {string} run @param {number} count */
  constructor(run, count) {
    this.switch = `${run}-switch`;
    this.all = Array.from({ length: count }, (_, index) => new Machine(run, index));
    this.closeAtExit = () => this.close();
    process.once('exit', this.closeAtExit);
  }

  get namespaces() {
    return [this.switch, ...this.all.map(({ namespace }) => namespace)];
  }

  build() {
    batch(
      [],
      this.namespaces.map((namespace) => `netns add ${namespace}`),
    );
    batch(this.inSwitch, ['link add bridge type bridge', 'link set bridge up']);
    batch(this.inSwitch, this.all.flatMap(cableOf));
    for (const machine of this.all) batch(within(machine), this.setupOf(machine));
    this.awaitLinks();
  }

  get inSwitch() {
    return ['-n', this.switch];
  }

  /** @param {Machine} machine */
  setupOf(machine) {
    return [
      'link set lo up',
      `link set eth0 address ${machine.linkAddress} up`,
      `address add ${machine.address}/24 dev eth0`,
      ...this.all.filter((other) => other !== machine).map((other) => neighbourOf(other)),
    ];
  }

  /** The kernel lets a cable carry packets some time after both of its ends are up. */
  awaitLinks() {
    const deadlineMs = Date.now() + LINK_MS;
    const isCarrying = () =>
      JSON.parse(run('bridge', [...this.inSwitch, '-json', 'link', 'show'])).every(
        (/** @type {{ state: string }} */ { state }) => state === 'forwarding',
      );
    while (!isCarrying()) {
      if (Date.now() > deadlineMs)
        throw new Error(`no link of ${this.switch} within ${LINK_MS} ms`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS);
    }
  }

  // --- faults --------------------------------------------------------------------------------

  /**
   * Cuts off one machine from all others, or two from each other, in both directions.
   * @param {Machine} machine
   * @param {Machine} [other]
   */
  cut(machine, other) {
    if (other === undefined) {
      this.setPort(machine, 'disabled');
      machine.isCutOff = true;
    } else {
      this.cutOneWay(machine, other);
      this.cutOneWay(other, machine);
    }
  }

  /** Loses all packets from one machine to the other, acknowledgements too. @param {Machine} from @param {Machine} to */
  cutOneWay(from, to) {
    batch(within(from), [neighbourOf(to, NOWHERE)]);
    from.unreachable.add(to);
  }

  /**
   * Delays or loses packets to a machine. With jitter, packets also overtake each other.
   * @param {Machine} machine
   * @param {Delay} delay
   */
  delay(machine, { ms = 0, jitterMs = 0, lossPercent = 0 }) {
    const netem = `delay ${ms}ms ${jitterMs}ms loss ${lossPercent}% limit ${DELAYED_PACKETS_MAX}`;
    const { stderr, status } = this.setQueue('replace', machine.port, `netem ${netem}`);
    if (status !== 0)
      throw new Error(
        `can't delay (${stderr.trim()}): modprobe sch_netem, or use a kernel that has it`,
      );
    machine.isDelayed = true;
  }

  /** Whether the kernel has netem, which `delay` needs. */
  get canDelay() {
    const isThere = this.setQueue('add', 'bridge', 'netem').status === 0;
    if (isThere) this.setQueue('delete', 'bridge');
    return isThere;
  }

  /**
   * Undoes one `cut` with the same machines, or all faults. A connection continues with its next retransmission. After a
   * long cut that may take as long again.
   * @param {Machine} [machine]
   * @param {Machine} [other]
   */
  heal(machine, other) {
    if (machine === undefined) {
      this.healAll();
    } else if (other === undefined) {
      this.setPort(machine, 'forwarding');
      machine.isCutOff = false;
    } else {
      this.healOneWay(machine, other);
      this.healOneWay(other, machine);
    }
  }

  /** @param {Machine} from @param {Machine} to */
  healOneWay(from, to) {
    batch(within(from), [neighbourOf(to)]);
    from.unreachable.delete(to);
  }

  /** @param {Machine} machine */
  endDelay(machine) {
    if (machine.isDelayed) this.setQueue('delete', machine.port);
    machine.isDelayed = false;
  }

  healAll() {
    for (const machine of this.all) {
      for (const other of machine.unreachable) this.healOneWay(machine, other);
      this.endDelay(machine);
      if (machine.isCutOff) this.heal(machine);
    }
  }

  /**
   * The bridge drops packets from and to a disabled port. The machine still sees its link as up.
   * @param {Machine} machine
   * @param {'disabled' | 'forwarding'} state
   */
  setPort({ port }, state) {
    // `ip link set … type bridge_slave state` is no substitute: it succeeds without effect.
    run('bridge', [...this.inSwitch, 'link', 'set', 'dev', port, 'state', state]);
  }

  /** @param {string} verb @param {string} device @param {string} [queue] */
  setQueue(verb, device, queue = '') {
    const what = ['qdisc', verb, 'dev', device, 'root', ...queue.split(' ').filter(Boolean)];
    return attempt('tc', [...this.inSwitch, ...what]);
  }

  /** Kills all processes on the machines and removes them. Called at exit if the process does not call it before. */
  close() {
    if (this.isClosed) return;
    this.isClosed = true;
    process.off('exit', this.closeAtExit);
    for (const machine of this.all) machine.kill();
    removeNamespaces(this.namespaces);
  }
}

/** The bridge's end and the machine's. @param {Machine} machine */
function cableOf({ port, namespace }) {
  return [
    `link add ${port} type veth peer name eth0 netns ${namespace}`,
    `link set ${port} master bridge up`,
  ];
}

/** @param {Machine} machine */
function within({ namespace }) {
  return ['-n', namespace];
}

/** The command that sets the neighbour entry for a machine. @param {Machine} machine */
function neighbourOf({ address, linkAddress }, at = linkAddress) {
  return `neighbour replace ${address} lladdr ${at} dev eth0 nud permanent`;
}
