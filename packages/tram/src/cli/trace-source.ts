/**
 * Reads a history for `tram check`: from a file, from stdin, or from a directory with a file for each replica,
 * client and era (hosting/trace.ts). All files are read as one text, and a line number of that text can be mapped back to
 * its file.
 *
 * A process that is killed may leave its last line incomplete. No other process has acted on that event, so it is
 * left out. Files that are written by no such process must be complete.
 */
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { TramError } from '../errors.js';

export interface Place {
  readonly name: string;
  readonly line: number;
}

export interface TraceSource {
  readonly chunks: AsyncIterable<string>;
  /** The file and line of a line of the whole text, once it has been read. */
  place(line: number): Place;
  /** Files whose last line was left out, once all files have been read. */
  readonly unfinished: readonly string[];
}

const CHUNK_BYTES = 1 << 18;
/** In the order in which they must be read: a multicast comes before its deliveries. */
const ORDER = [
  /^groups\.jsonl$/,
  /^era-\d+\.jsonl$/,
  /^client-\d+\.jsonl$/,
  /^replica-\d+-\d+\.jsonl$/,
  /^end\.jsonl$/,
];
const MAY_BREAK_OFF = /^(client|replica)-/;

export function openStdin(): TraceSource {
  return single('stdin', process.stdin.setEncoding('utf8'));
}

export function openFile(path: string): TraceSource {
  return single(path, textOf(path));
}

export async function isDirectory(path: string): Promise<boolean> {
  // If it does not exist, reading it fails with a clear message.
  return stat(path).then(
    (file) => file.isDirectory(),
    () => false,
  );
}

export async function openDirectory(directory: string): Promise<TraceSource> {
  const names = await readdir(directory);
  if (!names.includes('groups.jsonl')) {
    throw new TramError(
      'TRAM_INVALID_ARGUMENT',
      `${directory} has no history: there is no groups.jsonl`,
      { hint: 'Name the directory that was given as --trace, or a file.' },
    );
  }
  const ordered = ORDER.flatMap((pattern) =>
    names.filter((name) => pattern.test(name)).sort(byNumbers),
  );
  return new DirectorySource(directory, ordered);
}

/** Eras must be read in their order. */
function byNumbers(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true });
}

function single(name: string, chunks: AsyncIterable<string>): TraceSource {
  return { chunks, place: (line) => ({ name, line }), unfinished: [] };
}

/** Opens the file when it is read, so that the reader gets the error. */
async function* textOf(path: string): AsyncGenerator<string, void, void> {
  yield* createReadStream(path, { encoding: 'utf8', highWaterMark: CHUNK_BYTES });
}

class DirectorySource implements TraceSource {
  readonly unfinished: string[] = [];
  /** For each file that has been opened: the number of lines before it. */
  private readonly begun: { readonly name: string; readonly linesBefore: number }[] = [];
  private lines = 0;

  constructor(
    private readonly directory: string,
    private readonly names: readonly string[],
  ) {}

  get chunks(): AsyncIterable<string> {
    return this.read();
  }

  private async *read(): AsyncGenerator<string, void, void> {
    for (const name of this.names) {
      const path = join(this.directory, name);
      this.begun.push({ name: path, linesBefore: this.lines });
      let rest = '';
      for await (const chunk of textOf(path)) {
        const end = chunk.lastIndexOf('\n') + 1;
        if (end > 0) yield this.counted(rest + chunk.slice(0, end));
        rest = end > 0 ? chunk.slice(end) : rest + chunk;
      }
      if (rest === '') continue;
      if (MAY_BREAK_OFF.test(name)) this.unfinished.push(path);
      else yield this.counted(`${rest}\n`);
    }
  }

  /** @param text  whole lines */
  private counted(text: string): string {
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.lines++;
    return text;
  }

  place(line: number): Place {
    const file = this.begun.findLast(({ linesBefore }) => linesBefore < line)!;
    return { name: file.name, line: line - file.linesBefore };
  }
}
