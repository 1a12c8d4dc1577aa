/**
 * A cluster's options from a YAML file. Called by the commands that start a cluster.
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
import {
  type ClusterOptions,
  ConfigError,
  describeValue,
  type OptionName,
  resolveConfig,
  unknownOption,
} from '../config.js';
import { TramError } from '../errors.js';

/** Where a mistake is, as far as it is known: an offset into the text. */
interface Mistake {
  readonly offset: number | undefined;
  readonly message: string;
}

type Path = readonly PropertyKey[];

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

const SCHEMA = z
  .strictObject(
    {
      groups: number,
      replicas: number,
      tree,
      memory: text,
      name: text,
      service: text,
      hosts: number,
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
    const { service, trace } = resolveConfig(options, 0, dirname(resolve(path)));
    return { ...options, ...(service && { service }), ...(trace && { trace }) };
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
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      offset: offsetOf(pairOf(document, key)?.key),
      message: unknownOption(key).message,
    }));
  }
  const { path, message } = innermost(issue);
  const [option, ...places] = path.map(String);
  const name = option === undefined ? '' : `${option}${places.map((place) => `[${place}]`)} `;
  const offset = option === undefined ? offsetOf(document.contents) : valueOffset(document, path);
  return [{ offset, message: `${name}${message}` }];
}

/** Of a list with a wrong element, the element: that it is no string either helps nobody. */
function innermost(issue: z.core.$ZodIssue): { readonly path: Path; readonly message: string } {
  if (issue.code !== 'invalid_union') return issue;
  const inner = issue.errors.flat().find(({ path }) => path.length > 0);
  return inner ? { path: [...issue.path, ...inner.path], message: inner.message } : issue;
}

/** Nothing if the path leads to nothing, as that to an option left out. */
function valueOffset(document: Document.Parsed, [name, place]: Path): number | undefined {
  const value = pairOf(document, name)?.value;
  const element = isSeq(value) ? value.items[Number(place)] : undefined;
  return offsetOf(element ?? value);
}

function pairOf({ contents }: Document.Parsed, name: PropertyKey | undefined): Pair | undefined {
  if (!isMap(contents)) return undefined;
  return contents.items.find(({ key }) => isScalar(key) && String(key.value) === name);
}

function offsetOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
