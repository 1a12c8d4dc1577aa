/** The plan of a scenario or a stage: the cluster that the options describe, without workload and faults. */
import { ORDERS, type Order, PACE } from 'tram-multicast/internal/protocol/edges.js';
import { parseTree } from 'tram-multicast/internal/protocol/overlay.js';
import type { Plan } from './plan.js';

/** Describes an error in a command. The caller adds file and line. */
export class Complaint extends Error {}

const TIMING = {
  heartbeatUs: 50,
  restUs: 50,
  // Scripts say what happens at which step, so all steps are full, unless a script asks for quick ones.
  quickUs: 0,
  suspectAfterUs: 300,
  askAgainUs: 100,
  backOffUs: 50,
  resendAfterUs: 500,
};

type GivenOptions = ReadonlyMap<string, string>;

export function readOptions(text: string, known: readonly string[]): GivenOptions {
  const options = new Map<string, string>();
  for (const part of text.trim().split(/ +/)) {
    if (part === '') continue;
    const [name, value] = part.split('=') as [string, string | undefined];
    if (!known.includes(name) || value === undefined) {
      throw new Complaint(`"${part}" is no option; the options are ${known.join('=, ')}=`);
    }
    options.set(name, value);
  }
  return options;
}

export function toNumber(options: GivenOptions, name: string, otherwise: number): number {
  const value = options.get(name);
  if (value === undefined) return otherwise;
  if (!/^\d+$/.test(value)) throw new Complaint(`${name}=${value} is not a number`);
  return Number(value);
}

/** @param given  the options of the command `cluster` */
export function makePlan(given: string): Plan {
  const options = readOptions(given, [
    'groups',
    'tree',
    'order',
    'replicas',
    'clients',
    'payload',
    'rings',
  ]);
  const tree = options.get('tree');
  const groups = toNumber(options, 'groups', tree?.includes(',') ? tree.split(',').length : 1);
  const parents = parseTree(tree ?? 'breadth', groups);
  if (parents.length !== groups)
    throw new Complaint(`tree=${tree} has ${parents.length} groups, not ${groups}`);
  const order = options.get('order') ?? 'multicast';
  if (!isOrder(order)) throw new Complaint(`order=${order} is neither strict nor multicast`);
  const ringBytes = toNumber(options, 'rings', 4096);
  return {
    seed: 1,
    memory: 'simulated',
    parents,
    sizes: {
      groups,
      replicas: toNumber(options, 'replicas', 3),
      clients: toNumber(options, 'clients', 1),
      payloadBytesMax: toNumber(options, 'payload', 32),
      replyBytesMax: 16,
      logBytes: ringBytes,
      inboxBytes: ringBytes,
      feedBytes: ringBytes,
      callsMax: 16,
      snapshotChunkBytes: 4096,
      firstIndex: 0,
      salt: { check: 1, tail: 2 },
    },
    timing: TIMING,
    pace: PACE,
    order,
    durability: undefined,
    weather: { delayUs: 2, jitterUs: 0, tornPercent: 0, lateCompletionPercent: 0 },
    interruptions: undefined,
    stepUs: 5,
    messages: 0,
    isBursty: false,
    messageEveryUs: 0,
    singleGroupPercent: 0,
    probePercent: 0,
    serviceCells: 0,
    serviceFailsEvery: 0,
    serviceDefersEvery: 0,
    ticks: undefined,
    faults: new Set(),
    incidents: [],
  };
}

function isOrder(text: string): text is Order {
  return ORDERS.some((order) => order === text);
}
