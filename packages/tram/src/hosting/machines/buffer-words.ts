/**
 * The size of the send buffer between two hosts: how many words may be in flight and unacknowledged before the
 * slower host is given up. It must exceed twice the largest write plus what may go without an acknowledgement
 * (`UNCOVERED_WORDS_MAX`), so that a host always has room to acknowledge.
 */
import type { ArenaMap } from '../../memory/arena.js';
import type { BufferWords } from '../../memory/machines/buffers.js';
import { align } from '../../memory/words.js';
import type { Layout } from '../../protocol/layout.js';
import { MAILBOX_FLIGHT_WORDS } from './mailboxes.js';

/** For slots, rows and single words. */
const SMALL_WORDS = 2 ** 16;
/**
 * From a client, which only its leader slows down: a host that pauses for a moment and leads nothing should not be
 * given up for that.
 */
const CLIENT_WORDS = 2 ** 19;

/**
 * Between hosts: every leader may write its whole log and its whole feed twice, and read as much of a log; and there are
 * mailboxes. Logs go to hosts that have members of the same groups, feeds to hosts that have members of a child. (Each group
 * has one parent. Its leader may be here.) To a client: all its replies from all groups. From a client: all its inboxes. An observer reads log entries.
 */
export function bufferWordsOf(
  layout: Layout,
  map: ArenaMap,
  self: number,
  other: number,
): BufferWords {
  const { groups, replicas, callsMax } = layout.sizes;
  const flags = align(Math.max(map.participantsOf(other).length, 1));
  const { logWords, feedWords, inboxWords, replySlotWords, entryWordsMax } = layout;
  const isBetweenHosts = self < map.hosts && other < map.hosts;
  if (isBetweenHosts) {
    const mailboxes = map.mailboxWords > 0 ? MAILBOX_FLIGHT_WORDS : 0;
    const groupsOn = (host: number): number[] =>
      map.participantsOf(host).map((replica) => Math.floor(replica / replicas));
    const own = new Set(groupsOn(self));
    const theirs = [...new Set(groupsOn(other))];
    const shared = theirs.filter((group) => own.has(group)).length;
    const words = 2 * shared * logWords + 2 * theirs.length * feedWords + mailboxes;
    return { out: words + SMALL_WORDS, in: shared * logWords + SMALL_WORDS, flags };
  }
  const out =
    self < map.hosts
      ? 2 * groups * callsMax * replySlotWords + SMALL_WORDS
      : 2 * groups * inboxWords + CLIENT_WORDS;
  return { out, in: entryWordsMax + SMALL_WORDS, flags };
}
