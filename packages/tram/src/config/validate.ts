/**
 * The one validator: compares what the user gave with the list of options, one option at a time. Programs get the first
 * mistake, readers of files all of them. `config.ts` then applies the rules that relate several options.
 */
import type { Fields, Kind, Option } from './kinds.js';
import { ConfigError, describePath, type Mistake, mustBe, type Path, quote } from './mistakes.js';
import { nearestName } from './nearest-name.js';
import { type ClusterOptions, MEMORIES, type MemoryKind, OPTIONS } from './options.js';

type Given = Readonly<Partial<Record<string, unknown>>>;

/** A copy of the options. @throws ConfigError for the first mistake */
export function validOptions(options: unknown): ClusterOptions {
  const [mistake] = mistakesIn(options);
  if (mistake === undefined) return { ...(options as ClusterOptions) };
  throw new ConfigError(mistake.path, mistake.message, { hint: mistake.hint });
}

/** Unknown names first, then in the order of the list. */
export function mistakesIn(options: unknown): Mistake[] {
  if (!isObject(options)) return [mustBe([], 'an object', options)];
  const { memory: asked = OPTIONS.memory.default } = { ...options };
  const memory = MEMORIES.find((known) => known === asked);
  return checkFields(OPTIONS, options, [], memory);
}

/** @param memory  undefined if the user asks for one that does not exist */
function checkFields(
  fields: Fields,
  given: Given,
  path: Path,
  memory: MemoryKind | undefined,
): Mistake[] {
  // Without properties that the object inherits.
  const own = { ...given };
  const known = Object.keys(fields);
  const unknown = Object.keys(own).filter((key) => !known.includes(key));
  // An option with a misspelled name is not missing as well.
  const misspelled = unknown.map((key) => nearestName(key, known));
  const checked = known.filter((name) => own[name] !== undefined || !misspelled.includes(name));
  return [
    ...unknown.map((key) => unknownKey(path, key, known)),
    ...checked.flatMap((name) => checkOption(fields[name], own[name], [...path, name], memory)),
  ];
}

function unknownKey(path: Path, key: string, known: readonly string[]): Mistake {
  const isOption = path.length === 0;
  const what = isOption ? 'option' : 'key';
  const where = isOption ? '' : ` in ${describePath(path)}`;
  const nearest = nearestName(key, known);
  const remedy =
    nearest === undefined ? `the ${what}s are ${known.join(', ')}` : `did you mean ${nearest}?`;
  const message = `unknown ${what} ${quote(key)}${where}: ${remedy}`;
  return { path: [...path, key], message, isInKey: true };
}

function checkOption(
  option: Option,
  value: unknown,
  path: Path,
  memory: MemoryKind | undefined,
): Mistake[] {
  // What the option must be depends on the memory.
  if (option.onMachines !== undefined && memory === undefined) return [];
  const isOnMachines = memory === 'machines';
  const kind = (isOnMachines ? option.onMachines : undefined) ?? option.kind;
  if (kind === undefined) return value === undefined ? [] : [onlyOnMachines(path, memory)];
  if (value !== undefined) return checkValue(kind, value, path, memory, option.hint);
  const isRequired = option.required === 'always' || (isOnMachines && option.required);
  return isRequired ? [missing(option, kind, path)] : [];
}

function onlyOnMachines(path: Path, memory: MemoryKind | undefined): Mistake {
  const name = describePath(path);
  return {
    path,
    message: `${name} is for memory: machines, but memory is ${memory}`,
    hint: `Add "memory: machines", or leave ${name} out.`,
  };
}

function missing({ required, hint }: Option, { expected }: Kind, path: Path): Mistake {
  const when = required === 'on machines' ? ' with memory: machines' : '';
  return { path, message: `${describePath(path)} is required${when}: ${expected}`, hint };
}

function checkValue(
  kind: Kind,
  value: unknown,
  path: Path,
  memory: MemoryKind | undefined,
  hint?: string,
): Mistake[] {
  if ('elements' in kind && Array.isArray(value)) {
    // Unlike `flatMap`, `Array.from` does not skip holes.
    return Array.from(value, (element, index) =>
      checkValue(kind.elements, element, [...path, index], memory),
    ).flat();
  }
  if ('fields' in kind && isObject(value)) return checkFields(kind.fields, value, path, memory);
  const scalar = 'accepts' in kind ? kind : 'or' in kind ? kind.or : undefined;
  return scalar?.accepts(value) ? [] : [mustBe(path, kind.expected, value, hint)];
}

function isObject(value: unknown): value is Given {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
