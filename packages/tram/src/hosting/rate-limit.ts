/** Rate-limits a log callback to one line a second; a line tells how many were suppressed before it. */
const QUIET_MS = 1000;

export function rateLimited(log: (text: string) => void): (text: string) => void {
  let quietUntilMs = 0;
  let suppressed = 0;
  return (text) => {
    const nowMs = Date.now();
    if (nowMs < quietUntilMs) {
      suppressed++;
      return;
    }
    log(suppressed === 0 ? text : `${text} (${suppressed} similar lines suppressed)`);
    quietUntilMs = nowMs + QUIET_MS;
    suppressed = 0;
  };
}
