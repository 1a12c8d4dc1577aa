/**
 * The options of `memory: 'machines'`: on which machines a cluster runs, which of them has which member of each group, and
 * where the secret is that all of them know. Called by `resolveConfig`.
 *
 * No machine has two members of one group, so that its loss costs no group two.
 */
import { isIPv4 } from 'node:net';
import { resolve } from 'node:path';
import {
  ConfigError,
  checkFilled,
  checkName,
  checkNumber,
  checkText,
  describePath,
  mustBe,
  nearestName,
  type Path,
  quote,
} from './checks.js';

export interface MachineOptions {
  /** Letters, digits, dots, dashes and underscores. */
  name: string;
  /** An IPv4 address, or a name that resolves to one. */
  address: string;
  /** Where other hosts, and clients, reach its memory. */
  port: number;
  /** Where it answers /metrics, /healthz and /readyz: a port of loopback, or `'10.0.0.1:7412'`. Default: nowhere. */
  http?: number | string;
}

export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** A host is known by its place in the list. */
export interface Machine extends Endpoint {
  readonly name: string;
  readonly http?: Endpoint;
}

/** What a configuration has with `memory: 'machines'`, and with no other. */
export interface Machines {
  readonly machines: readonly Machine[];
  /** An absolute path. */
  readonly secretFile: string;
  /** Of libfabric. */
  readonly provider: string;
  /**
   * By process, group * replicas + member: the number of its host. Without one, hosts run the members that
   * `ArenaMap.hostOf` gives them.
   */
  readonly placement?: readonly number[];
}

interface Given {
  readonly hosts?: unknown;
  readonly secret?: unknown;
  readonly members?: unknown;
  readonly provider?: unknown;
}

interface Shape {
  readonly groups: number;
  readonly replicas: number;
}

const MACHINE_KEYS = Object.keys({
  name: true,
  address: true,
  port: true,
  http: true,
} satisfies Record<keyof MachineOptions, true>);

const ONLY_HERE = ['secret', 'members', 'provider'] as const;

const EXAMPLE = '{ name: alpha, address: 10.0.0.1, port: 7411 }';
const PORT = { least: 1, most: 65_535 };
const LOOPBACK = '127.0.0.1';
const ANY_ADDRESS = '0.0.0.0';
const DEFAULT_PROVIDER = 'tcp';
/** `tcp`, or one above another: `tcp;ofi_rxm`. */
const PROVIDER = /^[A-Za-z0-9_-]+(?:;[A-Za-z0-9_-]+)*$/;
const HOST_NAME_CHARACTERS_MAX = 253;
const HOST_NAME_PART = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
/** Its last part is no number: such a name was meant for an address. */
const HOST_NAME = new RegExp(`^(?:${HOST_NAME_PART}\\.)*(?!\\d+$)${HOST_NAME_PART}$`, 'i');

export function resolveMachines(given: Given, shape: Shape, directory: string): Machines {
  const machines = checkMachines(given.hosts);
  requireEnough(machines.length, shape);
  if (given.members === undefined) requireMultiple(machines.length, shape);
  return {
    machines,
    secretFile: checkSecret(given.secret, directory),
    provider: checkProvider(given.provider),
    ...(given.members !== undefined && {
      placement: checkMembers(given.members, machines, shape),
    }),
  };
}

/** For all other memories. */
export function refuseMachines(given: Given, memory: string): void {
  const refuse = (name: string, what: string, instead: string): never => {
    throw new ConfigError([name], `${what} is for memory: machines, and memory is ${memory}`, {
      hint: `Add "memory: machines", or ${instead}.`,
    });
  };
  if (Array.isArray(given.hosts)) {
    refuse(
      'hosts',
      'a list of hosts',
      'say with a number how many threads or processes it shall be',
    );
  }
  for (const name of ONLY_HERE) {
    if (given[name] !== undefined) refuse(name, name, `leave ${name} out`);
  }
}

