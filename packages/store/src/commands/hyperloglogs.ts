/** HyperLogLogs: estimates of how many different elements were added. */

import { CorruptedError, estimate, HyperLogLog, REGISTERS } from '../engine/hyperloglog.js';
import { ownCopy } from '../engine/own-buffer.js';
import { type Bytes, ErrorReply, OK, type Reply } from '../resp/reply.js';
import { ALL_KEYS, ONE_KEY } from './key-ranges.js';
import type { CommandSpec, Execution, Run } from './spec.js';

/** @returns undefined if the key is not there */
function readToRead(key: Bytes, { keyspace }: Execution): HyperLogLog | undefined {
  const bytes = keyspace.readBuffer(key);
  if (bytes === undefined) return undefined;
  if (!HyperLogLog.is(bytes)) {
    throw new ErrorReply('WRONGTYPE Key is not a valid HyperLogLog string value.');
  }
  return new HyperLogLog(bytes);
}

/** As `readToRead`, for a caller that changes the result in place and then stores it. A sparse one is small enough to be copied. */
function readToWrite(key: Bytes, execution: Execution): HyperLogLog | undefined {
  const existing = readToRead(key, execution);
  if (existing === undefined) return undefined;
  const { bytes, isDense } = existing;
  return new HyperLogLog(isDense ? execution.keyspace.bufferForWrite(key, 0) : ownCopy(bytes));
}

function pfadd([key, ...elements]: readonly Bytes[], execution: Execution): Reply {
  const existing = readToWrite(key, execution);
  const sketch = existing ?? HyperLogLog.create();
  let changed = existing === undefined;
  for (const element of elements) if (sketch.add(element)) changed = true;
  if (!changed) return 0;
  sketch.invalidate();
  execution.keyspace.replace(key, sketch.bytes);
  return 1;
}

function pfcount(keys: readonly Bytes[], execution: Execution): Reply {
  if (keys.length === 1) {
    const stored = readToRead(keys[0], execution)?.storedEstimate;
    if (stored !== undefined) return stored;
  }
  const registers = new Uint8Array(REGISTERS);
  for (const key of keys) readToRead(key, execution)?.raiseAll(registers);
  return estimate(registers);
}

/** The target is one of those that are merged. */
function pfmerge(keys: readonly Bytes[], execution: Execution): Reply {
  const registers = new Uint8Array(REGISTERS);
  let isDense = false;
  for (const key of keys) {
    const sketch = readToRead(key, execution);
    if (sketch?.isDense) isDense = true;
    sketch?.raiseAll(registers);
  }
  const target = readToWrite(keys[0], execution) ?? HyperLogLog.create();
  if (isDense) target.makeDense();
  registers.forEach((value, index) => {
    if (value > 0) target.raise(index, value);
  });
  target.invalidate();
  execution.keyspace.replace(keys[0], target.bytes);
  return OK;
}

function checking(run: Run): Run {
  return (args, execution) => {
    try {
      return run(args, execution);
    } catch (error) {
      if (!(error instanceof CorruptedError)) throw error;
      throw new ErrorReply('INVALIDOBJ Corrupted HLL object detected');
    }
  };
}

export const HYPERLOGLOGS: readonly CommandSpec[] = [
  {
    name: 'pfadd',
    arity: -2,
    flags: ['write', 'denyoom', 'fast'],
    category: 'hyperloglog',
    since: '2.8.9',
    summary: 'Adds elements to a HyperLogLog.',
    keys: ONE_KEY,
    run: checking(pfadd),
  },
  {
    name: 'pfcount',
    arity: -2,
    flags: ['readonly'],
    category: 'hyperloglog',
    since: '2.8.9',
    summary: 'Returns about how many different elements were added to HyperLogLogs.',
    differs: 'It changes nothing. Redis keeps the estimate in the string: GET shows it there.',
    keys: ALL_KEYS,
    run: checking(pfcount),
  },
  {
    name: 'pfmerge',
    arity: -2,
    flags: ['write', 'denyoom'],
    category: 'hyperloglog',
    since: '2.8.9',
    summary: 'Merges HyperLogLogs into one.',
    keys: ALL_KEYS,
    run: checking(pfmerge),
  },
];
