/**
 * Every failure that a user of TRAM can meet, with a code that never changes its meaning.
 *
 * `ERRORS` is the one list: the type `ErrorCode` derives from it, and a test compares docs/errors.md with it. A broken
 * invariant is a bug, not one of these failures: an assertion (`protocol/assert.ts`) reports it.
 */

/**
 * Whether the caller may retry the same call. A retry of `multicast` sends the payload as a new message.
 * - `safe`: no message was sent; the call may succeed later.
 * - `unsafe`: the message was delivered or may still be, so a retry may deliver it a second time.
 * - `useless`: no message was sent, and the same call fails again until something changes.
 */
export type Retry = 'safe' | 'unsafe' | 'useless';

export interface ErrorDescription {
  readonly meaning: string;
  /** The usual case. The error at hand may say otherwise. */
  readonly retry: Retry;
  readonly whatToDo: string;
}

export const ERRORS = {
  TRAM_INVALID_CONFIG: {
    meaning: 'An option of the cluster is unknown, of the wrong type or out of range.',
    retry: 'useless',
    whatToDo: 'Correct the option that the message names. The message says what is allowed.',
  },
  TRAM_INVALID_TREE: {
    meaning: 'The groups do not form a tree.',
    retry: 'useless',
    whatToDo:
      'Give the parent of every group, and -1 for the root, without cycles; or name a shape.',
  },
  TRAM_INVALID_ARGUMENT: {
    meaning: 'An argument of a call has the wrong type or is out of range.',
    retry: 'useless',
    whatToDo: 'Correct the argument that the message names.',
  },
  TRAM_INVALID_DESTINATIONS: {
    meaning: 'The message has no destination, or a destination is not a group of this cluster.',
    retry: 'useless',
    whatToDo: 'Address at least one group. Groups are numbered from 0 to `groups` - 1.',
  },
  TRAM_PAYLOAD_TOO_LARGE: {
    meaning: 'The payload has more than `payloadBytesMax` bytes.',
    retry: 'useless',
    whatToDo: 'Send a smaller payload, or start the cluster with a larger `payloadBytesMax`.',
  },
  TRAM_REPLY_TOO_LARGE: {
    meaning:
      'The message was delivered, but the reply of a group has more than `replyBytesMax` bytes.',
    retry: 'unsafe',
    whatToDo:
      'Make the service reply with less, or start the cluster with a larger `replyBytesMax`.',
  },
  TRAM_SERVICE_FAILED: {
    meaning:
      'The message was delivered, but the `deliver` function of the service threw an error, or returned neither bytes nor nothing, at every replica of the group.',
    retry: 'unsafe',
    whatToDo:
      'See `failedGroups` for what was thrown, and `replies` for the other groups. A service should refuse a message in its reply, not by throwing.',
  },
  TRAM_SERVICE_INVALID: {
    meaning:
      "The service module can't be loaded, does not export `deliver`, can't restore the snapshot of its first state, or would share its state between the replicas of a host.",
    retry: 'useless',
    whatToDo:
      'Correct the service at the place that the message names. The `cause` has the stack. The path of `service` must be built JavaScript, not TypeScript.',
  },
  TRAM_TIMEOUT: {
    meaning:
      'The time ran out: the message waited for room and was not sent, or a host did not end or rejoin its groups in time.',
    retry: 'safe',
    whatToDo:
      'Retry a message at a lower rate or with a longer timeout. If it persists, look at the status of the cluster.',
  },
  TRAM_ABORTED: {
    meaning:
      'The `signal` of the call aborted it before the message was sent, while the cluster started, or during a rolling restart.',
    retry: 'safe',
    whatToDo: 'Nothing: the caller asked for it. The `cause` is the reason of the signal.',
  },
  TRAM_OUTCOME_UNKNOWN: {
    meaning:
      'The call timed out or was aborted, or its client or the cluster was closed, after the message was sent. The message may still be delivered.',
    retry: 'unsafe',
    whatToDo:
      'Ask the service whether the message took effect. Retry only if the payload has an idempotency key that the service recognises.',
  },
  TRAM_CLOSED: {
    meaning: 'The cluster or the client is closed, or the cluster is still starting.',
    retry: 'useless',
    whatToDo:
      'Connect a new client, or start the cluster again. If `retry` is `safe`, the cluster is starting or closing: connect later.',
  },
  TRAM_NO_CLIENT_SLOT: {
    meaning: 'All client slots of the cluster are taken.',
    retry: 'safe',
    whatToDo:
      'Close a client that is no longer needed, or start the cluster with a larger `clients`.',
  },
  TRAM_LAGGED: {
    meaning: 'A `deliveries()` iterator fell a whole log behind its group, and missed deliveries.',
    retry: 'safe',
    whatToDo:
      'Iterate again from now on, and read faster. State that must not miss a message belongs in the service.',
  },
  TRAM_START_FAILED: {
    meaning: 'A host failed to start. The message names the host and the step.',
    retry: 'safe',
    whatToDo: 'See the `cause` and the output of that host, then start again.',
  },
  TRAM_STATE_LOST: {
    meaning:
      'A group has lost its state for good: all its replicas were killed after the log had dropped its beginning, or more than f of them have lost their memory.',
    retry: 'useless',
    whatToDo:
      'End the whole cluster, remove its memory (`tram down`; on every machine: `tram down --config FILE --force`) and start it anew. Everything that was delivered is lost.',
  },
  TRAM_RECOVERY_REFUSED: {
    meaning:
      'Too few journals of a group can be read to recover the cluster without loss. The message names each group, and the hosts whose journals are missing.',
    retry: 'safe',
    whatToDo:
      'Bring the missing journals back, or start the hosts that have them, and start again. If they are gone for good, docs/durability.md says what to do.',
  },
  TRAM_JOURNAL_MISMATCH: {
    meaning:
      'A journal belongs to another cluster, to another host, or to a cluster of another shape. The message names the difference.',
    retry: 'useless',
    whatToDo:
      'Check `journal`, and give the options that the cluster was started with. To start without its data, choose another directory.',
  },
  TRAM_SNAPSHOT_FAILED: {
    meaning:
      "A host has ended in order, but the state of a replica could not be saved, usually because `snapshot` of the service failed. The host's memory is kept, and the other replicas of the group still have the state.",
    retry: 'useless',
    whatToDo:
      'End no other host. Send a command that makes the state one that can be saved, then restart the host. Its log has the stack of the error.',
  },
  TRAM_HOST_RUNNING: {
    meaning: 'The host is already running.',
    retry: 'useless',
    whatToDo: 'Stop it before you start it again.',
  },
  TRAM_LAST_COPY: {
    meaning:
      "A restart with empty memory was refused, or the host was restarted with its memory instead: too few other members of a group run to give the host the group's state back.",
    retry: 'safe',
    whatToDo:
      'Restart the other hosts first, and wait until their replicas take part; or restart this one with the memory that it left.',
  },
  TRAM_UNAVAILABLE: {
    meaning:
      'A group has lost the majority of its replicas, has no leader at the moment, or lacks replicas that the call needs.',
    retry: 'safe',
    whatToDo: 'Wait for a new leader, or restart the replicas that are down.',
  },
  TRAM_UNKNOWN_REPLICA: {
    meaning: 'The cluster has no such replica or host.',
    retry: 'useless',
    whatToDo: 'Check the numbers: groups, members and hosts count from 0.',
  },
  TRAM_NOT_SUPPORTED: {
    meaning: 'This kind of memory does not allow the operation.',
    retry: 'useless',
    whatToDo: 'Ask the thread or process that has started the cluster to do it.',
  },
  TRAM_NOT_FOUND: {
    meaning: 'There is no such cluster or file.',
    retry: 'safe',
    whatToDo: 'Check the name or path, and that the cluster is up.',
  },
  TRAM_UNREACHABLE: {
    meaning:
      'No majority of the hosts is reachable, a host that is to be asked is not, or the hosts refused the connection.',
    retry: 'safe',
    whatToDo:
      'Check that the hosts are running, and that they have the same configuration and the same secret.',
  },
  TRAM_EXISTS: {
    meaning: 'A cluster or file of that name already exists.',
    retry: 'useless',
    whatToDo: 'Choose another `name`, connect to the existing cluster, or stop it first.',
  },
  TRAM_CORRUPT: {
    meaning:
      'The shared memory of the cluster or a file of a journal is corrupt, or is not that of a cluster.',
    retry: 'useless',
    whatToDo:
      'Check the path. If it is the memory of a cluster, stop the cluster and start it again. If it is a journal, the message names the file and the place, and docs/durability.md says what to do.',
  },
  TRAM_VERSION_MISMATCH: {
    meaning:
      'The cluster was started by a version of TRAM with another memory version, or its journal was written in another format.',
    retry: 'useless',
    whatToDo:
      'Use the version that started the cluster. docs/upgrading.md explains how to upgrade it.',
  },
  TRAM_JOURNAL_IN_USE: {
    meaning: 'Another host, or a recovery, uses the journal of this host.',
    retry: 'safe',
    whatToDo: 'End the cluster that uses the directory, or choose another directory for `journal`.',
  },
  TRAM_JOURNAL_FAILED: {
    meaning:
      "The disk of a host's journal is full or read-only, or has failed. The host has ended, or did not start.",
    retry: 'useless',
    whatToDo:
      'Free space, or check the disk, and start the host again. What was durable is still there.',
  },
  TRAM_NO_SPACE: {
    meaning: 'There is not enough shared memory for the cluster.',
    retry: 'useless',
    whatToDo:
      'Enlarge /dev/shm (`docker run --shm-size=1g`), or reduce `clients`, `logBytes`, `inboxBytes`, `feedBytes` or `callsMax`.',
  },
  TRAM_NATIVE_MISSING: {
    meaning:
      "`memory: 'processes'` and `'machines'` need native code through the package koffi, which can't be loaded.",
    retry: 'useless',
    whatToDo: "`npm install koffi`, or use `memory: 'threads'`, which needs no native code.",
  },
  TRAM_PACKAGE_MISSING: {
    meaning: "Configuration files need the package yaml, which can't be loaded.",
    retry: 'useless',
    whatToDo: '`npm install yaml`, or pass the options to `Cluster.start`.',
  },
  TRAM_FABRIC_MISSING: {
    meaning: "`memory: 'machines'` needs the library libfabric, which can't be loaded.",
    retry: 'useless',
    whatToDo: '`apt-get install libfabric1` on every machine.',
  },
  TRAM_ADDRESS_UNAVAILABLE: {
    meaning: "A host can't listen at its address and port on this machine.",
    retry: 'useless',
    whatToDo:
      'Choose an address of this machine, and a port that no other process uses. The message names both.',
  },
  TRAM_SECRET_INVALID: {
    meaning: 'Users other than its owner can access the secret file, or the secret is too short.',
    retry: 'useless',
    whatToDo:
      '`chmod 600` the file; or create a new one with `tram secret FILE`, and copy it to all machines.',
  },
  TRAM_SYSTEM: {
    meaning: 'A system call failed. The message names the call and its error.',
    retry: 'useless',
    whatToDo: 'Check permissions, limits on memory and processes, and disk space.',
  },
} as const satisfies Record<string, ErrorDescription>;

