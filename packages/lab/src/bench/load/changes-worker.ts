/**
 * Clients under leader changes, in a process of their own, started by `changes.ts`. They are told each span of time when it is over, and
 * report at the end how messages were delayed in all of them.
 */
import { endWithParent } from './end-with-parent.js';
import { Load, type LoadOptions } from './load.js';
import { sparingDutyOf } from './loads-duty.js';
import { openTarget, type TargetAddress } from './open-target.js';
import { type Span, SpanDelays } from './span-delays.js';

export interface ChangesJob extends LoadOptions, TargetAddress {}

const SLICE_US = 2000;
const MESSAGES_MAX = 1 << 23;

endWithParent();
process.once('message', async (job: ChangesJob) => {
  const target = await openTarget(job, job.clients);
  // From the clock of this process to the one that all processes share.
  const offsetMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  const delays = new SpanDelays(MESSAGES_MAX);
  const note = (sent: number, answered: number): void =>
    delays.note(sent + offsetMs, answered + offsetMs);
  const loads = Array.from({ length: job.clients }, (_, i) => new Load(target, job, i, note));
  const duty = sparingDutyOf(target, job, loads);
  let timer: NodeJS.Immediate;
  const slice = (): void => {
    duty.run(SLICE_US);
    timer = setImmediate(slice);
  };
  slice();
  process.send!('started');
  process.on('message', (span: Span | 'end') => {
    if (span !== 'end') {
      delays.add(span);
      return;
    }
    clearImmediate(timer);
    process.send!(delays.report());
  });
});
