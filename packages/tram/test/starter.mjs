/** Starts a cluster of processes, for tests, under the name that it is given or none, and waits to be killed. */
import { Cluster } from 'tram-multicast';

const [name] = process.argv.slice(2);
const cluster = await Cluster.start({ groups: 1, memory: 'processes', ...(name && { name }) });
const pids = cluster.status().hosts.map(({ pid }) => pid);
process.send({ address: cluster.address, pids });
