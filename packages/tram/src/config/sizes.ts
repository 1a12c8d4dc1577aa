/** How large the parts of a cluster's memory are, and whether they fit together. */
import { Layout, type Salt, type Sizes } from '../protocol/layout.js';
import { ConfigError } from './mistakes.js';
import { type ClusterOptions, OPTIONS } from './options.js';

const SNAPSHOT_CHUNK_BYTES = 65_536;
/**
 * With a journal, a member that has no state yet is to deliver the entry 0, which no log has: so it fetches a snapshot, even
 * while the log is empty. Even, as every first index.
 */
const DURABLE_FIRST_INDEX = 2;
/** By default, a ring has room for this many messages of the largest size. */
const DEFAULT_RING_MESSAGES = 8;

/** Beyond this, a signed 32-bit number could not address every word of the arena. Leaves room for the arena's header. */
const MEMORY_BYTES_MAX = 8_000_000_000;

const WORD_BYTES = Int32Array.BYTES_PER_ELEMENT;

type RingName = 'logBytes' | 'inboxBytes' | 'feedBytes';

export function resolveSizes(options: ClusterOptions, salt: Salt): Sizes {
  const fixed = {
    groups: options.groups,
    replicas: options.replicas ?? OPTIONS.replicas.default,
    clients: options.clients ?? OPTIONS.clients.default,
    payloadBytesMax: options.payloadBytesMax ?? OPTIONS.payloadBytesMax.default,
    replyBytesMax: options.replyBytesMax ?? OPTIONS.replyBytesMax.default,
    callsMax: options.callsMax ?? OPTIONS.callsMax.default,
    snapshotChunkBytes: SNAPSHOT_CHUNK_BYTES,
    firstIndex: (options.durability ?? 'none') === 'none' ? 0 : DURABLE_FIRST_INDEX,
    salt,
  };
  // With zero bytes, the layout makes each ring just large enough for the largest message.
  const smallest = new Layout({ ...fixed, logBytes: 0, inboxBytes: 0, feedBytes: 0 });
  const { entryWordsMax, inboxRecordWordsMax } = smallest;
  const ring = (name: RingName, recordWords: number, leastWords: number): number =>
    ringBytes(name, options[name], fixed.payloadBytesMax, {
      recordBytes: recordWords * WORD_BYTES,
      leastBytes: leastWords * WORD_BYTES,
    });
  const sizes = {
    ...fixed,
    logBytes: ring('logBytes', entryWordsMax, smallest.logWords),
    inboxBytes: ring('inboxBytes', inboxRecordWordsMax, smallest.inboxWords),
    feedBytes: ring('feedBytes', entryWordsMax, smallest.feedWords),
  };
  requireAddressable(sizes);
  return sizes;
}

/** @param leastBytes a power of two */
function ringBytes(
  name: RingName,
  asked: number | undefined,
  payloadBytesMax: number,
  { recordBytes, leastBytes }: { readonly recordBytes: number; readonly leastBytes: number },
): number {
  if (asked === undefined) {
    return Math.max(OPTIONS[name].default, DEFAULT_RING_MESSAGES * recordBytes);
  }
  // The layout rounds up to a power of two, so anything above half is enough.
  if (asked > leastBytes / 2) return asked;
  const contents = name === 'logBytes' ? 'two messages of that size' : 'one message of that size';
  throw new ConfigError(
    [name],
    `${name} is ${asked}, too small for payloadBytesMax ${payloadBytesMax}: ` +
      `${contents} must fit, which takes ${leastBytes} bytes`,
  );
}

function requireAddressable(sizes: Sizes): void {
  const bytes = memoryBytes(sizes);
  if (bytes <= MEMORY_BYTES_MAX) return;
  throw new ConfigError(
    [],
    `the cluster needs ${gigabytes(bytes)} of shared memory, and the limit is ${gigabytes(MEMORY_BYTES_MAX)}`,
    {
      hint: 'Reduce payloadBytesMax, logBytes, inboxBytes, feedBytes, clients, callsMax or replyBytesMax.',
    },
  );
}

/** The size of the regions of all replicas and clients. */
export function memoryBytes(sizes: Sizes): number {
  const { replicaRegionWords, clientRegionWords } = new Layout(sizes);
  const { groups, replicas, clients } = sizes;
  return (groups * replicas * replicaRegionWords + clients * clientRegionWords) * WORD_BYTES;
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
