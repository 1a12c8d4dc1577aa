/**
 * A round with unauthenticated peers: they call all ports of a cluster across machines while it serves its load. Called by
 * `main.mjs`. No host may crash, use more descriptors or memory afterwards, or wait for a peer.
 */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readSecret } from 'tram-multicast/internal/hosting/machines/secret.js';
import { pause } from 'tram-multicast/internal/hosting/oversight.js';
import { CLIENT_STDIO, until } from './clients.mjs';
import { HTTP_PORT, PORT } from './machines-cluster.mjs';
import { MachinesFaults } from './machines-faults.mjs';
import { MachinesRound } from './machines-round.mjs';
import { GROUPS } from './plan.mjs';
import { nowUs, privateMebibytes } from './processes.mjs';
import { longestSilenceMs, readRecords } from './verify.mjs';

const SCRIPT = fileURLToPath(new URL('./unauthenticated.mjs', import.meta.url));
/** At each port. */
const PER_SECOND = 50;
const WARM_UP_MS = 3000;
/**
 * Every 5 seconds hosts close connections that were unauthenticated 5 seconds before. A host that waited for a peer would be
 * silent that long.
 */
const SETTLE_MS = 20_000;
const GRACE_MS = 30_000;
const SUSPECT_AFTER_MS = 1000;
/** A group may be silent for a second because other programs use the cores. */
const SILENCE_MAX_MS = 3000;
const DESCRIPTORS_MORE_MAX = 8;
const MEBIBYTES_MORE_MAX = 48;

/**
 * Resources of a host: open descriptors and private memory.
 * @typedef {{ descriptors: number, mebibytes: number }} Use
 */

/** Takes the place of faults. */
class UnauthenticatedPeers extends MachinesFaults {
  /** @type {import('./unauthenticated.mjs').UnauthenticatedReport | undefined} */
  report;
  /** By host. @type {{ before: Use, most: Use, after: Use }[]} */
  uses = [];
  startedUs = 0;
  endedUs = 0;

  /** @param {number} seconds @param {number} seed @param {(text: string) => void} complain */
  setUp(seconds, seed, complain) {
    this.seconds = seconds;
    this.seed = seed;
    this.complain = complain;
    return this;
  }

  /** @override */
  async run() {
    await pause(WARM_UP_MS);
    const before = this.sample();
    const most = before.map((use) => ({ ...use }));
    const watching = setInterval(() => this.watch(most), 500);
    this.startedUs = nowUs();
    try {
      await this.callAllPorts();
    } finally {
      clearInterval(watching);
      this.endedUs = nowUs();
    }
    const isBack = () =>
      this.sample().every(
        ({ descriptors }, host) => descriptors <= before[host].descriptors + DESCRIPTORS_MORE_MAX,
      );
    const deadlineMs = Date.now() + SETTLE_MS;
    while (!isBack() && Date.now() < deadlineMs) await pause(200);
    const after = this.sample();
    this.uses = before.map((use, host) => ({ before: use, most: most[host], after: after[host] }));
  }

  /** Runs the peers in a process; returns when it has ended. */
  async callAllPorts() {
    const { hosts, guests, secret, digest } = this.machinesCluster;
    const at = (/** @type {number} */ port) =>
      hosts.map(({ machine }) => ({ host: machine.address, port }));
    const settings = {
      seed: this.seed,
      seconds: this.seconds,
      ports: at(PORT),
      webPorts: at(HTTP_PORT),
      perSecond: PER_SECOND,
      secret: Buffer.from(readSecret(secret)).toString('hex'),
      digest: Buffer.from(digest).toString('hex'),
    };
    const args = [SCRIPT, JSON.stringify(settings)];
    const child = guests[0].spawn(process.execPath, args, { stdio: CLIENT_STDIO });
    let printed = '';
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      printed += text;
    });
    child.on('message', (/** @type {any} */ message) => {
      if (message.what !== 'done') return;
      this.report = message;
      child.kill('SIGKILL');
    });
    let isOver = false;
    child.once('close', () => {
      isOver = true;
    });
    await until(() => isOver, this.seconds * 1000 + GRACE_MS, 'the unauthenticated peers report');
    if (this.report === undefined) this.complain(`the unauthenticated peers failed: ${printed}`);
    for (const breach of this.report?.breaches ?? []) this.complain(breach);
    for (const [kind, count] of Object.entries(this.report?.counts ?? {})) {
      this.counts.set(kind, count);
    }
  }

  /** @returns {Use[]} */
  sample() {
    return this.machinesCluster.hosts.map(({ child }) => useOf(child?.pid ?? 0));
  }

  /** @param {Use[]} most */
  watch(most) {
    for (const [host, { descriptors, mebibytes }] of this.sample().entries()) {
      most[host].descriptors = Math.max(most[host].descriptors, descriptors);
      most[host].mebibytes = Math.max(most[host].mebibytes, mebibytes);
    }
  }
}

export class UnauthenticatedRound extends MachinesRound {
  suspectAfterMs = SUSPECT_AFTER_MS;
  guests = 1;

  /** @override @param {any} cluster @param {import('./clients.mjs').Clients} clients */
  makeFaults(cluster, clients) {
    const peers = new UnauthenticatedPeers(cluster, clients, (text) => this.log(text));
    return peers.setUp(this.options.unauthenticated, this.random.next(), (text) =>
      this.complain(text),
    );
  }

  /** @override */
  tellProgress() {
    if (this.cluster !== undefined) this.options.tell(this.progress(this.cluster));
  }

  /** @override */
  async judge() {
    const peers = /** @type {UnauthenticatedPeers | undefined} */ (this.faults);
    const { uses = [], startedUs = 0, endedUs = 0, report } = peers ?? {};
    for (const [host, { before, after }] of uses.entries()) {
      if (after.descriptors > before.descriptors + DESCRIPTORS_MORE_MAX) {
        this.complaints.push(
          `host ${host} has ${after.descriptors} descriptors open, ${before.descriptors} before`,
        );
      }
      if (after.mebibytes > before.mebibytes + MEBIBYTES_MORE_MAX) {
        this.complaints.push(
          `host ${host} uses ${after.mebibytes} MiB of memory, ${before.mebibytes} before`,
        );
      }
    }
    const during = readRecords(this.records).filter(({ answeredUs }) => answeredUs >= startedUs);
    const silenceMs = longestSilenceMs(during, GROUPS, endedUs);
    if (silenceMs > SILENCE_MAX_MS) {
      this.complaints.push(`a group answered nothing for ${silenceMs} ms`);
    }
    const result = await super.judge();
    return { ...result, unauthenticated: { silenceMs, uses, refusals: report?.refusals } };
  }
}

/** @param {number} pid @returns {Use} */
function useOf(pid) {
  return {
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    mebibytes: Math.round(privateMebibytes(pid)),
  };
}
