/** The process of one group of a message-passing system. Started by `system.ts`, which sends it orders. */
import type { Message } from '../../../baselines/passing/message.js';
import type { Observer } from '../../../baselines/passing/network.js';
import { TcpNetwork } from '../../../baselines/tcp/tcp-network.js';
import { serveOrders } from '../../load/forked.js';
import { type Directory, type GroupJob, type GroupRecord, protocolOf } from './job.js';

let job: GroupJob;
let network: TcpNetwork;
const record = { delivered: [] as number[], relayed: [] as number[] } satisfies GroupRecord;

const SILENT: Observer = { delivered: () => undefined, relayed: () => undefined };
const RECORDING: Observer = {
  delivered: (message) => note(record.delivered, message),
  relayed: (message) => note(record.relayed, message),
};

function note(list: number[], { client, number }: Message): void {
  list.push(client, number);
}

serveOrders({
  listen: (given: GroupJob): Promise<number> => {
    job = given;
    network = new TcpNetwork(job.group, 1);
    const observer = job.records ? RECORDING : SILENT;
    network.attach(protocolOf(job).group(job.group, network, observer));
    return network.listen();
  },
  /** Of two linked groups, the one with the higher number connects. */
  connect: async ({ ports }: Directory): Promise<void> => {
    const protocol = protocolOf(job);
    const others = ports.map((_, group) => group).slice(0, job.group);
    const linked = others.filter((other) => protocol.areLinked(job.group, other));
    await Promise.all(linked.map((other) => network.connect(other, ports[other])));
  },
  record: (): GroupRecord => record,
});
