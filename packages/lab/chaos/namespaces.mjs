/**
 * Machines to try a network on: Linux network namespaces with an address each, joined by a bridge that lies in a
 * namespace of its own, so that the network of the real machine is not touched. Tests and chaos runs start
 * processes on them and let connections break.
 *
 * Whatever is cut is a black hole: nothing is refused and nothing is unreachable, packets just do not arrive. For
 * that, every machine has fixed entries for the link addresses of all others. If it had to ask for them, it would
 * notice within seconds that nobody answers, and the kernel would tell its connections.
 *
 * All calls are synchronous: when one returns, its effect is there. Needs root and iproute2 (`Machines.missing`).
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';

/** Two runs may use the same addresses: their networks are separate. */
const NETWORK = '10.77.0';
const MACHINES_MAX = 250;
/** A link address that nobody has: what is sent there gets lost in the bridge. */
const NOWHERE = '02:00:00:00:ff:ff';
const LINK_MS = 10_000;
const LOOK_MS = 2;
/** What waits in a delay is bounded by time, and not by netem's usual 1000 packets. */
const DELAYED_PACKETS_MAX = 100_000;
const SYSTEM_FOLDERS = '/usr/sbin:/sbin';
const PROGRAMS = [
  { program: 'ip', option: '-Version', package: 'iproute2' },
  { program: 'bridge', option: '-Version', package: 'iproute2' },
  { program: 'tc', option: '-Version', package: 'iproute2' },
  { program: 'nsenter', option: '--version', package: 'util-linux' },
];

/** @typedef {import('./namespaces.d.mts').Delay} Delay */

export class Machine {
  /** @type {Set<import('node:child_process').ChildProcess>} */
  children = new Set();
  /** Those that nothing from here reaches. @type {Set<Machine>} */
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
   * Run a program on this machine. `nsenter` becomes the program, so its pid is the program's, and signals reach it.
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

  /** All processes on it, also those that others of them have started. */
  pids() {
    return pidsIn(this.namespace);
  }

  /**
   * Kill all processes on it. Its kernel lives on and closes their connections, which others notice; if power is to
   * fail, cut it off first.
   */
  kill() {
    // One that has only just been started may not be there yet.
    for (const child of this.children) child.kill('SIGKILL');
    killAllIn(this.namespace);
  }
}

export class Machines {
  isClosed = false;

