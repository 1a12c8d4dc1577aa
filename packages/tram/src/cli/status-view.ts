/** A cluster as `tram status` and `tram up` draw it: the tree, leaders, replicas, rates and latencies. */
import type { Histogram } from '../hosting/histogram.js';
import { type Rates, type Reading, shownState } from '../hosting/reading.js';
import type { GroupStatus, HostStatus, ReplicaStatus } from '../hosting/status.js';
import { restartCommand, type Seen } from './attached.js';
import { commandFor } from './cluster-name.js';
import { count, paint } from './colors.js';
import { durabilityLines, slowDisk } from './durability-view.js';
import { duration, HEADING_COLUMNS, inColumns, inRowsOf, padEnd, widthOf } from './texts.js';

// --- for programs ------------------------------------------------------------------------------

export function toJson(
  { name }: Seen,
  reading: Reading,
  rates: Rates,
  latency: Histogram,
): unknown {
  const { status } = reading;
  return {
    name,
    ...status,
    supervised: reading.isSupervised ?? null,
    hosts: status.hosts.map((host) => {
      const why = reading.unreachable.get(host.host);
      const state = shownState(host, reading);
      return why === undefined ? { ...host, state } : { ...host, state, why };
    }),
    groups: status.groups.map((group, index) => ({
      ...group,
      replicas: group.replicas.map((replica) => replicaJson(replica, reading)),
      leader: group.leader ?? null,
      ballot: group.ballot ?? null,
      messagesPerSecond: rates.groups[index],
    })),
    answeredPerSecond: rates.answered,
    latencyNsP50: percentile(latency, 50) ?? null,
    latencyNsP99: percentile(latency, 99) ?? null,
  };
}

/** Nobody knows the numbers of a replica that can't be reached. */
function replicaJson(replica: ReplicaStatus, reading: Reading): unknown {
  const state = shownState(replica, reading);
  if (state !== 'unreachable') return { ...replica, state };
  const { name, group, member, host } = replica;
  return { name, group, member, host, state };
}

function percentile(latency: Histogram, percent: number): number | undefined {
  const value = latency.percentile(percent);
  return Number.isNaN(value) ? undefined : value;
}

// --- for people --------------------------------------------------------------------------------

export interface View {
  readonly cluster: Seen;
  readonly reading: Reading;
  readonly rates: Rates;
  readonly latency: Histogram;
  /** What the latencies cover, in words. */
  readonly latencyOf: string;
  readonly columns: number;
}

export function formatStatus(view: View): string {
  const parts = [
    heading(view),
    '',
    ...groupLines(view),
    '',
    ...hostLines(view),
    ...durabilityLines(view.reading.status, view.columns),
    ...loadLines(view),
  ];
  const troubles = troublesOf(view.cluster, view.reading);
  if (troubles.length > 0) parts.push('');
  for (const { what, advice } of troubles) parts.push(`${paint('red', what)}: ${advice}`);
  return `${parts.join('\n')}\n`;
}

const STATE_COLORS = {
  running: 'green',
  starting: 'yellow',
  closing: 'yellow',
  stalled: 'red',
  'state-lost': 'red',
  down: 'red',
} as const;

function heading({ cluster, reading }: View): string {
  const { groups, hosts, state } = reading.status;
  const size = `${count(groups.length, 'group')} of ${count(groups[0].replicas.length, 'replica')}`;
  const up = hosts.filter((host) => shownState(host, reading) === 'up').length;
  const where =
    up === hosts.length
      ? `on ${count(up, 'host')}`
      : `on ${count(hosts.length, 'host')}, ${up} of them up`;
  return `${paint('bold', cluster.name)} ${paint(STATE_COLORS[state], state)}: ${size} ${where}`;
}

