/**
 * Clients under leader changes, in a process of their own, started by `changes.ts`. They record when each message was sent and
 * answered. They are told each span of time when it is over, and report on all of them at the end.
 */
import { endWithParent } from './end-with-parent.js';
import { Load, type LoadOptions } from './load.js';
import { sparingDutyOf } from './loads-duty.js';
import { openTarget, type TargetAddress } from './open-target.js';

export interface ChangesJob extends LoadOptions, TargetAddress {}

/** In the monotonic clock that all processes share. */
export interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The delays of the messages that were in flight at some moment of a span. */
export interface SpanReport {
  readonly messages: number;
  readonly spanMs: number;
  /** The longest time between two consecutive answers that overlaps the span. */
  readonly gapMs: number;
  readonly meanMs: number;
  readonly deviationMs: number;
  readonly minMs: number;
  readonly maxMs: number;
}

export interface ChangesReport {
  readonly changes: readonly SpanReport[];
  readonly total: SpanReport;
  /** The median over all messages, for comparison. */
  readonly usualMsP50: number;
}

const SLICE_US = 2000;
/** So many messages are kept from one change to the next. */
const MESSAGES_MAX = 1 << 23;

endWithParent();
process.once('message', async (job: ChangesJob) => {
  const target = await openTarget(job, job.clients);
  // From the clock of this process to the one that all processes share.
  const offsetMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  const sentMs = new Float64Array(MESSAGES_MAX);
  const answeredMs = new Float64Array(MESSAGES_MAX);
  let count = 0;
  const note = (sent: number, answered: number): void => {
    sentMs[count % MESSAGES_MAX] = sent + offsetMs;
    answeredMs[count % MESSAGES_MAX] = answered + offsetMs;
    count++;
  };
  const loads = Array.from({ length: job.clients }, (_, i) => new Load(target, job, i, note));
  const duty = sparingDutyOf(target, job, loads);
  let timer: NodeJS.Immediate;
  const slice = (): void => {
    duty.run(SLICE_US);
    timer = setImmediate(slice);
  };
  slice();
  process.send!('started');
  const spans: Span[] = [];
  const delays: number[][] = [];
  const gaps: number[] = [];
  let scanned = 0;
  const scan = (): void => {
    if (count - scanned >= MESSAGES_MAX) {
      throw new Error(
        `a change took so long that more than ${MESSAGES_MAX} messages were answered`,
      );
    }
    for (; scanned < count; scanned++) {
      const at = scanned % MESSAGES_MAX;
      const [sent, answered] = [sentMs[at], answeredMs[at]];
      const before = scanned === 0 ? answered : answeredMs[(scanned - 1) % MESSAGES_MAX];
      spans.forEach(({ fromMs, untilMs }, i) => {
        if (answered <= fromMs) return;
        if (sent < untilMs) delays[i].push(answered - sent);
        if (before < untilMs) gaps[i] = Math.max(gaps[i], answered - before);
      });
    }
  };
  process.on('message', (span: Span | 'end') => {
    if (span !== 'end') {
      spans.push(span);
      delays.push([]);
      gaps.push(0);
      scan();
      return;
    }
    clearImmediate(timer);
    scan();
    const kept = Math.min(count, MESSAGES_MAX);
    const usual = Array.from({ length: kept }, (_, i) => answeredMs[i] - sentMs[i]).sort(
      (a, b) => a - b,
    );
    const answer: ChangesReport = {
      changes: spans.map((span, i) => report(delays[i], span.untilMs - span.fromMs, gaps[i])),
      total: report(
        delays.flat(),
        spans.reduce((sum, span) => sum + span.untilMs - span.fromMs, 0),
        Math.max(...gaps),
      ),
      usualMsP50: usual[usual.length >> 1] ?? 0,
    };
    process.send!(answer);
  });
});

function report(delaysMs: readonly number[], spanMs: number, gapMs: number): SpanReport {
  const messages = delaysMs.length;
  if (messages === 0) throw new Error('no message was in flight during a change');
  const meanMs = delaysMs.reduce((sum, delay) => sum + delay, 0) / messages;
  const variance = delaysMs.reduce((sum, delay) => sum + (delay - meanMs) ** 2, 0) / messages;
  return {
    messages,
    spanMs,
    gapMs,
    meanMs,
    deviationMs: Math.sqrt(variance),
    minMs: delaysMs.reduce((least, delay) => Math.min(least, delay), Infinity),
    maxMs: delaysMs.reduce((greatest, delay) => Math.max(greatest, delay), 0),
  };
}
