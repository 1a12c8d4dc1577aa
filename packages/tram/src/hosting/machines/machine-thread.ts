/** The entry point of a host on one of the threads of its machine (`machine-hosts.ts`). */
import { parentPort, workerData } from 'node:worker_threads';
import { TramError } from '../../errors.js';
import { failureOf } from '../host.js';
import type { ThreadData, ThreadOrder, ThreadReport } from './machine-hosts.js';
import { OneHost } from './one-host.js';

const starter = parentPort!;
const tell = (report: ThreadReport): void => starter.postMessage(report);

try {
  const host = new OneHost({
    ...(workerData as ThreadData),
    log: (level, text) => tell({ what: 'log', level, text }),
    report: (report) => tell({ what: 'report', report }),
  });
  const isToRun = new Promise<void>((resolve) => {
    starter.on('message', (order: ThreadOrder) => {
      if (order.what === 'look') tell({ what: 'health', health: host.health });
      else if (order.what === 'stop') host.stop(order.request);
      else resolve();
    });
  });
  tell({ what: 'opened' });
  await isToRun;
  const request = await host.run();
  tell({ what: 'closed', request });
} catch (error) {
  const failure = error instanceof TramError ? failureOf(error) : undefined;
  tell({ what: 'closed', failure });
  // Any other error is a bug: it ends the thread and shows its stack.
  if (failure === undefined) throw error;
} finally {
  starter.close();
}
