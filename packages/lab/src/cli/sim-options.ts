/** The options of `tram-lab sim`: parses them, and formats them for a replay. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { integer } from 'tram-multicast/internal/cli/number-option.js';
import {
  DURABILITIES,
  type Durability,
  ORDERS,
  type Order,
} from 'tram-multicast/internal/protocol/edges.js';
import {
  Overlay,
  OverlayError,
  parseTree,
  SHAPES,
} from 'tram-multicast/internal/protocol/overlay.js';
import { HOLES } from '../sim/mutations/holes.js';
import { MUTATIONS } from '../sim/mutations/table.js';
import { FAULTS, type Fault, MEMORIES, type MemoryKind, type Options } from '../sim/plan.js';

/** Options as Commander returns them: each is parsed, but combinations are not checked yet. */
export interface SimFlags {
  readonly seed?: number;
  readonly seeds?: number;
  readonly from?: number;
  readonly groups?: number;
  readonly replicas?: number;
  readonly tree?: string;
  readonly clients?: number;
  readonly messages?: number;
  readonly payload?: number;
  readonly ringBytes?: number;
  readonly memory?: MemoryKind;
  readonly order?: Order;
  readonly durability?: Durability;
  readonly faults?: readonly Fault[];
  readonly mutation?: readonly string[];
  readonly trace?: string;
  readonly link?: boolean;
  readonly jobs?: number;
  readonly json?: boolean;
  readonly throughput?: boolean;
}

export const DEFAULT_SEEDS = 100;
export const DEFAULT_FROM = 1;
/** Twice this and one more is still exact. */
const SEED_MAX = 2 ** 52 - 1;
const DEFAULT_GROUPS = 8;
const DEFAULT_SIMPLE_GROUPS = 3;

/** The options that determine a run, in the order in which a replay command has them. */
const SHAPING = [
  'groups',
  'replicas',
  'tree',
  'clients',
  'messages',
  'payload',
  'ringBytes',
  'memory',
  'order',
  'durability',
  'faults',
  'mutation',
] as const satisfies (keyof SimFlags)[];

export function addOptions(command: Command): Command {
  const choices: [string, string, (text: string) => unknown][] = [
    ['--groups <n>', 'number of groups', integer(1, 64)],
    ['--replicas <n>', 'members of each group: 1, 3, 5 or 7', oneOf([1, 3, 5, 7])],
    ['--tree <tree>', 'base, breadth, depth, simple, or the parent of each group: -1,0,0', tree],
    ['--clients <n>', 'clients at the same time', integer(1, 256)],
    ['--messages <n>', 'messages of all clients', integer(1, 1_000_000)],
    ['--payload <bytes>', 'largest payload', integer(0, 65_536)],
    ['--ring-bytes <bytes>', 'size of every ring; 0 is the smallest possible', integer(0, 1 << 24)],
    [
      '--memory <kind>',
      `${MEMORIES.slice(0, -1).join(', ')} or ${MEMORIES.at(-1)}`,
      oneOf(MEMORIES),
    ],
    ['--order <order>', ORDERS.join(' or '), oneOf(ORDERS)],
    [
      '--durability <mode>',
      `${DURABILITIES.slice(0, -1).join(', ')} (default: none) or ${DURABILITIES.at(-1)}`,
      oneOf(DURABILITIES),
    ],
    ['--faults <list>', 'only these faults, separated by commas, or "none"', faults],
    ['--mutation <list>', 'put errors into the protocol, separated by commas', mutations],
  ];
  command
    .addOption(
      new Option('--seed <n>', 'run this one seed')
        .argParser(integer(0, SEED_MAX))
        .conflicts(['seeds', 'from']),
    )
    .option('--seeds <n>', `the number of seeds (default: ${DEFAULT_SEEDS})`, integer(1, 1e9))
    .option('--from <n>', `the first seed (default: ${DEFAULT_FROM})`, integer(0, SEED_MAX - 1e9));
  for (const [flags, description, parse] of choices) command.option(flags, description, parse);
  return command
    .option('--trace <file>', 'write the history as JSON Lines; needs --seed')
    .option(
      '--link',
      'print a link that shows the run on the page, and do not run it; needs --seed',
    )
    .option('--jobs <n>', 'threads (default: one per core)', integer(1, 256))
    .option('--json', 'print the report as one JSON object')
    .addOption(
      new Option('--throughput', 'measure the throughput without faults').conflicts([
        ...SHAPING,
        'seed',
        'seeds',
        'from',
        'trace',
        'link',
        'jobs',
      ]),
    );
}

