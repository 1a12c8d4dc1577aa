/** For what may happen with every message or stranger: it is said at most once a second, and how often it was not. */
const QUIET_MS = 1000;

export function rateLimited(say: (text: string) => void): (text: string) => void {
  let quietUntilMs = 0;
  let unsaid = 0;
  return (text) => {
    const nowMs = Date.now();
    if (nowMs < quietUntilMs) {
      unsaid++;
      return;
    }
    say(unsaid === 0 ? text : `${text} (and ${unsaid} more times before)`);
    quietUntilMs = nowMs + QUIET_MS;
    unsaid = 0;
  };
}
