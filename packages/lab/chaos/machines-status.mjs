/**
 * The status of a cluster across machines, read from the memory of its hosts in /dev/shm. Called by `machines-cluster.mjs`.
 *
 * All network namespaces share /dev/shm. So a run sees every host however the network is cut, and what it sees does not
 * depend on the code under test.
 */
import { ROLES, STATISTIC } from 'tram-multicast/internal/hosting/statistics.js';
import {
  HOST,
  HOST_STATE,
  hostStateOf,
  PARTICIPANT,
} from 'tram-multicast/internal/memory/arena.js';
import { openArenaFile } from 'tram-multicast/internal/memory/processes/arena-file.js';
import { describeBallot, NO_BALLOT } from 'tram-multicast/internal/protocol/leadership/ballot.js';
import { Peer, ROW_RECORD_WORDS } from 'tram-multicast/internal/protocol/leadership/row.js';

/** A row that is being written is complete a moment later. */
const ROW_ATTEMPTS = 100;

/**
 * A host as the run sees it.
 * @typedef {object} HostProcess
 * @property {string} name
 * @property {string} memory     the path of its file
 * @property {import('./namespaces.mjs').Machine} machine
 * @property {import('node:child_process').ChildProcess | undefined} child
 * @property {import('tram-multicast/internal/memory/processes/arena-file.js').ArenaFile | undefined} arena
 */

export class MachinesStatus {
  /**
   * @param {import('tram-multicast/internal/hosting/cluster-context.js').ClusterContext} context
   * @param {readonly HostProcess[]} hosts
   */
  constructor(context, hosts) {
    this.context = context;
    this.hosts = hosts;
  }

  /** @returns the words of a host's arena, once it exists. @param {number} number */
  wordsOf(number) {
    const host = this.hosts[number];
    try {
      host.arena ??= openArenaFile(host.memory);
    } catch {
      // The host has not created it yet.
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
    // Until the new process writes its own state, the memory holds that of an earlier incarnation.
    const isOfThisIncarnation = words[line + HOST.pid] === child.pid;
    const isRunning = hostStateOf(words[line + HOST.state]) === HOST_STATE.running;
    return isOfThisIncarnation && isRunning ? 'up' : 'starting';
  }

  /** The part of `Cluster.status` that runs need. */
  read() {
    const { parents } = this.context.config;
    const hosts = this.hosts.map(({ child }, host) => ({
      host,
      pid: child?.pid ?? 0,
      state: this.stateOf(host),
    }));
    return { groups: parents.map((_, group) => this.readGroup(group, hosts)), hosts };
  }

  /** @param {number} group @param {{ state: 'up' | 'starting' | 'down' }[]} hosts */
  readGroup(group, hosts) {
    const { replicas: count } = this.context.config.sizes;
    const members = Array.from({ length: count }, (_, member) => {
      const participant = this.context.layout.replicaParticipant(group, member);
      const host = this.context.map.hostOf(participant);
      return this.readMember(participant, host, hosts[host].state);
    });
    const leader = leaderAmong(members);
    const replicas = members.map(({ row, ...status }, member) => ({ group, member, ...status }));
    const ballot =
      leader === undefined ? undefined : describeBallot(members[leader].row?.ledBallot ?? 0);
    return { group, leader, ballot, replicas };
  }

  /** @param {number} participant @param {number} host @param {'up' | 'starting' | 'down'} state */
  readMember(participant, host, state) {
    const { context } = this;
    const { map } = context;
    const words = this.wordsOf(host);
    const row = words === undefined ? undefined : this.readRow(words, participant);
    const incarnation = words?.[map.participant(participant) + PARTICIPANT.incarnation] ?? 0;
    const statistics = map.statisticsOf(participant);
    // A row of an earlier incarnation says nothing about this one.
    const hasPublished = row?.incarnation === incarnation;
    const isNormal = hasPublished && row.normal;
    return {
      name: context.nameOf(participant),
      host,
      state,
      hasPublished,
      role: isNormal ? ROLES[words?.[statistics + STATISTIC.role] ?? 0] : 'recovering',
      incarnation,
      delivered: row?.delivered ?? 0,
      messages: (words?.[statistics + STATISTIC.messages] ?? 0) >>> 0,
      relayed: (words?.[statistics + STATISTIC.relayed] ?? 0) >>> 0,
      timesLed: words?.[statistics + STATISTIC.timesLed] ?? 0,
      row,
    };
  }

  /** @param {Int32Array} words @param {number} participant */
  readRow(words, participant) {
    const { layout, map } = this.context;
    const at = map.region(participant) + layout.row;
    const row = new Peer(participant, layout.sizes.firstIndex);
    for (let attempt = 0; attempt < ROW_ATTEMPTS; attempt++) {
      row.buffer.words.set(words.subarray(at, at + ROW_RECORD_WORDS));
      if (row.accept()) return row;
    }
    return undefined;
  }
}

/** @param {import('node:child_process').ChildProcess} child */
export function hasEnded({ exitCode, signalCode }) {
  return exitCode !== null || signalCode !== null;
}

/**
 * The leader is the member with the highest ballot among those that are up, unless a majority has promised a higher one.
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
