/** The delays of messages during some spans of time: when each was sent and answered goes in, reports come out. */

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

/** Keeps the latest messages. What is asked of older ones is found out before they are replaced. */
export class SpanDelays {
  readonly #sentMs: Float64Array;
  readonly #answeredMs: Float64Array;
  /** Of all messages so far. */
  #count = 0;
  /** Of those that were compared with the spans. */
  #compared = 0;
  readonly #spans: Span[] = [];
  readonly #delays: number[][] = [];
  readonly #gaps: number[] = [];

  /** @param capacity  how many messages may be answered from one span to the next */
  constructor(private readonly capacity: number) {
    this.#sentMs = new Float64Array(capacity);
    this.#answeredMs = new Float64Array(capacity);
  }

  /** In the order of the answers. */
  note(sentMs: number, answeredMs: number): void {
    const at = this.#count++ % this.capacity;
    this.#sentMs[at] = sentMs;
    this.#answeredMs[at] = answeredMs;
  }

  /** Spans come in the order of time, each after its end. Messages of it may be answered later. */
  add(span: Span): void {
    this.#spans.push(span);
    this.#delays.push([]);
    this.#gaps.push(0);
    this.#compare();
  }

  report(): ChangesReport {
    this.#compare();
    const kept = Math.min(this.#count, this.capacity);
    const usual = Array.from(
      { length: kept },
      (_, i) => this.#answeredMs[i] - this.#sentMs[i],
    ).sort((a, b) => a - b);
    const lengths = this.#spans.map(({ fromMs, untilMs }) => untilMs - fromMs);
    return {
      changes: lengths.map((ms, i) => report(this.#delays[i], ms, this.#gaps[i])),
      total: report(
        this.#delays.flat(),
        lengths.reduce((sum, ms) => sum + ms, 0),
        Math.max(...this.#gaps),
      ),
      usualMsP50: usual[usual.length >> 1] ?? 0,
    };
  }

  /** Compares the messages that are new with all spans. */
  #compare(): void {
    if (this.#count - this.#compared >= this.capacity) {
      throw new Error(
        `more than ${this.capacity} messages were answered from one span to the next`,
      );
    }
    for (; this.#compared < this.#count; this.#compared++) {
      const at = this.#compared % this.capacity;
      const [sent, answered] = [this.#sentMs[at], this.#answeredMs[at]];
      const before =
        this.#compared === 0 ? answered : this.#answeredMs[(this.#compared - 1) % this.capacity];
      this.#spans.forEach(({ fromMs, untilMs }, i) => {
        if (answered <= fromMs) return;
        if (sent < untilMs) this.#delays[i].push(answered - sent);
        if (before < untilMs) this.#gaps[i] = Math.max(this.#gaps[i], answered - before);
      });
    }
  }
}

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