  /**
   * Why there can be none here and what to do about it, in one sentence; nothing if all is well.
   * @returns {string | undefined}
   */
  static missing() {
    if (process.platform !== 'linux')
      return 'network namespaces are there on Linux only: use Linux';
    if (process.getuid?.() !== 0) return 'only root may make network namespaces: run it as root';
    const absent = PROGRAMS.find(({ program, option }) => attempt(program, [option]).error);
    if (absent) return `${absent.program} is missing: apt-get install -y ${absent.package}`;
    const refusal = tryNamespace();
    return (
      refusal && `network namespaces can't be made (${refusal}): allow it, as --privileged does`
    );
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
      ...this.all.filter((other) => other !== machine).map((other) => knowing(other)),
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
   * One machine from all others, or two from each other; in both directions.
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

  /** Whatever one sends to the other, also acknowledgements. @param {Machine} from @param {Machine} to */
  cutOneWay(from, to) {
    batch(within(from), [knowing(to, NOWHERE)]);
    from.unreachable.add(to);
  }

  /**
   * The packets to a machine arrive later, or not at all. With a jitter they also overtake each other.
   * @param {Machine} machine
   * @param {Delay} delay
   */
  delay(machine, { ms = 0, jitterMs = 0, lossPercent = 0 }) {
    const netem = `delay ${ms}ms ${jitterMs}ms loss ${lossPercent}% limit ${DELAYED_PACKETS_MAX}`;
    const { stderr, status } = this.setQueue('replace', machine.port, `netem ${netem}`);
    if (status !== 0)
      throw new Error(
        `can't delay (${stderr.trim()}): modprobe sch_netem, or take a kernel that has it`,
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
   * Undo one `cut` with the same machines, or all faults. Connections go on with the next packet that is sent again,
   * which after a long cut may take as long once more.
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
    batch(within(from), [knowing(to)]);
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
   * The bridge drops what comes from or goes to a disabled port. The machine still sees its link.
   * @param {Machine} machine
   * @param {'disabled' | 'forwarding'} state
   */
  setPort({ port }, state) {
    // `ip link set … type bridge_slave state` is no substitute: it succeeds and changes nothing.
    run('bridge', [...this.inSwitch, 'link', 'set', 'dev', port, 'state', state]);
  }

  /** @param {string} verb @param {string} device @param {string} [queue] */
  setQueue(verb, device, queue = '') {
    const what = ['qdisc', verb, 'dev', device, 'root', ...queue.split(' ').filter(Boolean)];
    return attempt('tc', [...this.inSwitch, ...what]);
  }

  /** Kill what runs on the machines and remove them. If the process ends before, that is done at its exit. */
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

/** How others reach a machine. @param {Machine} machine */
function knowing({ address, linkAddress }, at = linkAddress) {
  return `neighbour replace ${address} lladdr ${at} dev eth0 nud permanent`;
}

// --- namespaces --------------------------------------------------------------------------------

/** The name carries the process that answers for it. @param {string} prefix */
function newRun(prefix) {
  return `${prefix}-${process.pid}-${randomBytes(3).toString('hex')}`;
}

/** @returns {string | undefined} what speaks against it */
function tryNamespace() {
  const name = `${newRun('tram')}-probe`;
  try {
    batch([], [`netns add ${name}`]);
    batch(['-n', name], ['link add bridge type bridge', 'link add port type veth']);
    return undefined;
  } catch (error) {
    return /** @type {Error} */ (error).message.split('\n')[0];
  } finally {
    removeNamespaces([name]);
  }
}

/** Of runs whose process was killed. @param {string} prefix */
function removeLeftovers(prefix) {
  const leftovers = namespaceNames().filter((name) => {
    const owner = /^-(\d+)-[0-9a-f]{6}-\w+$/.exec(name.slice(prefix.length))?.[1];
    return name.startsWith(prefix) && owner !== undefined && !isAlive(Number(owner));
  });
  for (const name of leftovers) killAllIn(name);
  removeNamespaces(leftovers);
}

/** Those of them that are there: another run may remove the same left-overs. @param {string[]} names */
function removeNamespaces(names) {
  const present = new Set(namespaceNames());
  const removals = names.filter((name) => present.has(name)).map((name) => `netns delete ${name}`);
  const { stderr } = attempt('ip', ['-force', '-batch', '-'], removals.join('\n'));
  const left = namespaceNames().filter((name) => names.includes(name));
  if (left.length > 0) throw new Error(`can't remove ${left}: ${stderr.trim()}`);
}

/** @returns {string[]} */
function namespaceNames() {
  return run('ip', ['netns', 'list'])
    .split('\n')
    .map((line) => line.split(' ')[0])
    .filter(Boolean);
}

/** @param {string} namespace */
function pidsIn(namespace) {
  return attempt('ip', ['netns', 'pids', namespace]).stdout.split('\n').filter(Boolean).map(Number);
}

/** @param {string} namespace */
function killAllIn(namespace) {
  for (const pid of pidsIn(namespace)) signal(pid, 'SIGKILL');
}

// --- processes ---------------------------------------------------------------------------------

/** @param {number} pid */
function isAlive(pid) {
  return signal(pid, 0);
}

/** @param {number} pid @param {NodeJS.Signals | 0} name @returns {boolean} whether there is such a process */
function signal(pid, name) {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH';
  }
}

/** Several commands of `ip` at once. @param {string[]} options @param {string[]} lines */
function batch(options, lines) {
  run('ip', [...options, '-batch', '-'], lines.join('\n'));
}

/** @param {string} program @param {string[]} args @param {string} [input] @returns what it prints */
function run(program, args, input) {
  const { error, status, stdout, stderr } = attempt(program, args, input);
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr.trim()}`);
  return stdout;
}

/** @param {string} program @param {string[]} args @param {string} [input] */
function attempt(program, args, input = '') {
  const env = { ...process.env, PATH: `${process.env.PATH}:${SYSTEM_FOLDERS}`, LC_ALL: 'C' };
  return spawnSync(program, args, { encoding: 'utf8', input, env });
}
