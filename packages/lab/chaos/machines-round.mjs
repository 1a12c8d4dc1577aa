/**
 * One round of chaos across machines: a round of `round.mjs`, with hosts and clients on machines of their own and with
 * network faults. Called by `main.mjs`.
 */
import { existsSync } from 'node:fs';
import { MachinesCluster } from './machines-cluster.mjs';
import { MachinesFaults } from './machines-faults.mjs';
import { GROUPS, REPLICAS } from './plan.mjs';
import { CALLS_MAX, PAYLOAD_BYTES_MAX, Round } from './round.mjs';

/** Less than the default, and more than for processes: TCP retransmits a lost packet only after 200 ms. */
export const SUSPECT_AFTER_MS = 250;
const MESSAGES_PER_SECOND = 400;
/** A slot is free again only 10 seconds after its client was killed, and the host that grants it may be away. */
const SLOTS_PER_CLIENT = 8;
/** Groups know for certain that a client was killed only when another one has its slot. */
const PATIENCE_MS = 3000;

export class MachinesRound extends Round {
  messagesPerSecond = MESSAGES_PER_SECOND;
  /** @override @type {number | null} */
  patienceMs = PATIENCE_MS;
  suspectAfterMs = SUSPECT_AFTER_MS;
  guests = 0;

  /** @override */
  async start() {
    const { tree, hosts, order, rings } = this.plan;
    const { clients, directory } = this.options;
    this.cluster = await MachinesCluster.start(
      {
        directory,
        name: `chaos-${process.pid}-${tree}-${hosts}`,
        hosts,
        guests: this.guests,
        trace: this.trace,
        cluster: {
          groups: GROUPS,
          replicas: REPLICAS,
          tree,
          order,
          ...rings,
          payloadBytesMax: PAYLOAD_BYTES_MAX,
          suspectAfterMs: this.suspectAfterMs,
          clients: clients * SLOTS_PER_CLIENT,
          callsMax: CALLS_MAX,
        },
      },
      { log: (text) => this.log(text), complain: (text) => this.complain(text) },
    );
    return this.cluster;
  }

  /** @override */
  get startClient() {
    return this.cluster.startClient;
  }

  /** @override @param {any} cluster @param {import('./clients.mjs').Clients} clients */
  makeFaults(cluster, clients) {
    return new MachinesFaults(cluster, clients, (text) => this.log(text));
  }

  /** @override @param {any} cluster */
  progress(cluster) {
    const messages = cluster
      .status()
      .groups.map((/** @type {any} */ { replicas }) =>
        Math.max(...replicas.map((/** @type {any} */ replica) => replica.messages)),
      );
    return `${messages.reduce((/** @type {number} */ sum, /** @type {number} */ count) => sum + count, 0)} messages delivered by groups`;
  }

  /** @override @param {any} cluster */
  async close(cluster) {
    this.complaints.push(...cluster.errors);
    await cluster.close(this.clients?.crashed ?? []);
  }

  /** @override @returns {{ path: string, name: string }[]} */
  memoryFiles() {
    return this.cluster.hosts.map((/** @type {any} */ { memory, name }) => ({
      path: memory,
      name: `memory-${name}`,
    }));
  }

  /** @override */
  remains() {
    const { cluster, clients } = this;
    const pids = [
      ...(clients?.pids ?? []),
      ...(cluster?.hosts ?? []).map((/** @type {any} */ { child }) => child?.pid ?? 0),
    ];
    const files = (cluster?.hosts ?? []).map((/** @type {any} */ { memory }) => memory);
    return [
      ...pids
        .filter((pid) => pid > 0 && existsSync(`/proc/${pid}`))
        .map((pid) => `process ${pid} is left`),
      ...files
        .filter((/** @type {string} */ file) => existsSync(file))
        .map((/** @type {string} */ file) => `${file} is left`),
    ];
  }
}
