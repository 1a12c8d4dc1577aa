/** What a gateway tells of the cluster behind it. */
export interface ClusterFacts {
  /** Of each shard. */
  readonly replicas: number;
  /** What was replied to is on disk. */
  readonly isDurable: boolean;
  /** The keys stay where they are when this gateway ends: others run the cluster, or it has journals. */
  readonly isKept: boolean;
  /** @returns by shard; nothing if it can't be told */
  lookAtShards(): Promise<readonly ShardView[]>;
}

export interface ShardView {
  /** The host that leads it, by its name or number; undefined if there is none. */
  readonly leader: string | undefined;
  /** How many replicas take part. */
  readonly replicasUp: number;
}
