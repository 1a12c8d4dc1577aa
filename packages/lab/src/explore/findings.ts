/**
 * What the explorer has found of each mutation: a script that shows it in some scope; or that some scopes were exhausted
 * with it and do not show it, and why; or that it was not searched for. The tests replay every script, with the mutation
 * and without it. `tram-lab explore --sweep` exhausts the scopes again.
 */
import { DEFERRED } from '../sim/mutations/deferred.js';
import { GATES } from '../sim/mutations/gate.js';
import { JOURNAL_FILES } from '../sim/mutations/journal-files.js';
import { MARKS } from '../sim/mutations/marks.js';
import { OWED } from '../sim/mutations/owed-entries.js';
import { POWER_CUTS } from '../sim/mutations/power-cuts.js';
import { QUICK_STEPS } from '../sim/mutations/quick-steps.js';
import { DURABILITY } from '../sim/mutations/recoverable.js';
import { SHARED_MEMORY } from '../sim/mutations/shared-memory.js';
import { TICKS } from '../sim/mutations/ticks.js';

export interface Finding {
  readonly scope: string;
  readonly script: string;
  /** No search has shown that there is no shorter one. */
  readonly mayBeShorter?: boolean;
}

export const FINDINGS: Readonly<Record<string, Finding>> = {
  H1: { scope: 'small', script: 'aD A>B cB B>C B>C C>B B>C B>C B>C B>C B>C B>C' },
  H2: { scope: 'five', script: 'cB B>A E>B' },
  H4: { scope: 'feed', script: 'aG cB B>D aG B>D B>D B>D B>D B>D' },
  H5: { scope: 'session', script: 'D>A D>A D>A cB D>B D>B D>B' },
  H11: { scope: 'small', script: 'cB B>C B>C aD A>B C>B B>C B>C B>C B>C B>C' },
  H12: { scope: 'takeover', script: 'pA cB B>A B>A gA A>C B>A B>A B>A B>A B>A' },
  H17: { scope: 'rivals', script: 'cC C>B C>B cB' },
  H20: { scope: 'again', script: 'cC C>B C>B aD C>A B>C C>A C>B C>B C>B C>B C>B cA' },
  H21: { scope: 'restart', script: 'cB aD A>C fC B>C B>C B>C B>C B>C B>C B>C' },
  H22: { scope: 'lagging', script: 'aD cA A>B A>B A>B B>A A>B cB A>B A>B A>B B>C B>C B>C' },
  H23: { scope: 'takeover', script: 'cB B>A A>C B>C rC B>C B>C B>C B>C B>C B>C B>C' },
  H27: { scope: 'again', script: 'aD A>C A>C cA cC C>B C>B B>C C>B C>B C>B' },
  H29: {
    scope: 'takeover',
    script: 'pA rC cB gA B>C A>C A>C A>C A>C B>C B>C B>C B>C B>C B>C',
  },
  H31: {
    scope: 'recovery',
    script: 'aD A>C fC cB B>C B>C rC B>C B>C B>C B>C B>C',
  },
  'marker-first': { scope: 'again', script: 'aD A>C A>C cC C>A C>A A>C C>A C>A C>A C>A cA' },
  H19: { scope: 'torn', script: 'D>A D>A D>A tA' },
  'same-keys': { scope: 'restart', script: 'cB B>C B>C B>C B>C B>C B>C B>C aD fC A>C' },
  'truncates-last': { scope: 'behind', script: 'aD' },
  'mixed-snapshot': {
    scope: 'server',
    script: 'fC C>B tC C>B C>B C>B B>C B>C C>B C>B B>C C>B rB B>C B>C',
  },
  'backlog-of-any-ballot': {
    scope: 'backlog',
    script:
      'aD aD aD aD tA A!C aD A>C aD A>C A>C A>C A>C A>C A>C A>C tC A>C A>C A>C A>C A>C A>C A>C A>C A>C',
    mayBeShorter: true,
  },
  'restores-other-state': {
    scope: 'snapshot',
    script: 'fC C>B tC C>B C>B C>B B>C C>B B>C C>B B>C B>C C>B C>B B>C',
  },
  'chunk-misplaced': {
    scope: 'snapshot',
    script: 'fC C>B tC C>B C>B C>B B>C C>B B>C C>B B>C B>C C>B C>B B>C',
  },
  'chunks-of-two-members': {
    scope: 'server',
    script: 'fC C>B tC C>B C>B C>B B>C B>C C>B C>B B>C C>B rB B>C B>C',
  },
  'decided-before-held': { scope: 'five', script: 'cB B>A A>C E>B' },
  'all-held-by-f': { scope: 'five', script: 'cB B>A A>C E>B' },
  'counts-before-marker': {
    scope: 'late',
    script: 'cB B>A B>A A>B B>A B>A B>A B>A B>C B>C B>C B>C B>C aD cA',
  },
};

