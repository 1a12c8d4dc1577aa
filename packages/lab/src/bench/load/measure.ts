/** Measures a running system, and rejects measurements in which messages stay unanswered. */
import type { Load, Measurement, RunningSystem } from '../systems/system.js';

/** @throws if not all messages were answered, or none was sent */
export async function measure(
  running: Pick<RunningSystem, 'measure'>,
  load: Load,
): Promise<Measurement> {
  const measurement = await running.measure(load);
  const { messages, unanswered } = measurement;
  if (unanswered > 0) throw new Error(`${unanswered} messages were never answered`);
  if (messages === 0) throw new Error(`no message was answered within ${load.seconds} s`);
  return measurement;
}

/** Messages a second. */
export function rateOf({ messages, seconds }: Measurement): number {
  return messages / seconds;
}
