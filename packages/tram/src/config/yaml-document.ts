/**
 * A YAML document whose values are found again in its text: which line and column a path leads to. The only file that needs
 * the package yaml; `file.ts` loads it when there is a file to read.
 */
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
import type { Path } from './mistakes.js';

export interface Place {
  readonly offset: number;
  /** Line and column count from 1, as in editors. */
  readonly line: number;
  readonly column: number;
}

export interface SyntaxMistake {
  readonly place: Place | undefined;
  readonly message: string;
}

/** Messages of the parser that are too terse, or speak of its own interface. */
const MESSAGES: Partial<Record<YAMLError['code'], string>> = {
  MULTIPLE_DOCS: 'a second document begins here; a cluster has one',
  TAB_AS_INDENT: "a tab can't indent a line: use spaces",
};

export class YamlDocument {
  private readonly lines = new LineCounter();
  private readonly document: Document.Parsed;

  constructor(private readonly source: string) {
    this.document = parseDocument(source, {
      lineCounter: this.lines,
      prettyErrors: false,
      logLevel: 'error',
    });
  }

  /** Objects, lists, strings, numbers, booleans and null. Only if there is no syntax mistake. */
  get value(): unknown {
    return this.document.toJS();
  }

  /** The first one: those after it are often its consequences. */
  get syntaxMistake(): SyntaxMistake | undefined {
    const { document } = this;
    // The parser only warns of a tag that it does not know.
    const [error] = [...document.errors, ...document.warnings].sort(
      (one, other) => one.pos[0] - other.pos[0],
    );
    if (error === undefined) return this.alias;
    return { place: this.placeAt(error.pos[0]), message: this.describe(error) };
  }

  /** An alias may expand to any size. */
  private get alias(): SyntaxMistake | undefined {
    let found: SyntaxMistake | undefined;
    visit(this.document, {
      Alias: (_, { source, range }) => {
        const message = `aliases such as *${source} are not supported here`;
        found = { place: this.placeAt(range?.[0]), message };
        return visit.BREAK;
      },
    });
    return found;
  }

  private describe({ code, message, pos }: YAMLError): string {
    if (code === 'DUPLICATE_KEY') {
      const [key] = this.source.slice(pos[0]).split(/[\s:]/, 1);
      return `${key} is given twice`;
    }
    return MESSAGES[code] ?? `this is not valid YAML: ${message}`;
  }

  /** Where the value is or, if it is missing, what it is missing in; nowhere if a whole option is missing. */
  placeOf(path: Path): Place | undefined {
    const place = this.placeOfNode(this.nodeAt(path));
    return place ?? (path.length > 1 ? this.placeOf(path.slice(0, -1)) : undefined);
  }

  /** Where the key itself is that the path ends with. */
  placeOfKey(path: Path): Place | undefined {
    const table = this.nodeAt(path.slice(0, -1));
    return this.placeOfNode(pairIn(table, path[path.length - 1])?.key);
  }

  /** Is there a key without a value? */
  isEmptyAt(path: Path): boolean {
    const node = this.nodeAt(path);
    return node === null || (isScalar(node) && node.value === null);
  }

  private nodeAt(path: Path): unknown {
    return path.reduce<unknown>(childOf, this.document.contents);
  }

  private placeOfNode(node: unknown): Place | undefined {
    return isNode(node) ? this.placeAt(node.range?.[0]) : undefined;
  }

  private placeAt(offset: number | undefined): Place | undefined {
    if (offset === undefined) return undefined;
    const { line, col } = this.lines.linePos(offset);
    return { offset, line, column: col };
  }
}

function childOf(node: unknown, step: string | number): unknown {
  return isSeq(node) ? node.items[Number(step)] : pairIn(node, step)?.value;
}

function pairIn(node: unknown, name: string | number): Pair | undefined {
  if (!isMap(node)) return undefined;
  return node.items.find(({ key }) => isScalar(key) && String(key.value) === name);
}
