/**
 * Reads a history from JSON Lines, chunk by chunk, without keeping the text.
 *
 * This file checks the shape of each line; `History.add` checks that it fits the lines before it.
 * Unknown fields are ignored. Unknown events are errors, so that a misspelt event is not overlooked.
 * Empty lines are skipped.
 */

import { MalformedTraceError, type TraceEvent } from './events.js';
import { History } from './history.js';

/** Reads the whole trace. @throws {MalformedTraceError} at the first bad line */
export async function readTrace(
  chunks: AsyncIterable<string> | Iterable<string>,
): Promise<History> {
  const reader = new TraceReader();
  for await (const chunk of chunks) reader.push(chunk);
  return reader.end();
}

/** Reads a trace that is in memory. @throws {MalformedTraceError} at the first bad line */
export function parseTrace(text: string): History {
  const reader = new TraceReader();
  reader.push(text);
  return reader.end();
}

export class TraceReader {
  private readonly history = new History();
  private line = 0;
  /** The text after the last line break. */
  private rest = '';

  push(chunk: string): void {
    let start = 0;
    for (let end = chunk.indexOf('\n'); end !== -1; end = chunk.indexOf('\n', start)) {
      const tail = chunk.slice(start, end);
      if (this.rest === '') {
        this.readLine(tail);
      } else {
        const text = this.rest + tail;
        this.rest = '';
        this.readLine(text);
      }
      start = end + 1;
    }
    this.rest += chunk.slice(start);
  }

  end(): History {
    if (this.rest !== '') this.readLine(this.rest);
    this.rest = '';
    return this.history;
  }

  private readLine(text: string): void {
    this.line++;
    if (text.trim() === '') return;
    try {
      this.history.add(parseEvent(text, this.line), this.line);
    } catch (error) {
      if (!(error instanceof MalformedTraceError)) throw error;
      throw new MalformedTraceError(error.reason, this.line, text);
    }
  }
}

type Fields = Readonly<Record<string, unknown>>;
type Shape = Readonly<Record<string, (value: unknown) => boolean>>;

const isString = (value: unknown): boolean => typeof value === 'string';
const isBoolean = (value: unknown): boolean => typeof value === 'boolean';
const isCount = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;
const isTime = (value: unknown): boolean => Number.isFinite(value);
const isOrder = (value: unknown): boolean => value === 'strict' || value === 'multicast';
const isDurability = (value: unknown): boolean =>
  value === 'none' || value === 'everySecond' || value === 'always';
const isParent = (value: unknown): boolean => value === -1 || isCount(value);
const isOptional = (is: (value: unknown) => boolean) => (value: unknown) =>
  value === undefined || is(value);
const isListOf = (is: (value: unknown) => boolean) => (value: unknown) =>
  Array.isArray(value) && value.every(is);
const isMembership = (value: unknown): boolean =>
  isObject(value) &&
  Object.entries(value).every(
    ([group, replicas]) => /^(0|[1-9]\d{0,8})$/.test(group) && isListOf(isString)(replicas),
  );

const SHAPES = {
  groups: {
    groups: isMembership,
    parents: isOptional(isListOf(isParent)),
    order: isOptional(isOrder),
  },
  era: { era: isCount, durability: isDurability },
  'client-start': { client: isString, clock: isString, era: isOptional(isCount) },
  multicast: {
    id: isString,
    client: isString,
    destinations: isListOf(isCount),
    entryGroup: isOptional(isCount),
    timeUs: isOptional(isTime),
  },
  answered: { id: isString, group: isCount, timeUs: isOptional(isTime) },
  deliver: { id: isString, group: isCount, replica: isString },
  touch: { id: isString, group: isCount },
  leader: { group: isCount, replica: isString, ballot: isString },
  crash: { replica: isString },
  restart: { replica: isString, era: isOptional(isCount) },
  opened: { replica: isString },
  restore: { replica: isString, from: isString, count: isCount },
  'client-crash': { client: isString },
  end: { quiescent: isBoolean },
} as const satisfies Record<TraceEvent['event'], Shape>;

const SHAPE_OF = new Map<unknown, Shape>(Object.entries(SHAPES));

/** Parses one line and checks that its fields are present and of the right type. */
export function parseEvent(text: string, line: number): TraceEvent {
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    throw new MalformedTraceError('this is not JSON', line, text);
  }
  if (!isObject(fields)) throw new MalformedTraceError('this is not a JSON object', line, text);
  const shape = SHAPE_OF.get(fields['event']);
  if (shape === undefined) {
    const name = JSON.stringify(fields['event']);
    const reason = name === undefined ? 'the field "event" is missing' : `unknown event ${name}`;
    throw new MalformedTraceError(reason, line, text);
  }
  for (const field in shape) {
    if (shape[field](fields[field])) continue;
    const state = fields[field] === undefined ? 'is missing' : 'has the wrong type or value';
    const reason = `the field "${field}" of a "${fields['event']}" event ${state}`;
    throw new MalformedTraceError(reason, line, text);
  }
  return fields as unknown as TraceEvent;
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
