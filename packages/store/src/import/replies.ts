/** Reads replies of RESP 2 that come in pieces. */

import { StoreError } from '../options.js';
import { ErrorReply, type Reply, Simple } from '../resp/reply.js';
import type { Input } from './input.js';

const CR = 13;
const LF = 10;
const LINE_BYTES_MAX = 65_536;

/** @throws StoreError if the other side does not speak the protocol of Redis */
export async function nextReply(input: Input): Promise<Reply> {
  const line = await nextLine(input);
  const rest = line.slice(1);
  switch (line[0]) {
    case '+':
      return new Simple(rest);
    case '-':
      return new ErrorReply(rest);
    case ':':
      return Number(rest);
    case '$':
      return rest === '-1' ? null : nextBulk(input, lengthOf(rest));
    case '*':
      return rest === '-1' ? null : nextItems(input, lengthOf(rest));
    default:
      throw notRedis(line);
  }
}

/** Without its end. */
export async function nextLine(input: Input): Promise<string> {
  for (let from = 0; ; ) {
    const end = input.bytes.indexOf(LF, input.at + from);
    if (end >= 0 && end < input.end) {
      const isLong = end > input.at && input.bytes[end - 1] === CR;
      const line = input.bytes.toString('latin1', input.at, isLong ? end - 1 : end);
      input.at = end + 1;
      return line;
    }
    from = input.end - input.at;
    if (from > LINE_BYTES_MAX) throw notRedis('a long line');
    await input.more();
  }
}

/** As a string of bytes, whose length the line before has told. */
export async function nextBulk(input: Input, length: number): Promise<string> {
  await input.need(length + 2);
  const text = input.bytes.toString('latin1', input.at, input.at + length);
  input.at += length + 2;
  return text;
}

async function nextItems(input: Input, length: number): Promise<Reply[]> {
  const items: Reply[] = [];
  while (items.length < length) items.push(await nextReply(input));
  return items;
}

export function lengthOf(digits: string): number {
  if (/^\d{1,10}$/.test(digits)) return Number(digits);
  throw notRedis(digits);
}

function notRedis(line: string): StoreError {
  return new StoreError(
    `a server does not speak the protocol of Redis: ${JSON.stringify(line.slice(0, 40))}`,
    'Check the addresses, and whether the servers use TLS.',
  );
}
