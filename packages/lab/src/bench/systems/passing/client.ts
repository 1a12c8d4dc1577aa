/** The process of all clients of a message-passing system. Started by `system.ts`, which sends it orders. */
import { TcpNetwork } from '../../../baselines/tcp/tcp-network.js';
import { cpuSecondsOf } from '../../load/cpu.js';
import { serveOrders } from '../../load/forked.js';
import type { Load, Measurement } from '../system.js';
import { type ClientRecord, type Directory, type PassingJob, protocolOf } from './job.js';
import { PassingLoad } from './load.js';

const record: number[] = [];
let load: PassingLoad;
let pids: readonly number[];

function cpuSeconds(): number {
  return pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
}

serveOrders({
  connect: async ({ job, groups }: { job: PassingJob; groups: Directory }): Promise<void> => {
    const { sizes, records } = job;
    const network = new TcpNetwork(sizes.groups, sizes.clients);
    const note = records ? (...entryGroup: number[]) => void record.push(...entryGroup) : undefined;
    load = new PassingLoad(protocolOf(job), sizes, network, note);
    network.attach(load);
    pids = [...groups.pids, process.pid];
    await Promise.all(groups.ports.map((port, group) => network.connect(group, port)));
  },
  measure: (wanted: Load): Promise<Measurement> => load.measure(wanted, cpuSeconds),
  record: (): ClientRecord => record,
});