function checkMachines(value: unknown): readonly Machine[] {
  if (value === undefined) {
    throw new ConfigError(
      ['hosts'],
      `memory: machines needs hosts, a list of machines such as ${EXAMPLE}`,
    );
  }
  if (!Array.isArray(value)) {
    throw mustBe(['hosts'], `a list of machines such as ${EXAMPLE} for memory: machines`, value);
  }
  const machines = Array.from(value, checkMachine);
  requireDifferentNames(machines);
  requireDifferentPorts(machines);
  return machines;
}

function checkMachine(value: unknown, host: number): Machine {
  const at: Path = ['hosts', host];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw mustBe(at, `a machine such as ${EXAMPLE}`, value);
  }
  for (const key of Object.keys(value)) {
    if (!MACHINE_KEYS.includes(key)) throw unknownMachineKey(host, key);
  }
  const given: Readonly<Partial<Record<string, unknown>>> = { ...value };
  const required = <T>(key: string, check: (value: unknown, path: Path) => T): T => {
    if (given[key] !== undefined) return check(given[key], [...at, key]);
    throw new ConfigError(
      [...at, key],
      `hosts[${host}].${key} is missing: a host is a machine such as ${EXAMPLE}`,
    );
  };
  return {
    name: required('name', checkName),
    address: required('address', checkAddress),
    port: required('port', checkPort),
    ...(given['http'] !== undefined && { http: checkHttp(given['http'], [...at, 'http']) }),
  };
}

export function unknownMachineKey(host: number, key: string): ConfigError {
  const nearest = nearestName(key, MACHINE_KEYS);
  const remedy =
    nearest === undefined ? `a host has ${MACHINE_KEYS.join(', ')}` : `did you mean ${nearest}?`;
  return new ConfigError(
    ['hosts', host, key],
    `unknown key ${quote(key)} in hosts[${host}]: ${remedy}`,
  );
}

function checkAddress(value: unknown, path: Path): string {
  const address = checkText(value, path);
  if (address === ANY_ADDRESS) {
    throw new ConfigError(
      path,
      `${describePath(path)} must be an address at which the others reach it, not ${ANY_ADDRESS}`,
    );
  }
  if (isAddress(address)) return address;
  throw new ConfigError(
    path,
    `${describePath(path)} must be an IPv4 address or a name that resolves to one, not ${quote(address)}`,
  );
}

function isAddress(text: string): boolean {
  return isIPv4(text) || (text.length <= HOST_NAME_CHARACTERS_MAX && HOST_NAME.test(text));
}

function checkPort(value: unknown, path: Path): number {
  return checkNumber(value, path, PORT);
}

function checkHttp(value: unknown, path: Path): Endpoint {
  if (typeof value === 'number') return { address: LOOPBACK, port: checkPort(value, path) };
  const [, address = '', digits = ''] =
    (typeof value === 'string' && /^(.+):(\d{1,5})$/.exec(value)) || [];
  const port = Number(digits);
  if (isAddress(address) && port >= PORT.least && port <= PORT.most) return { address, port };
  throw mustBe(path, 'a port, or an address and a port such as "10.0.0.1:7412"', value);
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

/** Several hosts may be on one machine, to try things: then all their ports differ. */
function requireDifferentPorts(machines: readonly Machine[]): void {
  const users = new Map<string, string>();
  const take = (address: string, port: number, path: Path): void => {
    const endpoint = `${address.toLowerCase()}:${port}`;
    const user = users.get(endpoint);
    if (user !== undefined) {
      throw new ConfigError(
        path,
        `${describePath(path)} is ${port}, but that port of ${address} is taken by ${user}`,
      );
    }
    users.set(endpoint, describePath(path));
  };
  machines.forEach(({ address, port, http }, host) => {
    take(address, port, ['hosts', host, 'port']);
    if (http !== undefined) take(placeOf(http, address), http.port, ['hosts', host, 'http']);
  });
}

/** @param machine  the address of the host itself, which stands for what is its own on every machine */
function placeOf({ address }: Endpoint, machine: string): string {
  const isEverywhere =
    address === ANY_ADDRESS || address === 'localhost' || address.startsWith('127.');
  return isEverywhere ? machine : address;
}

function requireEnough(machines: number, { replicas }: Shape): void {
  if (machines >= replicas) return;
  throw new ConfigError(
    ['hosts'],
    `the number of hosts must be at least ${replicas}, as many as a group has replicas, not ${machines}`,
    { hint: 'Two members of a group on one machine would be lost together.' },
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
          ? 'Some would have nothing to do.'
          : 'For another number, say with members which hosts each group is on.',
    },
  );
}