function groupLines({ reading, rates, columns }: View): string[] {
  const { groups } = reading.status;
  const tree = treeOf(groups.map(({ parent }) => parent));
  const treeWidth = Math.max(5, ...tree.map(({ label }) => label.length));
  const lefts = tree.map(({ group, label }) => {
    const { ballot: current, health } = groups[group];
    const ballot = health === 'state-lost' ? undefined : current;
    const ballotText = (ballot ?? (health === 'state-lost' ? 'lost' : 'none')).padStart(7);
    const rate = rates.groups[group].toLocaleString('en-US').padStart(9);
    return `${label.padEnd(treeWidth)} ${ballot === undefined ? paint('red', ballotText) : ballotText} ${rate} `;
  });
  const leftWidth = treeWidth + 19;
  const cells = tree.map(({ group }) => cellsOf(groups[group], reading));
  const cellWidth = Math.max(...cells.flat().map(widthOf)) + 2;
  const perLine = Math.max(1, Math.floor((columns - leftWidth) / cellWidth));
  const lines = [
    paint(
      'dim',
      `${'group'.padEnd(treeWidth)}  ballot     msg/s  delivered by each replica (* leads)`,
    ),
  ];
  for (const [index, left] of lefts.entries()) {
    const rows = inRowsOf(perLine, cells[index]);
    for (const [row, texts] of rows.entries()) {
      const start = row === 0 ? left : ' '.repeat(leftWidth);
      lines.push(
        start +
          texts
            .map((cell) => padEnd(cell, cellWidth))
            .join('')
            .trimEnd(),
      );
    }
  }
  return lines;
}

function cellsOf(group: GroupStatus, reading: Reading): string[] {
  const { status } = reading;
  const everybody = status.groups.flatMap(({ replicas }) => replicas);
  const widest = Math.max(...everybody.map((replica) => delivered(replica).length));
  return group.replicas.map((replica) => {
    const { member, incarnation } = replica;
    const leads = group.leader === member;
    const word = wordFor(replica, reading);
    const text = `${leads ? '*' : ' '}${member} ${(word ?? delivered(replica)).padStart(widest)}`;
    // Across machines incarnations are times.
    const times = incarnation > 1 && status.memory !== 'machines' ? ` ×${incarnation}` : '';
    if (word !== undefined) return paint(colorOf(word), text) + times;
    return (leads ? paint('green', text) : text) + times;
  });
}

function delivered(replica: ReplicaStatus): string {
  return replica.delivered.toLocaleString('en-US');
}

/** What is shown in place of a number, if the replica is not up or not a member. */
function wordFor(replica: ReplicaStatus, reading: Reading): string | undefined {
  const state = shownState(replica, reading);
  if (state !== 'up') return state;
  if (replica.role === 'recovering') return 'recovering';
  return replica.role === 'candidate' ? 'campaigning' : undefined;
}

function colorOf(state: string): 'green' | 'red' | 'yellow' {
  if (state === 'up') return 'green';
  return state === 'down' || state === 'unreachable' ? 'red' : 'yellow';
}

function hostLines({ reading, columns }: View): string[] {
  const { hosts, memory } = reading.status;
  const texts = hosts.map((host) => hostText(host, reading));
  const lines = inColumns('hosts', texts, memory === 'machines' ? 0 : columns);
  return reading.isSupervised === false ? [...lines, UNSUPERVISED] : lines;
}

const UNSUPERVISED = `${' '.repeat(HEADING_COLUMNS)}not supervised: no process restarts hosts that end, until "tram up" does`;

/** `0 up (process 17)`, or across machines `alpha up at 10.0.0.1:7411 (process 17)`. */
function hostText(status: HostStatus, reading: Reading): string {
  const { host, name, address, pid } = status;
  const state = shownState(status, reading);
  const shown = state === 'starting' ? (status.stage ?? state) : state;
  const words = [`${name ?? host}`, paint(colorOf(state), shown)];
  if (address !== undefined) words.push(`at ${address}`);
  const isRunning = state !== 'down' && state !== 'unreachable';
  const more = isRunning ? `process ${pid}` : reading.unreachable.get(host);
  if (more !== undefined) words.push(`(${more})`);
  return words.join(' ');
}

