/**
 * Histories as JSON Lines, for `tram check`: a directory with one file for each replica and client, so that writers
 * never wait for each other. Whole lines are written in batches.
 */
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { TraceEvent } from '../check/events.js';

const BATCH_CHARACTERS = 1 << 16;
/** Longer than any line. */
const LINE_BYTES = 1 << 14;

/** The name of a replica's file. */
export function traceName(group: number, member: number): string {
  return `replica-${group}-${member}`;
}

export class TraceFile {
  private readonly descriptor: number;
  private pending = '';

  constructor(directory: string, name: string) {
    mkdirSync(directory, { recursive: true });
    this.descriptor = openSync(join(directory, `${name}.jsonl`), 'a+', 0o600);
    cutUnfinishedLine(this.descriptor);
  }

  add(event: TraceEvent): void {
    this.pending += `${JSON.stringify(event)}\n`;
    if (this.pending.length >= BATCH_CHARACTERS) this.flush();
  }

  flush(): void {
    if (this.pending === '') return;
    writeSync(this.descriptor, this.pending);
    this.pending = '';
  }

  close(): void {
    this.flush();
    closeSync(this.descriptor);
  }
}

/** An earlier incarnation may have ended in the middle of a line. */
function cutUnfinishedLine(descriptor: number): void {
  const { size } = fstatSync(descriptor);
  const start = Math.max(0, size - LINE_BYTES);
  const last = Buffer.alloc(size - start);
  readSync(descriptor, last, 0, last.length, start);
  ftruncateSync(descriptor, start + last.lastIndexOf('\n') + 1);
}
