/**
 * The configuration of `memory: 'machines'`: which machines a cluster runs on, which of them runs which member of each
 * group, and which file holds their secret. Called by `resolveConfig` with valid options.
 *
 * A machine runs one host; or several, one on each of its `threads` (`threads.ts`), which start and end together.
 *
 * Invariant: no machine runs two members of one group, so the loss of a machine costs no group two members.
 */
import { resolve } from 'node:path';
import { ANY_ADDRESS, type Endpoint, PORT_MAX, parseEndpoint } from './addresses.js';
import { ConfigError, describePath, type Path, quote } from './mistakes.js';
import { nearestName } from './nearest-name.js';
import { type ClusterOptions, type MachineOptions, OPTIONS } from './options.js';
import { threadsOf } from './threads.js';

/** A host: a machine, or one thread of it. Identified by its place in the list. */
export interface Machine extends Endpoint {
  /** `alpha`; those of its other threads are `alpha#1`, `alpha#2` and so on. */
  readonly name: string;
  /** The name of its machine, which `tram host` starts. */
  readonly machine: string;
  /** Where its machine serves HTTP: the first host of a machine has it. */
  readonly http?: Endpoint;
}

/** The part of a configuration that only `memory: 'machines'` has. */
export interface Machines {
  /** The hosts: those of one machine are beside each other. */
  readonly machines: readonly Machine[];
  /** How many hosts each machine runs. */
  readonly threads: number;
  /** An absolute path. */
  readonly secretFile: string;
  /** Grows with every change of an address. */
  readonly revision: number;
  /** The libfabric provider. */
  readonly provider: string;
}

interface MachinesOptions extends ClusterOptions {
  readonly memory: 'machines';
  readonly hosts: readonly MachineOptions[];
  readonly secret: string;
}

interface Shape {
  readonly groups: number;
  readonly replicas: number;
}

/** The names of the machines, in the order of the configuration. */
export function machineNames({ machines }: Machines): string[] {
  return [...new Set(machines.map(({ machine }) => machine))];
}

/** The hosts that start and end with this one: those of its machine. On threads and processes, each host is alone. */
export function hostsWith(threads: number | undefined, host: number): number[] {
  if (threads === undefined) return [host];
  const first = host - (host % threads);
  return Array.from({ length: threads }, (_, thread) => first + thread);
}

/** @param options  valid ones: with this memory they have a list of hosts and a secret */
export function isForMachines(options: ClusterOptions): options is MachinesOptions {
  return options.memory === 'machines';
}

export function resolveMachines(options: MachinesOptions, directory: string): Machines {
  const { groups, replicas = OPTIONS.replicas.default, hosts, members, secret, provider } = options;
  const shape = { groups, replicas };
  // Copies, because the validator ignores properties that an object inherits.
  const machines = hosts.map((machine) => resolveMachine({ ...machine }));
  const { threads = OPTIONS.threads.default } = options;
  requireDifferentNames(machines);
  requireDifferentPorts(machines, threads);
  requireEnough(machines.length, shape);
  if (members === undefined) requireMultiple(machines.length, shape);
  return {
    machines: threadsOf(machines, threads),
    threads,
    secretFile: resolve(directory, secret),
    revision: options.revision ?? OPTIONS.revision.default,
    provider: provider ?? OPTIONS.provider.default,
  };
}

function resolveMachine({ name, address, port, http }: MachineOptions): Machine {
  const endpoint = http === undefined ? undefined : parseEndpoint(http);
  return { name, machine: name, address, port, ...(endpoint && { http: endpoint }) };
}

function requireDifferentNames(machines: readonly Machine[]): void {
  const hosts = new Map<string, number>();
  machines.forEach(({ name }, host) => {
    const other = hosts.get(name);
    if (other !== undefined) {
      throw new ConfigError(
        ['hosts', host, 'name'],
        `hosts[${host}].name is ${quote(name)}, and so is hosts[${other}].name`,
      );
    }
    hosts.set(name, host);
  });
}

/**
 * Several of these machines may be one machine, for experiments: then all their ports differ. A machine has a port for each
 * of its threads.
 */
