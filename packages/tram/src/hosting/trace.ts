/**
 * Histories as JSON Lines, for `tram check`: a directory with one file for each replica and client, so that writers
 * never wait for each other. Whole lines are written in batches.
 *
 * A cluster with a journal continues its history in later eras. Invariants, for writers that may be killed at any time: a
 * message is in its file before it is sent, and a delivery before a snapshot that covers it is taken.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import type { TraceEvent } from '../check/events.js';
import type { Call } from '../protocol/data-path/client.js';
import { messageId } from '../protocol/layout.js';
import { groupsOf } from './service.js';

const BATCH_CHARACTERS = 1 << 16;
/** Longer than any line. */
const LINE_BYTES = 1 << 14;

/** The name of a replica's file. */
export function traceName(group: number, member: number): string {
  return `replica-${group}-${member}`;
}

/** The name of an era's file. */
export function eraName(era: number): string {
  return `era-${era}`;
}

/** Writes a file of one line, unless it exists: another host may have written it. It is never there in part. */
export function writeOnce(directory: string, name: string, event: TraceEvent): void {
  const path = join(directory, `${name}.jsonl`);
  const draft = `${path}.${process.pid}-${threadId}`;
  try {
    mkdirSync(directory, { recursive: true });
    if (existsSync(path)) return;
    writeFileSync(draft, `${JSON.stringify(event)}\n`, { mode: 0o600 });
    linkSync(draft, path);
  } catch (cause) {
    if (!existsSync(path)) throw cause;
  } finally {
    rmSync(draft, { force: true });
  }
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

/** The file of one client: what it multicasts and which replies it receives, with times for real-time order. */
export class ClientTrace {
  private readonly file: TraceFile;
  private readonly client: string;

  constructor(
    directory: string,
    private readonly session: number,
    /** With a journal. */
    era: number | undefined,
  ) {
    this.client = `c${session}`;
    this.file = new TraceFile(directory, `client-${session}`);
    const clock = clockName();
    this.file.add({
      event: 'client-start',
      client: this.client,
      clock,
      ...(era !== undefined && { era }),
    });
  }

  /** Must be called before the message is written to a replica. */
  multicast(call: Call): void {
    const { entryGroup, destinationsLow, destinationsHigh } = call;
    const destinations = groupsOf(destinationsLow, destinationsHigh);
    const [id, client, timeUs] = [this.idOf(call), this.client, clockUs()];
    this.file.add({ event: 'multicast', id, client, destinations, entryGroup, timeUs });
  }

  /** Must be called after the reply of the group was read. */
  answered(call: Call, group: number): void {
    this.file.add({ event: 'answered', id: this.idOf(call), group, timeUs: clockUs() });
  }

  /** An earlier client, which had the same slot, ended before all its messages were answered. */
  crashed(session: number): void {
    this.file.add({ event: 'client-crash', client: `c${session}` });
    this.file.flush();
  }

  flush(): void {
    this.file.flush();
  }

  close(): void {
    this.file.close();
  }

  private idOf({ entryGroup, number }: Call): string {
    return messageId({ session: this.session, entryGroup, number });
  }
}

/** The monotonic clock of the operating system, which all processes of a machine share. */
function clockUs(): number {
  return Number(process.hrtime.bigint()) / 1000;
}

/** The same in all processes that read the same clock. Each boot of a machine and each time namespace has its own clock. */
function clockName(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/time')}`;
  } catch {
    // Not Linux: it is unknown whether two processes read the same clock.
    return `process ${process.pid} of ${hostname()}`;
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