function oneOf<Value extends string | number>(values: readonly Value[]): (text: string) => Value {
  return (text) => {
    const value = values.find((candidate) => String(candidate) === text);
    if (value !== undefined) return value;
    throw new InvalidArgumentError(`Expected one of ${values.join(', ')}.`);
  };
}

/** Keeps the name of a shape, because the number of groups is not known yet. */
function tree(text: string): string {
  if (Object.hasOwn(SHAPES, text)) return text;
  try {
    return new Overlay(parseTree(text, 0)).parents.join(',');
  } catch (error) {
    if (error instanceof OverlayError) throw new InvalidArgumentError(`${error.message}.`);
    throw error;
  }
}

function faults(text: string): Fault[] {
  if (text === 'none') return [];
  return names(text, FAULTS, 'fault', '"none" or some of');
}

export function mutations(text: string): string[] {
  return names(text, Object.keys(MUTATIONS), 'mutation', 'some of');
}

function names<Name extends string>(
  text: string,
  known: readonly Name[],
  what: string,
  expected: string,
): Name[] {
  const given = [...new Set(text.split(',').map((part) => part.trim()))];
  const unknown = given.filter((name) => !known.includes(name as Name));
  if (unknown.length === 0) return given as Name[];
  throw new InvalidArgumentError(
    `Unknown ${what}: ${unknown.join(', ') || '(empty)'}. Expected ${expected} ${known.join(', ')}.`,
  );
}

/** Checks combinations of options. @throws {CommanderError} if they contradict each other */
export function planOptions(flags: SimFlags, command: Command): Options {
  const { groups, replicas, clients, messages, payload, ringBytes, memory, faults } = flags;
  const { order, durability } = flags;
  const parents = flags.tree === undefined ? undefined : parentsOf(flags.tree, groups);
  if (parents && groups !== undefined && parents.length !== groups) {
    command.error(
      `error: --groups ${groups} contradicts --tree ${flags.tree}, which has ${parents.length} groups`,
    );
  }
  if (flags.trace !== undefined && flags.seed === undefined) {
    command.error('error: --trace writes the history of one run: choose it with --seed');
  }
  if (flags.link) requireShowable(flags, command);
  return {
    ...Object.assign({}, ...(flags.mutation ?? []).map(optionsOf)),
    ...(groups !== undefined && { groups }),
    ...(replicas !== undefined && { replicas }),
    ...(parents && { tree: parents }),
    ...(clients !== undefined && { clients }),
    ...(messages !== undefined && { messages }),
    ...(payload !== undefined && { payloadBytes: payload }),
    ...(ringBytes !== undefined && { ringBytes }),
    ...(memory !== undefined && { memory }),
    ...(order !== undefined && { order }),
    ...(durability !== undefined && { durability }),
    ...(faults && { faults }),
  };
}

/** The page shows one run, with at most one hole. */
function requireShowable({ seed, mutation = [] }: SimFlags, command: Command): void {
  if (seed === undefined) command.error('error: --link shows one run: choose it with --seed');
  if (mutation.length > 1 || mutation.some((name) => !Object.hasOwn(HOLES, name))) {
    command.error(
      'error: the page shows runs with one of the holes H1 to H31, or with no mutation',
    );
  }
}

/** The options of runs that show a mutation. */
function optionsOf(name: string): Options {
  const { caughtBy } = MUTATIONS[name];
  return 'seed' in caughtBy ? (caughtBy.options ?? {}) : {};
}

function parentsOf(text: string, groups: number | undefined): readonly number[] {
  const shapeGroups = groups ?? (text === 'simple' ? DEFAULT_SIMPLE_GROUPS : DEFAULT_GROUPS);
  return parseTree(text, shapeGroups);
}

/** Whether the seeds alone determine the runs, apart from their durability. */
export function isAllDrawn(flags: SimFlags): boolean {
  return SHAPING.every((name) => name === 'durability' || flags[name] === undefined);
}

/** The command that runs this seed again, event for event. */
export function replayCommand(seed: number, flags: SimFlags): string {
  const words = ['npx tram-lab sim', `--seed ${seed}`];
  for (const name of SHAPING) {
    const value = flags[name];
    if (value === undefined) continue;
    const text = Array.isArray(value) ? value.join(',') || 'none' : String(value);
    words.push(`--${name === 'ringBytes' ? 'ring-bytes' : name} ${text}`);
  }
  words.push('--trace failure.jsonl');
  return words.join(' ');
}