function requireDifferentPorts(machines: readonly Machine[], threads: number): void {
  const owners = new Map<string, string>();
  const claim = (address: string, port: number, path: Path): void => {
    const endpoint = `${address.toLowerCase()}:${port}`;
    const owner = owners.get(endpoint);
    if (owner !== undefined) {
      throw new ConfigError(
        path,
        `${describePath(path)} is ${port}, but ${owner} already uses that port of ${address}`,
        threads === 1 ? {} : { hint: portsHint(threads) },
      );
    }
    owners.set(endpoint, describePath(path));
  };
  machines.forEach(({ address, port, http }, host) => {
    const path = ['hosts', host, 'port'];
    if (port + threads - 1 > PORT_MAX) {
      throw new ConfigError(
        path,
        `${describePath(path)} is ${port}, but with ${threads} threads it is at most ${PORT_MAX - threads + 1}`,
        { hint: portsHint(threads) },
      );
    }
    for (let thread = 0; thread < threads; thread++) claim(address, port + thread, path);
    if (http !== undefined) claim(machineOf(http, address), http.port, ['hosts', host, 'http']);
  });
}

function portsHint(threads: number): string {
  return `With threads: ${threads}, a machine uses ${threads} ports: \`port\` and those that follow it.`;
}

/** The address of the machine on which a host listens. @param own  the address of the host itself */
function machineOf({ address }: Endpoint, own: string): string {
  const isLocal = address === ANY_ADDRESS || address === 'localhost' || address.startsWith('127.');
  return isLocal ? own : address;
}

function requireEnough(machines: number, { replicas }: Shape): void {
  if (machines >= replicas) return;
  throw new ConfigError(
    ['hosts'],
    `the number of hosts must be at least ${replicas}, as many as a group has replicas, not ${machines}`,
    { hint: 'A machine that runs two members of a group takes both with it when it fails.' },
  );
}

function requireMultiple(machines: number, { groups, replicas }: Shape): void {
  const most = groups * replicas;
  if (machines % replicas === 0 && machines <= most) return;
  throw new ConfigError(
    ['hosts'],
    most === replicas
      ? `the number of hosts must be ${replicas}, as many as a group has replicas, not ${machines}`
      : `the number of hosts must be ${replicas}, or a multiple of it up to ${most}, not ${machines}`,
    {
      hint:
        machines > most
          ? 'Some hosts would run no replica.'
          : 'For another number, list the hosts of each group in members.',
    },
  );
}

/** The machine of each replica, at group * replicas + member. @param machines  their names */
export function resolveMembers(
  members: readonly (readonly string[])[],
  machines: readonly string[],
  shape: Shape,
): number[] {
  if (members.length !== shape.groups) {
    throw new ConfigError(
      ['members'],
      `members has length ${members.length}, but groups is ${shape.groups}: it must have a list of hosts for each group`,
    );
  }
  const placement = members.flatMap((names, group) => hostsOf(names, group, machines, shape));
  requireUse(placement, machines);
  return placement;
}

/** The hosts of one group. */
function hostsOf(
  names: readonly string[],
  group: number,
  machines: readonly string[],
  { replicas }: Shape,
): number[] {
  const path = ['members', group];
  if (names.length !== replicas) {
    throw new ConfigError(
      path,
      `${describePath(path)} has length ${names.length}, but replicas is ${replicas}: ` +
        `it must have a host for each member of group ${group}`,
    );
  }
  const hosts: number[] = [];
  for (const [member, name] of names.entries()) {
    const host = hostNamed(name, [...path, member], machines);
    if (hosts.includes(host)) {
      throw new ConfigError(
        [...path, member],
        `${describePath([...path, member])} is ${name}, which already runs another member of group ${group}`,
        { hint: 'The loss of one machine must not cost a group two members.' },
      );
    }
    hosts.push(host);
  }
  return hosts;
}

function hostNamed(name: string, path: Path, names: readonly string[]): number {
  const host = names.indexOf(name);
  if (host >= 0) return host;
  const nearest = nearestName(name, names);
  const remedy =
    nearest === undefined ? `the hosts are ${names.join(', ')}` : `did you mean ${nearest}?`;
  throw new ConfigError(
    path,
    `${describePath(path)} is ${quote(name)}, and there is no such host: ${remedy}`,
  );
}

function requireUse(placement: readonly number[], machines: readonly string[]): void {
  const idle = machines.findIndex((_, host) => !placement.includes(host));
  if (idle < 0) return;
  const name = machines[idle];
  throw new ConfigError(['hosts', idle], `hosts[${idle}], ${name}, runs no member of any group`, {
    hint: `Name ${name} in members, or leave it out of hosts.`,
  });
}
