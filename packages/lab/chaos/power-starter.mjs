/**
 * The process that starts a cluster for a round of power cuts: `node power-starter.mjs SETTINGS`. Started by `power-site.mjs`,
 * which kills it. With `memory: 'threads'` it also runs the load, so that one process has everything.
 *
 * It reports when the cluster has started, with the first audits of its own clients. When it is told to finish, it ends its
 * load, takes fingerprints if it has the clients, waits until all replicas have delivered the same, and closes the cluster.
 */
import { appendFileSync } from 'node:fs';
import { Client, Cluster } from 'tram-multicast';
import { endWithParent } from '../dist/bench/load/end-with-parent.js';
import { untilCaughtUp } from './clients.mjs';
import { Load } from './load.mjs';

/**
 * @typedef {object} StarterSettings
 * @property {import('tram-multicast').StartOptions} cluster
 * @property {string} log          the file for its log
 * @property {import('./load.mjs').ClientSettings[]} clients  that run in this process
 * @property {string} fingerprints  the directory for fingerprints
 */

/** @type {StarterSettings} */
const settings = JSON.parse(process.argv[2]);
endWithParent();
const log = (/** @type {string} */ text) =>
  appendFileSync(settings.log, `${new Date().toISOString()} ${text}\n`);
const cluster = await Cluster.start({
  ...settings.cluster,
  logger: {
    info: log,
    warn: log,
    error: (text) => {
      log(text);
      process.send?.({ what: 'error', text });
    },
  },
});
const loads = await Promise.all(
  settings.clients.map(async (client) => new Load(await Client.connect(cluster.address), client)),
);
const audits = await Promise.all(loads.map((load) => load.audit()));
process.send?.({ what: 'started', address: String(cluster.address), audits });
const running = Promise.all(loads.map((load) => load.run()));
await new Promise((resolve) => process.once('message', resolve));
for (const load of loads) load.stop();
await running;
const [first, ...others] = loads;
await first?.takeFingerprints(settings.fingerprints);
for (const { client } of [...others, ...(first ? [first] : [])]) await client.close();
await untilCaughtUp(cluster);
// If the cluster is not drained when it closes, this tells why.
log(`before it closes: ${JSON.stringify(cluster.status())}`);
await cluster.close();
process.send?.({ what: 'finished' });
