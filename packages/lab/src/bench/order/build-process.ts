/** The process in which TRAM is measured as one build has it. Started by `build.ts`. */
import { serveOrders } from '../load/forked.js';
import { measure } from '../load/measure.js';
import type * as TramModule from '../systems/tram.js';
import type { BuildJob } from './build.js';
import type { ClusterFigures } from './order.js';

async function measureBoth(job: BuildJob): Promise<ClusterFigures> {
  const { startTram }: typeof TramModule = await import(job.build);
  const running = await startTram(job.options, job.setup);
  try {
    const alone = await measure(running, job.alone);
    const loaded = await measure(running, job.loaded);
    return { alone, loaded };
  } finally {
    await running.close();
  }
}

serveOrders({ measure: measureBoth });