function loadLines({ reading: { status }, rates, latency, latencyOf }: View): string[] {
  const { clients, answered } = status;
  const p50 = percentile(latency, 50);
  const p99 = percentile(latency, 99);
  const answers = `${count(answered, 'message')} answered`;
  return [
    `clients  ${clients.connected} of ${clients.most} connected`,
    `load     ${answers}, ${rates.answered.toLocaleString('en-US')}/s`,
    p50 === undefined || p99 === undefined
      ? `latency  no message was answered ${latencyOf}`
      : `latency  p50 ${duration(p50)}, p99 ${duration(p99)} ${latencyOf}`,
  ];
}

export interface Trouble {
  readonly what: string;
  /** The cause, and what to do. */
  readonly advice: string;
}

const TROUBLES = {
  lost: (groups: string, remedy: string): Trouble => ({
    what: `the state of ${groups} is lost`,
    advice: `too many of their replicas have lost it, and none can get it back. ${remedy}`,
  }),
  starting: (groups: string, remedy: string): Trouble => ({
    what: `no leader in ${groups} yet`,
    advice: `their hosts are starting. ${remedy}`,
  }),
  stateless: (groups: string, remedy: string): Trouble => ({
    what: `no leader in ${groups}`,
    advice: `none of the replicas that run has the state; one that is down may have it. ${remedy}`,
  }),
  leaderless: (groups: string, remedy: string): Trouble => ({
    what: `no leader in ${groups}`,
    advice: `most of their replicas are down or recovering. ${remedy}`,
  }),
  // The leader goes on: it writes into the memory that the others have left behind.
  alone: (groups: string, remedy: string): Trouble => ({
    what: `no replica could replace the leader of ${groups}`,
    advice: `most of their replicas are down or recovering. ${remedy}`,
  }),
  hidden: (groups: string, remedy: string): Trouble => ({
    what: `no leader in ${groups} can be reached from here`,
    advice: `a host that can't be reached may lead. ${remedy}`,
  }),
  electing: (groups: string): Trouble => ({
    what: `no leader in ${groups}`,
    advice: 'an election is under way',
  }),
} as const;

/** Problems of a cluster that its memory shows. */
export function troublesOf(cluster: Seen, { status, stopped }: Reading): Trouble[] {
  const { groups, hosts } = status;
  if (hosts.every(({ state }) => state === 'down')) return [allDown(cluster)];
  const isAbsent = ({ state, host }: ReplicaStatus): boolean =>
    state === 'down' || stopped.has(host);
  const canDecide = (replica: ReplicaStatus): boolean =>
    !isAbsent(replica) && replica.role !== 'recovering';
  const troubleOf = (group: GroupStatus): keyof typeof TROUBLES | undefined => {
    const { leader, health, replicas } = group;
    if (health === 'state-lost') return 'lost';
    if (leader === undefined && replicas.some(({ state }) => state === 'starting'))
      return 'starting';
    const isLost = 2 * replicas.filter(canDecide).length < replicas.length;
    if (isLost) return leader === undefined ? 'leaderless' : 'alone';
    if (health === 'no-majority') return 'stateless';
    if (leader !== undefined) return undefined;
    // On machines, a host that is absent here may be connected to the others.
    return cluster.path === undefined && replicas.some(isAbsent) ? 'hidden' : 'electing';
  };
  const remedyFor = (group: GroupStatus): string => {
    const { health, replicas } = group;
    if (health === 'state-lost') return startAnew(cluster);
    const absent = replicas.find(isAbsent);
    if (absent === undefined) return '';
    const { name, host } = absent;
    const command = stopped.has(host)
      ? commandFor(cluster, `kill ${name} --signal SIGCONT`)
      : restartCommand(cluster, name, host);
    if (troubleOf(group) === 'hidden') {
      return `If its machine was replaced, use the configuration file of the hosts. If it is down, start it: ${command}`;
    }
    return `${stopped.has(host) ? 'Continue' : 'Start'} one: ${command}`;
  };
  const troubles = (Object.keys(TROUBLES) as (keyof typeof TROUBLES)[]).flatMap((trouble) => {
    const those = groups.filter((group) => troubleOf(group) === trouble);
    return those.length === 0 ? [] : [TROUBLES[trouble](namesOf(those), remedyFor(those[0]))];
  });
  return [
    ...troubles,
    ...groups.flatMap(failingSnapshots),
    ...hosts.flatMap(wrongClock(groups)),
    ...hosts.flatMap(slowDisk),
  ];
}

