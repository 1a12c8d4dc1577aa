/**
 * A cluster's options from a YAML file. Called by the commands that start a cluster, and loaded when it is
 * needed: the library does without the packages that it takes.
 *
 * Zod checks the shape of the file and finds all mistakes of that kind at once; which values are allowed is
 * `resolveConfig`'s to say. Either way a mistake is told with file, line, column and key, the way compilers do,
 * so that an editor can jump to it. Paths in the file start from the file's own directory.
 */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import {
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseDocument,
  visit,
  type YAMLError,
} from 'yaml';
import { z } from 'zod';
import { TramError } from '../errors.js';
import { describePath, describeValue, type Path } from './checks.js';
import { unknownMachineKey } from './machines.js';
import {
  type ClusterOptions,
  ConfigError,
  type MachineOptions,
  type OptionName,
  resolveConfig,
  unknownOption,
} from './options.js';

/** Where a mistake is, as far as it is known: an offset into the text. */
interface Mistake {
  readonly offset: number | undefined;
  readonly message: string;
}

const mustBe =
  (expected: string) =>
  ({ input }: { readonly input?: unknown }): string =>
    input === null
      ? 'has no value: give it one, or leave the line out'
      : `must be ${expected}, not ${describeValue(input)}`;

const number = z.number({ error: mustBe('a number') });
const text = z.string({ error: mustBe('a string') });
const tree = z.union([z.string(), z.array(number)], {
  error: mustBe('a shape or a list of parents'),
});

const machine = z
  .strictObject(
    {
      name: text,
      address: text,
      port: number,
      http: z.union([number, text], { error: mustBe('a port, or an address and a port') }),
    } satisfies Record<keyof MachineOptions, z.ZodType>,
    { error: mustBe('a machine with name, address and port') },
  )
  .partial();
const hosts = z.union([z.number(), z.array(machine)], {
  error: mustBe('a number or a list of machines'),
});
const members = z.array(z.array(text, { error: mustBe('a list of hosts') }), {
  error: mustBe('a list with the hosts of each group'),
});

const SCHEMA = z
  .strictObject(
    {
      groups: number,
      replicas: number,
      tree,
      memory: text,
      name: text,
      service: text,
      hosts,
      members,
      secret: text,
      provider: text,
      clients: number,
      payloadBytesMax: number,
      replyBytesMax: number,
      callsMax: number,
      logBytes: number,
      inboxBytes: number,
      feedBytes: number,
      heartbeatMs: number,
      suspectAfterMs: number,
      resendAfterMs: number,
      trace: text,
    } satisfies Record<OptionName, z.ZodType>,
    {
      error: ({ input }) =>
        `expected options such as "groups: 8", not ${input === null ? 'an empty file' : describeValue(input)}`,
    },
  )
  .partial();

/** What the parser says in terms of its own interface or too tersely, said for the author of the file. */
const SYNTAX: Partial<Record<YAMLError['code'], string>> = {
  MULTIPLE_DOCS: 'a second document begins here; a cluster has one',
  TAB_AS_INDENT: "a tab can't indent a line: use spaces",
};

/** Checked completely, so that starting a cluster with them fails for no fault of theirs. */
export async function readConfigFile(path: string): Promise<ClusterOptions> {
  const source = await readSource(path);
  const lines = new LineCounter();
  const fail = (mistakes: readonly Mistake[], error?: ConfigError): never => {
    const { code = 'TRAM_INVALID_CONFIG', hint } = error ?? {};
    throw new TramError(code, describe(path, mistakes, lines), { hint, cause: error });
  };

  const document = parseDocument(source, {
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'error',
  });
  const malformed = syntaxMistake(document, source);
  if (malformed) return fail([malformed]);

  const parsed = SCHEMA.safeParse(document.toJS());
  if (!parsed.success) {
    return fail(parsed.error.issues.flatMap((issue) => shapeMistakes(issue, document)));
  }
  // Whatever is missing, `resolveConfig` misses.
  const options = parsed.data as ClusterOptions;
  try {
    const { service, trace, secretFile } = resolveConfig(options, 0, dirname(resolve(path)));
    return {
      ...options,
      ...(service && { service }),
      ...(trace && { trace }),
      ...(secretFile && { secret: secretFile }),
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const offset = valueOffset(document, error.path);
    return fail([{ offset, message: error.message }], error);
  }
}

async function readSource(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') {
      throw new TramError('TRAM_NOT_FOUND', `there is no file ${path}`, { cause });
    }
    throw new TramError('TRAM_SYSTEM', `${path} can't be read: ${message}`, { cause });
  }
}

