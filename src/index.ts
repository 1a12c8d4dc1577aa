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
export {
  Client,
  type ConnectOptions,
  type Destinations,
  type MulticastOptions,
  type OfferListener,
} from './client.js';
export { Cluster, type DeliveriesOptions, type Logger, type StartOptions } from './cluster.js';
export type { ClusterOptions } from './config.js';
export { ERRORS, type ErrorCode, type Retry, TramError } from './errors.js';
export type { Message, Service, ServiceContext } from './hosting/service.js';
export type { ClusterStatus, GroupStatus, ReplicaStatus } from './hosting/status.js';
export type { Delivered } from './hosting/tail.js';
export type { ReplyOutcome } from './protocol/client.js';
