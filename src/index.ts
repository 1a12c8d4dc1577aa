/** The public exports of `tram`, and nothing else. */

export { MalformedTraceError, type TraceEvent } from './check/events.js';
export { type Counts, History } from './check/history.js';
export { judge, type Verdict } from './check/judge.js';
export {
  DEFINITIONS,
  type Outcome,
  PROPERTIES,
  type Property,
  type PropertyVerdict,
  type Violation,
} from './check/properties.js';
export { parseTrace, readTrace } from './check/trace.js';