function checkMembers(value: unknown, machines: readonly Machine[], shape: Shape): number[] {
  const { groups } = shape;
  if (!Array.isArray(value)) {
    throw mustBe(['members'], 'a list with the hosts of each group', value);
  }
  if (value.length !== groups) {
    throw new ConfigError(
      ['members'],
      `members has length ${value.length}, but groups is ${groups}: it must have a list of hosts for each group`,
    );
  }
  const placement = Array.from(value, (names, group) =>
    checkGroup(names, group, machines, shape),
  ).flat();
  requireUse(placement, machines);
  return placement;
}

/** The hosts of one group. */
function checkGroup(
  value: unknown,
  group: number,
  machines: readonly Machine[],
  { replicas }: Shape,
): number[] {
  const path = ['members', group];
  if (!Array.isArray(value)) {
    throw mustBe(path, `a list of the hosts of group ${group}`, value);
  }
  if (value.length !== replicas) {
    throw new ConfigError(
      path,
      `${describePath(path)} has length ${value.length}, but replicas is ${replicas}: ` +
        `it must have a host for each member of group ${group}`,
    );
  }
  const hosts: number[] = [];
  for (let member = 0; member < replicas; member++) {
    const host = checkMember(value[member], [...path, member], machines);
    if (hosts.includes(host)) {
      throw new ConfigError(
        [...path, member],
        `${describePath([...path, member])} is ${machines[host]!.name}, which has another member of ` +
          `group ${group} already: its loss would cost the group two`,
      );
    }
    hosts.push(host);
  }
  return hosts;
}

function checkMember(value: unknown, path: Path, machines: readonly Machine[]): number {
  const asked = checkText(value, path);
  const names = machines.map(({ name }) => name);
  const host = names.indexOf(asked);
  if (host >= 0) return host;
  const nearest = nearestName(asked, names);
  const remedy =
    nearest === undefined ? `there are ${names.join(', ')}` : `did you mean ${nearest}?`;
  throw new ConfigError(
    path,
    `${describePath(path)} is ${quote(asked)}, and there is no such host: ${remedy}`,
  );
}

function requireUse(placement: readonly number[], machines: readonly Machine[]): void {
  const idle = machines.findIndex((_, host) => !placement.includes(host));
  if (idle < 0) return;
  const { name } = machines[idle]!;
  throw new ConfigError(['hosts', idle], `hosts[${idle}], ${name}, has no member of any group`, {
    hint: `Name ${name} in members, or leave it out of hosts.`,
  });
}

function checkSecret(value: unknown, directory: string): string {
  if (value === undefined) {
    throw new ConfigError(
      ['secret'],
      'memory: machines needs secret, a file that all hosts and clients have, such as "secret: cluster.secret"',
      { hint: 'Make one with `tram secret cluster.secret`, and copy it to all machines.' },
    );
  }
  return resolve(directory, checkFilled(value, ['secret']));
}

function checkProvider(value: unknown): string {
  if (value === undefined) return DEFAULT_PROVIDER;
  const provider = checkText(value, ['provider']);
  if (PROVIDER.test(provider)) return provider;
  throw new ConfigError(
    ['provider'],
    `provider must be the name of a provider of libfabric, such as tcp, not ${quote(provider)}`,
  );
}
