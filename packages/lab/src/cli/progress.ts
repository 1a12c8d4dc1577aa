/** Shows the progress of a long run on stderr: one line that changes on a terminal, a new line every 10 s elsewhere. */
import type { Totals } from '../sim/outcome.js';

const REDRAW_MS = 200;
const REPORT_MS = 10_000;

export interface Progress {
  /** Draw the line now: for work that does not return to the event loop. */
  draw(): void;
  end(): void;
}

export function showProgress(seeds: number, totals: Totals): Progress {
  const startedMs = performance.now();
  return showLine(() => {
    const seconds = (performance.now() - startedMs) / 1000;
    const perSecond = totals.seeds / seconds;
    const left = totals.seeds === 0 ? '' : `, ${duration((seeds - totals.seeds) / perSecond)} left`;
    return `${totals.seeds} of ${seeds} seeds, ${perSecond.toFixed(1)} per second, ${totals.failed} failed${left}`;
  });
}

/** @param line  describes the progress */
export function showLine(line: () => string): Progress {
  const { stderr } = process;
  const draw = (): void => {
    stderr.write(stderr.isTTY ? `\r\u001b[K${line()}` : `${line()}\n`);
  };
  const timer = setInterval(draw, stderr.isTTY ? REDRAW_MS : REPORT_MS);
  return {
    draw,
    end: () => {
      clearInterval(timer);
      if (stderr.isTTY) stderr.write('\r\u001b[K');
    },
  };
}

export function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
