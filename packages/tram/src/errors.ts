/**
 * Every failure that a user of TRAM can meet, with a code that never changes its meaning.
 *
 * `ERRORS` is the one list: the type `ErrorCode` derives from it, and a test holds docs/errors.md to it.
 * A broken invariant is not here: that is a bug, and an assertion (`protocol/assert.ts`) reports it.
 */

/**
 * May the caller make the same call again, and send the same message as a new one?
 * - `safe`: nothing was sent; the call may succeed later.
 * - `unsafe`: the message was delivered or still may be, so a second one could be delivered as well.
 * - `useless`: nothing was sent, and the same call fails again until something is changed.
 */
export type Retry = 'safe' | 'unsafe' | 'useless';

export interface ErrorDescription {
  readonly meaning: string;
  /** Unless the one who throws knows better. */
  readonly retry: Retry;
  readonly whatToDo: string;
}

export const ERRORS = {
  TRAM_INVALID_CONFIG: {
    meaning: 'An option of the cluster is unknown, of the wrong type or out of range.',
    retry: 'useless',
    whatToDo: 'Correct the option that the message names; it gives the allowed range.',
  },
  TRAM_INVALID_TREE: {
    meaning: 'The groups do not form a tree.',
    retry: 'useless',
    whatToDo:
      'Give every group its parent, the root -1, and no group itself as ancestor; or name a shape.',
  },
  TRAM_INVALID_ARGUMENT: {
    meaning: 'An argument of a call has the wrong type or is out of range.',
    retry: 'useless',
    whatToDo: 'Correct the argument that the message names.',
  },
  TRAM_INVALID_DESTINATIONS: {
    meaning: 'The destinations of a message are empty, or one is no group of this cluster.',
    retry: 'useless',
    whatToDo: 'Address at least one group, numbered from 0 to `groups` - 1.',
  },
  TRAM_PAYLOAD_TOO_LARGE: {
    meaning: 'The payload has more than `payloadBytesMax` bytes.',
    retry: 'useless',
    whatToDo: 'Send less at a time, or start the cluster with a greater `payloadBytesMax`.',
  },
  TRAM_REPLY_TOO_LARGE: {
    meaning:
      'The message was delivered, but the reply of a group has more than `replyBytesMax` bytes.',
    retry: 'unsafe',
    whatToDo:
      'Let the service reply with less, or start the cluster with a greater `replyBytesMax`.',
  },
  TRAM_SERVICE_FAILED: {
    meaning:
      'The message was delivered, but the `deliver` of the service threw, at every replica of the group alike.',
    retry: 'unsafe',
    whatToDo:
      'Correct the service or the payload. A service should reply with its refusals, not throw them.',
  },
  TRAM_SERVICE_INVALID: {
    meaning: "The module of the service can't be loaded, or exports no `deliver`.",
    retry: 'useless',
    whatToDo: 'Check the path of `service` (built JavaScript, not TypeScript) and its exports.',
  },
  TRAM_TIMEOUT: {
    meaning: 'The time was over before the message was sent: it was still waiting for room.',
    retry: 'safe',
    whatToDo:
      'Send it again, more slowly or with more time. If it goes on, look for a group without a leader.',
  },
  TRAM_ABORTED: {
    meaning: 'The `signal` of the call aborted it before the message was sent.',
    retry: 'safe',
    whatToDo: 'Nothing: this is what the caller asked for. The reason is the `cause`.',
  },
  TRAM_OUTCOME_UNKNOWN: {
    meaning:
      'The time was over, the call was aborted or the client was closed after the message had been sent. It may still be delivered, or not.',
    retry: 'unsafe',
    whatToDo:
      'Ask the service whether it took effect; or send it again if the service recognises what it has already done.',
  },
  TRAM_CLOSED: {
    meaning: 'The cluster or the client is closed.',
    retry: 'useless',
    whatToDo: 'Connect a new client, or start the cluster again.',
  },
  TRAM_NO_CLIENT_SLOT: {
    meaning: 'As many clients are connected as the cluster has room for.',
    retry: 'safe',
    whatToDo: 'Close a client that is done, or start the cluster with more `clients`.',
  },
  TRAM_LAGGED: {
    meaning: 'A `deliveries()` iterator read too slowly, and deliveries were dropped from it.',
    retry: 'safe',
    whatToDo:
      'Iterate again, from now on; read faster, or keep state in the service, which misses nothing.',
  },
  TRAM_START_FAILED: {
    meaning: 'A host did not get through its start. The message names the host and the step.',
    retry: 'safe',
    whatToDo: 'Look at the `cause` and at the output of that host, then start again.',
  },
  TRAM_HOST_RUNNING: {
    meaning: "The host is already running, so it can't be started a second time.",
    retry: 'useless',
    whatToDo: 'Stop the running one first, or leave it as it is.',
  },
  TRAM_NOT_FOUND: {
    meaning: 'There is no such cluster or file.',
    retry: 'safe',
    whatToDo: 'Check the name or path, and whether the cluster is up.',
  },
  TRAM_UNREACHABLE: {
    meaning: 'Not enough hosts of the cluster can be reached, or they refused us.',
    retry: 'safe',
    whatToDo:
      'Check that the hosts run, and that configuration and secret are those that they have.',
  },
  TRAM_EXISTS: {
    meaning: 'A cluster or file of that name exists already.',
    retry: 'useless',
    whatToDo: 'Choose another `name`, connect to the cluster that exists, or stop it first.',
  },
  TRAM_CORRUPT: {
    meaning: 'The shared memory of the cluster does not hold what it should.',
    retry: 'useless',
    whatToDo: 'Check that the path is that of a cluster. Stop the cluster and start it afresh.',
  },
  TRAM_VERSION_MISMATCH: {
    meaning: 'The cluster was started by a version of TRAM with another memory layout.',
    retry: 'useless',
    whatToDo: 'Use the same version on both sides.',
  },
  TRAM_NO_SPACE: {
    meaning: 'There is not enough shared memory for the cluster.',
    retry: 'useless',
    whatToDo:
      'Enlarge /dev/shm (`docker run --shm-size=1g`), or ask for less: `clients`, `logBytes`, `inboxBytes`, `feedBytes`, `callsMax`.',
  },
  TRAM_NATIVE_MISSING: {
    meaning:
      "`memory: 'processes'` and `'machines'` need the package koffi, and it can't be loaded.",
    retry: 'useless',
    whatToDo: "`npm install koffi`, or use `memory: 'threads'`, which needs no native code.",
  },
  TRAM_PACKAGE_MISSING: {
    meaning: "A configuration file needs the package yaml, and it can't be loaded.",
    retry: 'useless',
    whatToDo: '`npm install yaml`, or give the options to `Cluster.start`.',
  },
  TRAM_FABRIC_MISSING: {
    meaning: "The hosts of a cluster talk through the library libfabric, and it can't be loaded.",
    retry: 'useless',
    whatToDo: '`apt-get install libfabric1`, on every host.',
  },
  TRAM_ADDRESS_UNAVAILABLE: {
    meaning: "The address or port of a host can't be used on this machine.",
    retry: 'useless',
    whatToDo:
      'Choose an address that this machine has, and a port that no other process listens at. The message names them.',
  },
  TRAM_SECRET_INVALID: {
    meaning:
      'The file with the secret of a cluster across machines is open to others than its owner, or holds too little.',
    retry: 'useless',
    whatToDo:
      '`chmod 600` the file; or make another one with `tram secret FILE`, and copy it to all machines.',
  },
  TRAM_SYSTEM: {
    meaning: 'The operating system refused something. The message names the call and its error.',
    retry: 'useless',
    whatToDo: 'See the message: permissions, limits on memory or processes, a full disk.',
  },
  TRAM_UNKNOWN_REPLICA: {
    meaning: 'The cluster has no such group, member or host.',
    retry: 'useless',
    whatToDo: 'Groups, members and hosts are numbered from 0.',
  },
  TRAM_UNAVAILABLE: {
    meaning: 'A group has lost the majority of its replicas, or has no leader.',
    retry: 'safe',
    whatToDo: 'Wait for an election, or restart the replicas that are down.',
  },
} as const satisfies Record<string, ErrorDescription>;

export type ErrorCode = keyof typeof ERRORS;

export interface TramErrorOptions {
  /** What to do in this very case, where more is known than the table says. */
  readonly hint?: string | undefined;
  readonly cause?: unknown;
  readonly retry?: Retry | undefined;
}

export class TramError extends Error {
  static {
    // On the prototype, so that the first line of a stack has it too.
    TramError.prototype.name = 'TramError';
  }

  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly retry: Retry;

  constructor(code: ErrorCode, message: string, options: TramErrorOptions = {}) {
    // An explicit `cause: undefined` would show up in every printed error.
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.retry = options.retry ?? ERRORS[code].retry;
  }
}