export type ErrorCode = keyof typeof ERRORS;

export interface TramErrorOptions {
  /** What to do in this case, if more is known than `ERRORS` says. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
  readonly retry?: Retry | undefined;
}

export class TramError extends Error {
  static {
    // On the prototype, so that the first line of a stack trace has it too.
    TramError.prototype.name = 'TramError';
  }

  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly retry: Retry;

  constructor(code: ErrorCode, message: string, options: TramErrorOptions = {}) {
    // Node prints a cause that is explicitly undefined.
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.retry = options.retry ?? ERRORS[code].retry;
  }
}

export type ReplyErrorCode =
  | 'TRAM_SERVICE_FAILED'
  | 'TRAM_REPLY_TOO_LARGE'
  | 'TRAM_OUTCOME_UNKNOWN'
  | 'TRAM_STATE_LOST';

/** What is known of a message that was sent. */
export interface Replies<Reply> {
  /** The replies that have arrived, by group. */
  readonly replies: ReadonlyMap<number, Reply>;
  /** The groups that can't reply, and why: the message of what the service threw, or how large the reply was. */
  readonly failedGroups?: ReadonlyMap<number, string>;
  /** The groups that had not replied yet. */
  readonly missingGroups?: readonly number[];
}

/** A message was sent, but not all its destinations have replied: `multicast` fails with this error. */
export class ReplyError<Reply = Uint8Array> extends TramError implements Replies<Reply> {
  static {
    ReplyError.prototype.name = 'ReplyError';
  }

  declare readonly code: ReplyErrorCode;
  readonly replies: ReadonlyMap<number, Reply>;
  readonly failedGroups: ReadonlyMap<number, string>;
  readonly missingGroups: readonly number[];

  constructor(
    code: ReplyErrorCode,
    message: string,
    { replies, failedGroups = new Map(), missingGroups = [] }: Replies<Reply>,
    options?: TramErrorOptions,
  ) {
    super(code, message, options);
    this.replies = replies;
    this.failedGroups = failedGroups;
    this.missingGroups = missingGroups;
  }

  /** @internal The error of a message that all groups have delivered. */
  static delivered<Reply>(
    code: 'TRAM_SERVICE_FAILED' | 'TRAM_REPLY_TOO_LARGE',
    replies: ReadonlyMap<number, Reply>,
    failedGroups: ReadonlyMap<number, string>,
  ): ReplyError<Reply> {
    const failures = [...failedGroups].map(
      ([group, why]) => `group ${group} failed${why === '' ? '' : `: ${why}`}`,
    );
    const message = `the message was delivered, but ${failures.join('; ')}`;
    return new ReplyError(code, message, { replies, failedGroups });
  }
}
