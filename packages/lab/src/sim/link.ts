/**
 * A run as text, for the fragment of a link to the page: either drawn from a seed, as `tram-lab sim` runs it, or a cluster
 * of the user's own, and in both cases what the user has done to it, and how far to go. `tram-lab sim --link` writes such
 * a text, the page reads and writes it.
 *
 * Invariant: the text determines the run, event for event.
 */
import { DURABILITIES, ORDERS, TRANSITIONS } from 'tram-multicast/internal/protocol/edges.js';
import { FAULTS, MEMORIES, type Options } from './plan.js';

/** A command (commands.ts), and after how many events it was given. */
export interface Deed {
  readonly afterEvents: number;
  readonly command: string;
}

export interface RunLink {
  readonly seed: number;
  /** The mutation of the protocol; undefined: none. */
  readonly mutation?: string | undefined;
  /** The user's own cluster, in the words of the command `cluster`; undefined: the plan is drawn. */
  readonly cluster?: string | undefined;
  /** Of a drawn plan. */
  readonly options: Options;
  /** In order. */
  readonly deeds: readonly Deed[];
  /** How many events to show. */
  readonly events: number;
}

/** The text is no run. */
export class LinkError extends Error {
  override readonly name = 'LinkError';
}

type Key = keyof Options;

const NUMBERS: Readonly<Record<string, readonly [least: number, most: number]>> = {
  groups: [1, 64],
  replicas: [1, 7],
  clients: [1, 256],
  messages: [1, 1_000_000],
  payloadBytes: [0, 65_536],
  ringBytes: [0, 1 << 24],
} satisfies Partial<Record<Key, readonly [number, number]>>;

const WORDS: Readonly<Record<string, readonly string[]>> = {
  memory: MEMORIES,
  order: ORDERS,
  durability: DURABILITIES,
} satisfies Partial<Record<Key, readonly string[]>>;

const SEED_MAX = 2 ** 52 - 1;
const EVENTS_MAX = 1e9;
const NONE = 'none';

export function formatLink(link: RunLink): string {
  const { seed, mutation, cluster, options, deeds, events } = link;
  const parts = new URLSearchParams({ seed: String(seed) });
  if (mutation !== undefined) parts.set('mutation', mutation);
  if (cluster !== undefined) parts.set('cluster', cluster.trim());
  for (const [key, value] of Object.entries(options) as [string, unknown][]) {
    const text = Array.isArray(value) ? value.join(',') || NONE : String(value);
    parts.set(key, text);
  }
  for (const { afterEvents, command } of deeds) parts.append('do', `${afterEvents} ${command}`);
  if (events > 0) parts.set('events', String(events));
  return parts.toString();
}

/** @throws {LinkError} */
export function parseLink(text: string): RunLink {
  const parts = new URLSearchParams(text);
  const options: Record<string, unknown> = {};
  const deeds: Deed[] = [];
  const link = { seed: 1, events: 0, options, deeds } as Record<string, unknown>;
  for (const [key, value] of parts) {
    if (key === 'seed') link['seed'] = toInteger(key, value, 0, SEED_MAX);
    else if (key === 'events') link['events'] = toInteger(key, value, 0, EVENTS_MAX);
    else if (key === 'mutation' || key === 'cluster') link[key] = value;
    else if (key === 'do') deeds.push(toDeed(value));
    else options[key] = toOption(key, value);
  }
  if (deeds.some(({ afterEvents }, i) => i > 0 && afterEvents < deeds[i - 1].afterEvents))
    throw new LinkError('what was done is not in order');
  return link as unknown as RunLink;
}

function toDeed(text: string): Deed {
  const [, afterEvents, command] = /^(\d+) (.+)$/.exec(text) ?? [];
  if (command === undefined) throw new LinkError(`"do=${text}" is no command`);
  return { afterEvents: toInteger('do', afterEvents, 0, EVENTS_MAX), command };
}

function toOption(key: string, text: string): unknown {
  if (Object.hasOwn(NUMBERS, key)) return toInteger(key, text, ...NUMBERS[key]);
  if (Object.hasOwn(WORDS, key)) return oneOf(key, text, WORDS[key]);
  if (key === 'ticks') return oneOf(key, text, ['true', 'false']) === 'true';
  const list = text === NONE ? [] : text.split(',');
  if (key === 'tree') return list.map((parent) => toInteger(key, parent, -1, 63));
  if (key === 'faults') return list.map((fault) => oneOf(key, fault, FAULTS));
  if (key === 'triggers') return list.map((trigger) => oneOf(key, trigger, TRANSITIONS));
  throw new LinkError(`"${key}" is unknown`);
}

function toInteger(key: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (/^-?\d+$/.test(text) && value >= least && value <= most) return value;
  throw new LinkError(`${key}=${text} is not a number from ${least} to ${most}`);
}

function oneOf(key: string, text: string, known: readonly string[]): string {
  if (known.includes(text)) return text;
  throw new LinkError(`${key}=${text} is not one of ${known.join(', ')}`);
}