/** In the order of the file, one a line. */
function describe(path: string, mistakes: readonly Mistake[], lines: LineCounter): string {
  return mistakes
    .toSorted((one, other) => (one.offset ?? 0) - (other.offset ?? 0))
    .map(({ offset, message }) => {
      if (offset === undefined) return `${path}: ${message}`;
      const { line, col } = lines.linePos(offset);
      return `${path}:${line}:${col}: ${message}`;
    })
    .join('\n');
}

/** The first one only: those after it are often its consequences. */
function syntaxMistake(document: Document.Parsed, source: string): Mistake | undefined {
  // A tag that the parser does not know is only a warning to it.
  const [error] = [...document.errors, ...document.warnings].sort(
    (one, other) => one.pos[0] - other.pos[0],
  );
  if (error) return { offset: error.pos[0], message: describeSyntax(error, source) };
  let alias: Mistake | undefined;
  visit(document, {
    Alias: (_, { source: name, range }) => {
      alias = { offset: range?.[0], message: `aliases such as *${name} can't be used here` };
      return visit.BREAK;
    },
  });
  return alias;
}

function describeSyntax({ code, message, pos }: YAMLError, source: string): string {
  if (code === 'DUPLICATE_KEY') {
    const [key] = /^[^\s:]*/.exec(source.slice(pos[0]))!;
    return `${key} is given twice`;
  }
  return SYNTAX[code] ?? `this is not valid YAML: ${message}`;
}

function shapeMistakes(issue: z.core.$ZodIssue, document: Document.Parsed): Mistake[] {
  // Keys of YAML are texts, and places in lists are numbers.
  const path = issue.path as Path;
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      offset: offsetOf(pairOf(nodeAt(document, path), key)?.key),
      message: unknownKey(path, key).message,
    }));
  }
  const inner = issue.code === 'invalid_union' ? innerIssues(issue) : [];
  if (inner.length > 0) return inner.flatMap((one) => shapeMistakes(one, document));
  const name = path.length === 0 ? '' : `${describePath(path)} `;
  return [{ offset: offsetOf(nodeAt(document, path)), message: `${name}${issue.message}` }];
}

function unknownKey([option, host]: Path, key: string): ConfigError {
  return option === undefined ? unknownOption(key) : unknownMachineKey(Number(host), key);
}

/** Of a list with wrong elements, these elements: that it is no string either helps nobody. */
function innerIssues({ path, errors }: z.core.$ZodIssueInvalidUnion): z.core.$ZodIssue[] {
  const inner = errors.find((issues) => issues.every((issue) => issue.path.length > 0)) ?? [];
  return inner.map((issue) => ({ ...issue, path: [...path, ...issue.path] }));
}

/** Nothing if the option was left out; of what is missing inside of one, what it is missing in. */
function valueOffset(document: Document.Parsed, path: Path): number | undefined {
  return path.length === 0 ? undefined : offsetOf(nodeAt(document, path));
}

/** As far as the path leads; nothing if it does not even lead to an option. */
function nodeAt({ contents }: Document.Parsed, path: Path): unknown {
  let node: unknown = contents;
  for (const [depth, place] of path.entries()) {
    const next = isSeq(node) ? node.items[Number(place)] : pairOf(node, place)?.value;
    if (next === undefined || next === null) return depth === 0 ? undefined : node;
    node = next;
  }
  return node;
}

function pairOf(node: unknown, name: string | number): Pair | undefined {
  if (!isMap(node)) return undefined;
  return node.items.find(({ key }) => isScalar(key) && String(key.value) === name);
}

function offsetOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
