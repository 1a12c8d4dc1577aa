/** The public exports of the package. */

export type { AttachedCluster, ShutDownOptions } from './attached-cluster.js';
export {
  Client,
  type ClusterAddress,
  type ConnectOptions,
  type Destinations,
  type MulticastOptions,
  type OfferListener,
} from './client.js';
export { Cluster, type StartOptions } from './cluster.js';
export { ConfigError } from './config/mistakes.js';
export type { ClusterOptions, MachineOptions, MemoryKind } from './config/options.js';
export { ERRORS, type ErrorCode, type Retry, TramError } from './errors.js';
export type { Logger, RestartOptions, RollingRestartOptions } from './hosting/own-hosts.js';
export type { Message, Service, ServiceContext } from './hosting/service.js';
export type { ClusterStatus, GroupStatus, HostStatus, ReplicaStatus } from './hosting/status.js';
export type { Delivered, DeliveriesOptions } from './hosting/tail.js';
export type { Offer, ReplyOutcome } from './protocol/data-path/client.js';
