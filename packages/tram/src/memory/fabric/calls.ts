/** What a host has asked of libfabric and of its sockets so far. Each of these is at least one system call, except polls. */

export interface Calls {
  /** Operations that were posted: each has one or several extents. */
  write: number;
  read: number;
  /** Changes of TCP_CORK: two for a batch of several operations. */
  cork: number;
  /** Sleeps until something arrives. */
  wait: number;
  /** Looks at the completion queue, which also receive what has arrived. A host that spins makes many. */
  poll: number;
}

export function noCalls(): Calls {
  return { write: 0, read: 0, cork: 0, wait: 0, poll: 0 };
}
