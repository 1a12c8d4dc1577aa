/** What a gateway tells of the cluster behind it. */
export interface ClusterFacts {
  /** Of each shard. */
  readonly replicas: number;
  /** Whether everything that was replied to is on disk. */
  readonly isDurable: boolean;
  /** Whether the keys survive the end of this gateway: another process runs the cluster, or the cluster has journals. */
  readonly isKept: boolean;
  /** @returns a view of each shard; an empty array if the cluster can't be reached */
  lookAtShards(): Promise<readonly ShardView[]>;
}

export interface ShardView {
  /** The host that leads it, by its name or number; undefined if there is none. */
  readonly leader: string | undefined;
  /** How many replicas take part. */
  readonly replicasUp: number;
}
