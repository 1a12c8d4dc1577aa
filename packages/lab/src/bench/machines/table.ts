/** The output of `tram-lab bench machines` for people. */

import type { Calls } from 'tram-multicast/internal/memory/fabric/calls.js';
import { align, WIDTH, wrap } from '../text/columns.js';
import { duration, plural, rate, significant, times } from '../text/words.js';
import type { Figures, MachinesResult } from './machines.js';

type Row = readonly [label: string, value: string, beside: string];

export function formatMachines(result: MachinesResult): string {
  const { cluster } = result;
  const title =
    `${plural(cluster.groups, 'group')} of ${cluster.replicas} on ${plural(cluster.hosts, 'host')}, ` +
    `${cluster.payloadBytes} B from one client in a process of its own`;
  const notes = conditions(result).flatMap((text) => wrap(text, WIDTH));
  return `${title}\n\n${align(rowsOf(result), ['left', 'right', 'right'])}\n\n${notes.join('\n')}\n`;
}

function rowsOf({ bare, socketNsP50, figures, changes }: MachinesResult): Row[] {
  const latency = (label: string, ns: number): Row => [
    label,
    duration(ns),
    times(ns / bare.spinningNs),
  ];
  const throughput = (label: string, perSecond: number): Row => [
    label,
    rate(perSecond),
    times(perSecond / bare.writesPerSecond),
  ];
  const milliseconds = (ms: number): string => `${significant(ms)} ms`;
  return [
    ['One at a time, p50', '', 'to the bare write'],
    latency('  bare write, acknowledged; the target spins', bare.spinningNs),
    latency('  bare write, acknowledged; the target waits', bare.waitingNs),
    latency('  ping-pong through node:net', socketNsP50),
    ...figures.map(({ destinations, latencyNsP50 }) =>
      latency(`  TRAM to ${plural(destinations, 'group')}`, latencyNsP50),
    ),
    ['At saturation', '', 'to the bare write'],
    throughput('  bare writes, 64 in flight', bare.writesPerSecond),
    ...figures.map(({ destinations, messagesPerSecond, outstanding }) =>
      throughput(
        `  TRAM to ${plural(destinations, 'group')}, ${outstanding} in flight`,
        messagesPerSecond,
      ),
    ),
    ...callRows(figures),
    [`Leader changes on request (${changes.count})`, 'mean', 'worst'],
    [
      '  from the request until the new leader leads',
      milliseconds(changes.changeMs.mean),
      milliseconds(changes.changeMs.worst),
    ],
    [
      '  longest time between two answers',
      milliseconds(changes.gapMs.mean),
      milliseconds(changes.gapMs.worst),
    ],
  ];
}

/** How many operations are posted for a message, and how often a batch is corked. */
function callRows(figures: readonly Figures[]): Row[] {
  const posted = ({ write, read }: Calls): string => significant(write + read);
  const rows = figures.flatMap(({ destinations, outstanding, calls }): Row[] =>
    calls === undefined
      ? []
      : ([1, outstanding] as const).map((inFlight, i): Row => {
          const { hosts, client } = i === 0 ? calls.alone : calls.loaded;
          const to = `  TRAM to ${plural(destinations, 'group')}, ${inFlight} in flight`;
          const corks = significant(hosts.cork + client.cork);
          return [to, `${posted(hosts)} + ${posted(client)}`, corks];
        }),
  );
  if (rows.length === 0) return [];
  return [['Operations posted for a message', 'hosts + client', 'corks'], ...rows];
}

function conditions({ options, machine, rounds }: MachinesResult): string[] {
  const { cores, model, node, libfabric, loadAverage } = machine;
  const where =
    options.config === undefined
      ? 'all hosts and the client are on this machine, over its loopback'
      : `the cluster is that of ${options.config}; bare writes and ping-pong use the loopback of this machine`;
  return [
    `${plural(cores, 'core')} of ${model}, Node ${node}, libfabric ${libfabric}, load average before ` +
      `${loadAverage.toFixed(1)}; ${where}.`,
    `Medians of ${plural(rounds.length, 'round')}, ${options.seconds} s for each measurement. Leaders change one after the other, ` +
      'while a client keeps 16 messages to all groups in flight.',
  ];
}