function startAnew(cluster: Seen): string {
  return cluster.path === undefined
    ? `Run \`${commandFor(cluster, 'down --force')}\` on every machine, then start the hosts again`
    : `Start the cluster anew: ${commandFor(cluster, 'down')}, then ${commandFor(cluster, 'up')}`;
}

/** Snapshots have failed, and a replica has no state yet. */
function failingSnapshots({ replicas }: GroupStatus): Trouble[] {
  const failing = replicas.filter(({ failedSnapshots }) => failedSnapshots > 0);
  const behind = replicas.find(
    ({ state, role, delivered }) => state === 'up' && (role === 'recovering' || delivered === 0),
  );
  if (failing.length === 0 || behind === undefined) return [];
  const names = failing.map(({ name }) => name).join(', ');
  return [
    {
      what: `snapshots failed at ${names}`,
      advice: `${behind.name} may be unable to catch up. The logs of their hosts have the error of snapshot()`,
    },
  ];
}

/** A clock and ordered time differ by this much only if one of them is wrong. */
const CLOCK_TOLERANCE_MS = 5000;

/** Finds the groups whose ordered time differs from the clock of a host. */
function wrongClock(groups: readonly GroupStatus[]): (host: HostStatus) => Trouble[] {
  return ({ host, name = `host ${host}` }) => {
    const wrong = groups
      .flatMap(({ replicas }) => replicas)
      .filter((replica) => replica.host === host && replica.state === 'up' && replica.nowMs > 0)
      .filter(({ clockAheadMs }) => Math.abs(clockAheadMs) > CLOCK_TOLERANCE_MS);
    if (wrong.length === 0) return [];
    const [{ clockAheadMs }] = wrong;
    const by = duration(Math.abs(clockAheadMs) * 1e6);
    const groupNames = wrong.map(({ group }) => `g${group}`).join(', ');
    return [
      {
        what: `the clock of ${name} is ${by} ${clockAheadMs > 0 ? 'ahead of' : 'behind'} ordered time in ${groupNames}`,
        advice: 'compare the clocks of the hosts, and correct those that are wrong',
      },
    ];
  };
}

function allDown(cluster: Seen): Trouble {
  return cluster.path === undefined
    ? {
        what: 'no host can be reached',
        advice: `start the hosts: ${commandFor(cluster, 'host NAME')}`,
      }
    : {
        what: 'all hosts are down',
        advice: `go on with the state that they left: ${commandFor(cluster, 'up')}`,
      };
}

function namesOf(groups: readonly GroupStatus[]): string {
  return groups.map(({ group }) => `g${group}`).join(', ');
}

// --- trees -------------------------------------------------------------------------------------

const TREE_COLUMNS_MAX = 24;

export interface TreeLine {
  readonly group: number;
  readonly label: string;
}

/** The groups in depth-first order, drawn as a tree, or as a list if a tree is too wide. */
export function treeOf(parents: readonly number[]): TreeLine[] {
  const childrenOf = (parent: number): number[] =>
    parents.flatMap((candidate, group) => (candidate === parent ? [group] : []));
  const lines: TreeLine[] = [];
  const visit = (group: number, branch: string, indent: string): void => {
    lines.push({ group, label: `${branch}g${group}` });
    const children = childrenOf(group);
    for (const [index, child] of children.entries()) {
      const isLast = index === children.length - 1;
      visit(child, `${indent}${isLast ? '└─ ' : '├─ '}`, `${indent}${isLast ? '   ' : '│  '}`);
    }
  };
  for (const root of childrenOf(-1)) visit(root, '', '');
  if (lines.every(({ label }) => label.length <= TREE_COLUMNS_MAX)) return lines;
  return lines.map(({ group }) => {
    const parent = parents[group];
    return { group, label: parent === -1 ? `g${group}` : `g${group} under g${parent}` };
  });
}