/** Exhausted with every mutation of NOT_FOUND, without a violation. */
export const SWEPT_SCOPES: readonly string[] = ['death', 'broken', 'small', 'five'];

const PROGRESS = 'it delays messages, or keeps them from being delivered';
const WITHIN_STEP = 'it needs a landing while a step reads, and steps are atomic here';
const WRAPS = 'it shows when a count wraps around, or after very many promises';
const DROPS = 'it shows only after entries were dropped from a log or a feed';
const UNSEEN = 'no property here looks at what it breaks';
const NOR_IN_FULL_LOGS = 'no violation in `behind` and `snapshot` either';
const NOR_IN_RESTART = 'no violation in `restart` either';

const FEEDS_IN_FULL =
  'it needs feeds that fill up, start again or skip entries, or a child with groups below it';
const ALL_FULL = 'all steps are full here';

/** No violation in the swept scopes, and what is known about why. */
export const NOT_FOUND: Readonly<Record<string, string>> = {
  H3: PROGRESS,
  H6: PROGRESS,
  H7: PROGRESS,
  H8: PROGRESS,
  H9: PROGRESS,
  H13: PROGRESS,
  H15: PROGRESS,
  H16: PROGRESS,
  H24: `${NOR_IN_RESTART}: it needs five members, of which one loses its memory and is a member again before the candidate leads`,
  H25: 'all members count as live here, since nobody suspects anybody',
  H26: PROGRESS,
  H28: PROGRESS,
  H30: `${NOR_IN_RESTART}: ${PROGRESS}`,
  'feed-end-first': PROGRESS,
  'feed-old-start-stays': 'it needs a start of a feed that lands in parts',
  'feed-old-end-stays': PROGRESS,
  'feed-copy-unchecked': WITHIN_STEP,
  'feed-dropped-undecided': DROPS,
  'feed-loss-ignored': PROGRESS,
  'feed-end-overlooked': PROGRESS,
  'feed-rest-overlooked': PROGRESS,
  'truncates-needed': DROPS,
  'same-salt': 'it needs an entry of another log at the same place, with a frame that fits',
  'permits-before-storing': 'a member that is killed in between has granted nothing yet',
  'waits-for-dead-source': PROGRESS,
  'never-asks-next-incarnation': PROGRESS,
  'taken-ballot-kept': PROGRESS,
  'unreachable-ballot-kept': PROGRESS,
  'installs-twice': PROGRESS,
  'marker-of-any-incarnation': `${NOR_IN_RESTART}: it needs a third leader after a member has lost its memory`,
  'unkeyed-marker': WRAPS,
  'few-keys': `${NOR_IN_RESTART}: ${WRAPS}`,
  'adopts-overwritten': WITHIN_STEP,
  'old-completions-count': WRAPS,
  'old-incarnation-delivered': DROPS,
  'recovers-too-early': PROGRESS,
  'snapshot-failure-stops': 'the service does not fail here',
  'believes-old-rows': PROGRESS,
  'no-backlog': `${NOR_IN_FULL_LOGS}: ${PROGRESS}`,
  'snapshot-not-continued': `${NOR_IN_FULL_LOGS}: ${PROGRESS}`,
  'fetches-from-any': `${NOR_IN_FULL_LOGS}: ${PROGRESS}`,
  'never-left-behind': `${NOR_IN_FULL_LOGS}: ${PROGRESS}`,
  'delivers-while-overwritten': WITHIN_STEP,
  'follower-delivers-in-place': WITHIN_STEP,
  'payload-in-place': 'the service changes no payload here',
  'looks-at-base-once': WITHIN_STEP,
  'restores-other-counters': `${NOR_IN_FULL_LOGS}: ${UNSEEN}`,
  'restores-no-replies': `${NOR_IN_FULL_LOGS}: ${UNSEEN}`,
  'forgets-left-snapshot': `no violation in \`orderly\` either: ${PROGRESS}`,
  'restores-needlessly': UNSEEN,
  'ignores-kept-log': DROPS,
  'ignores-own-entries': DROPS,
  'calls-fetching-lost': UNSEEN,
  'hides-its-need': `no violation in \`orderly\` either: ${UNSEEN}`,
  'session-goes-on': PROGRESS,
  'replies-sent-once': PROGRESS,
  'same-notification': PROGRESS,
  'parent-starves': PROGRESS,
  'parent-misses-its-round': PROGRESS,
  'answered-too-early': PROGRESS,
  'reply-of-any-entry-group':
    'it needs a client that uses a call slot again for a message with another entry group',
  'reply-of-any-series': WRAPS,
  'short-numbers': WRAPS,
  'client-never-resends': PROGRESS,
  'resends-unplanned': PROGRESS,
  'hashes-again': WITHIN_STEP,
};

