/** `starter.mjs [NAME [detached]]`: starts a cluster of processes, for tests, and waits to be killed. */
import { Cluster } from 'tram-multicast';

const [name, detached] = process.argv.slice(2);
const cluster = await Cluster.start({
  groups: 1,
  memory: 'processes',
  ...(name && { name }),
  detached: detached === 'detached',
});
const pids = cluster.status().hosts.map(({ pid }) => pid);
process.send({ address: cluster.address, pids });
