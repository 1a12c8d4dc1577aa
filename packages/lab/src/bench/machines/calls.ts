/**
 * What hosts and clients ask of the network for a message: operations posted, corked batches, sleeps. Hosts tell it in their
 * metrics, from which the number of messages is taken too. Called by `machines.ts`.
 */
import { type Calls, noCalls } from 'tram-multicast/internal/memory/fabric/calls.js';

const KINDS = Object.keys(noCalls()) as (keyof Calls)[];
const CALLS = 'tram_network_calls_total';
const MESSAGES = 'tram_messages_total';

/** What all hosts have done so far. */
export interface HostCalls {
  readonly calls: Calls;
  /** Messages given to services, by all replicas together. */
  readonly deliveries: number;
}

/** For each message. */
export interface CallsPerMessage {
  /** All hosts together. */
  readonly hosts: Calls;
  readonly client: Calls;
}

/** @param metrics  where the hosts serve them */
export async function hostCalls(metrics: readonly string[]): Promise<HostCalls> {
  const texts = await Promise.all(metrics.map(async (url) => (await fetch(url)).text()));
  return {
    calls: sumOf(texts.map(callsIn)),
    deliveries: texts.reduce((sum, text) => sum + valuesOf(text, MESSAGES), 0),
  };
}

export function callsIn(metrics: string): Calls {
  return mapOf((kind) => valuesOf(metrics, `${CALLS}{call="${kind}"`));
}

/** The sum of all values of a metric, whatever its labels. */
function valuesOf(metrics: string, name: string): number {
  const lines = metrics.split('\n').filter((line) => line.startsWith(name));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

export function sumOf(all: readonly Readonly<Calls>[]): Calls {
  return mapOf((kind) => all.reduce((sum, calls) => sum + calls[kind], 0));
}

export function differenceOf(after: Calls, before: Calls): Calls {
  return mapOf((kind) => after[kind] - before[kind]);
}

export function perMessage(calls: Calls, messages: number): Calls {
  return mapOf((kind) => calls[kind] / messages);
}

function mapOf(value: (kind: keyof Calls) => number): Calls {
  const calls = noCalls();
  for (const kind of KINDS) calls[kind] = value(kind);
  return calls;
}

/** @param replicas  that deliver each message */
export function callsPerMessage(
  before: HostCalls,
  after: HostCalls,
  replicas: number,
  client: { readonly calls?: Calls; readonly messages: number },
): CallsPerMessage {
  const messages = (after.deliveries - before.deliveries) / replicas;
  return {
    hosts: perMessage(differenceOf(after.calls, before.calls), messages),
    client: perMessage(client.calls ?? noCalls(), client.messages),
  };
}

/** The medians, kind by kind. */
export function medianCalls(
  all: readonly CallsPerMessage[],
  median: (values: readonly number[]) => number,
): CallsPerMessage {
  const of = (who: keyof CallsPerMessage): Calls =>
    mapOf((kind) => median(all.map((each) => each[who][kind])));
  return { hosts: of('hosts'), client: of('client') };
}