const SUSPICION = 'suspicion matters for progress only, and nobody suspects anybody here';
const WAITING = 'it changes only how long a full log waits';
const REAL_TIME = 'the scopes do not promise real-time order';
const DEFERS = 'no scope has a service that defers replies';
const DISKS = 'no scope has disks';
const JOURNALS = 'no scope has a journal';
const SHARED = 'the memory of threads and processes is not explored';
const ORDERED_TIME = 'no scope has ticks';

/** These were not searched for, and why. */
export const NOT_SEARCHED: Readonly<Record<string, string>> = {
  H18: 'it breaks fairness',
  'campaigns-against-followed': SUSPICION,
  'campaigns-alone': SUSPICION,
  'waits-for-patient': SUSPICION,
  'waits-for-lonely': SUSPICION,
  'tells-its-patience': SUSPICION,
  'first-before-highest': SUSPICION,
  'forgets-request': SUSPICION,
  'row-reads-pile-up': 'it matters for progress only',
  'lateness-excuses-all': SUSPICION,
  'resumes-impatiently': SUSPICION,
  'waits-for-lagging': WAITING,
  ...Object.fromEntries(Object.keys({ ...QUICK_STEPS, ...OWED }).map((name) => [name, ALL_FULL])),
  'feed-pieces-joined': FEEDS_IN_FULL,
  'feed-full-overtaken': FEEDS_IN_FULL,
  'feed-taken-twice': FEEDS_IN_FULL,
  'feed-forgets-returned': FEEDS_IN_FULL,
  'feed-drop-uncounted': FEEDS_IN_FULL,
  'feed-start-untold': FEEDS_IN_FULL,
  'feed-start-overlooked': 'it matters for progress only',
  ...Object.fromEntries(Object.keys(SHARED_MEMORY).map((name) => [name, SHARED])),
  'lacks-state-unnoticed': JOURNALS,
  'campaigns-without-state': JOURNALS,
  'trusted-without-state': JOURNALS,
  'fetched-not-journaled': JOURNALS,
  ...Object.fromEntries(Object.keys(TICKS).map((name) => [name, ORDERED_TIME])),
  ...Object.fromEntries(Object.keys(GATES).map((name) => [name, REAL_TIME])),
  ...Object.fromEntries(Object.keys(DEFERRED).map((name) => [name, DEFERS])),
  'cancel-unposted': DEFERS,
  ...Object.fromEntries(Object.keys(MARKS).map((name) => [name, JOURNALS])),
  ...Object.fromEntries(Object.keys(POWER_CUTS).map((name) => [name, DISKS])),
  ...Object.fromEntries(Object.keys(JOURNAL_FILES).map((name) => [name, DISKS])),
  ...Object.fromEntries(Object.keys(DURABILITY).map((name) => [name, JOURNALS])),
};
