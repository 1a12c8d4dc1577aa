/**
 * Clients under leader changes, in a process of their own, started by `changes.ts`. They record when each message was sent and
 * answered, and report on the given spans of time.
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
const MESSAGES_MAX = 1 << 22;

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
  process.once('message', (spans: Span[]) => {
    clearImmediate(timer);
    const kept = Math.min(count, MESSAGES_MAX);
    const delayedIn = (span: Span): number[] => {
      const delays: number[] = [];
      for (let i = 0; i < kept; i++) {
        if (sentMs[i] < span.untilMs && answeredMs[i] > span.fromMs) {
          delays.push(answeredMs[i] - sentMs[i]);
        }
      }
      return delays;
    };
    const gapIn = ({ fromMs, untilMs }: Span): number => {
      let longest = 0;
      for (let i = 1; i < kept; i++) {
        const [before, after] = [answeredMs[i - 1], answeredMs[i]];
        if (before < untilMs && after > fromMs) longest = Math.max(longest, after - before);
      }
      return longest;
    };
    const delays = spans.map(delayedIn);
    const gaps = spans.map(gapIn);
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
  const meanMs = delaysMs.reduce((sum, delay) => sum + delay, 0) / messages;
  const variance = delaysMs.reduce((sum, delay) => sum + (delay - meanMs) ** 2, 0) / messages;
  return {
    messages,
    spanMs,
    gapMs,
    meanMs,
    deviationMs: Math.sqrt(variance),
    minMs: Math.min(...delaysMs),
    maxMs: Math.max(...delaysMs),
  };
}
