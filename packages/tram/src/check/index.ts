/** The public exports of `tram-multicast/check`: the judge, for histories of any atomic multicast. */

export {
  MalformedTraceError,
  type PromisedDurability,
  type PromisedOrder,
  type TraceEvent,
} from './events.js';
export { type Counts, History } from './history.js';
export { judge, type Verdict } from './judge.js';
export {
  DEFINITIONS,
  type Outcome,
  PROPERTIES,
  type Property,
  type PropertyVerdict,
  type Violation,
} from './properties.js';
export { parseTrace, readTrace } from './trace.js';
