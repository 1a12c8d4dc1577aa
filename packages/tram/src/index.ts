/** The public exports of the package. */

export type { AttachedCluster, AttachOptions, ShutDownOptions } from './attached-cluster.js';
export {
  Client,
  type ClusterAddress,
  type ConnectOptions,
  type OfferListener,
} from './client.js';
export { Cluster } from './cluster.js';
export { bytesCodec, type Codec, type StateCodec } from './codec.js';
export { ConfigError } from './config/mistakes.js';
export type { ClusterOptions, MachineOptions, MemoryKind } from './config/options.js';
export {
  type CommandContext,
  type DeferringContext,
  type DeferringDefinition,
  defineService,
  type ReplyContext,
  type ServiceDefinition,
  type TickContext,
  type TypedClient,
  type TypedService,
} from './define-service.js';
export type { Destinations } from './destinations.js';
export { ERRORS, type ErrorCode, ReplyError, type Retry, TramError } from './errors.js';
export type { Backup } from './hosting/backup.js';
export type { Logger, RestartOptions, RollingRestartOptions } from './hosting/own-hosts.js';
export type { RestoreOptions } from './hosting/restore.js';
export type {
  Message,
  Service,
  ServiceContext,
  StatefulService,
  StatelessService,
  Ticks,
} from './hosting/service.js';
export type {
  ClusterState,
  ClusterStatus,
  GroupStatus,
  HostStatus,
  ReplicaStatus,
} from './hosting/status.js';
export type { Delivered, DeliveriesOptions } from './hosting/tail.js';
export type { JournalStatus } from './journal/status.js';
export type { MulticastOptions } from './multicast-request.js';
export type { PageOptions } from './page/page-options.js';
export type { Offer, ReplyOutcome } from './protocol/data-path/client.js';
export type { Deferred, Durability, Order } from './protocol/edges.js';
export type { StartOptions } from './start-options.js';
