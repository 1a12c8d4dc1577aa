/**
 * What the explorer has found of each mutation: a script that shows it in some scope; or why no scope shows it. The tests
 * replay every script, with the mutation and without it.
 */

export interface Finding {
  readonly scope: string;
  readonly script: string;
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
  H22: { scope: 'lagging', script: 'aD A>B A>B cA A>B A>B B>A A>B cB A>B A>B A>B B>C B>C B>C' },
  H23: { scope: 'takeover', script: 'cB B>A A>C B>C rC B>C B>C B>C B>C B>C B>C B>C' },
  H27: { scope: 'again', script: 'aD A>C A>C cA cC C>B C>B B>C C>B C>B C>B' },
  H29: { scope: 'takeover', script: 'pA rC cB gA B>C A>C A>C A>C A>C B>C B>C B>C B>C B>C B>C' },
  H31: { scope: 'recovery', script: 'aD A>C fC cB B>C B>C rC B>C B>C B>C B>C B>C' },
  'marker-first': { scope: 'again', script: 'aD A>C A>C cC C>A C>A A>C C>A C>A C>A C>A cA' },
  'decided-before-held': { scope: 'five', script: 'cB B>A A>C E>B A>C' },
};

const PROGRESS =
  'no scope shows a violation: it delays messages, or keeps them from being delivered';
const SUSPICION = 'suspicion matters for progress only, and nobody suspects anybody here';
const WHOLE = 'operations land whole here; the simulator tears them';
const ATOMIC = 'steps are atomic here: nothing lands while a step reads';
const TRUNCATION = 'logs and feeds do not fill up here, so nothing is dropped';
const SNAPSHOT = 'no snapshot of several chunks is needed here';
const WRAPS = 'it shows when a count wraps around, after far more actions';

export const NOT_FOUND: Readonly<Record<string, string>> = {
  H3: PROGRESS,
  H6: PROGRESS,
  H7: PROGRESS,
  H8: PROGRESS,
  H9: PROGRESS,
  H13: PROGRESS,
  H15: PROGRESS,
  H16: PROGRESS,
  H18: 'it breaks fairness',
  H19: WHOLE,
  H24: 'it needs five members, of which one loses its memory and is a member again before the candidate leads',
  H25: TRUNCATION,
  H26: PROGRESS,
  H28: PROGRESS,
  H30: PROGRESS,
  'feed-end-first': PROGRESS,
  'feed-old-start-stays': WHOLE,
  'feed-old-end-stays': PROGRESS,
  'feed-copy-unchecked': ATOMIC,
  'feed-dropped-undecided': TRUNCATION,
  'feed-loss-ignored': PROGRESS,
  'truncates-owed': TRUNCATION,
  'same-salt': ATOMIC,
  'campaigns-against-followed': SUSPICION,
  'campaigns-alone': SUSPICION,
  'waits-for-lonely': SUSPICION,
  'tells-its-patience': SUSPICION,
  'first-before-highest': SUSPICION,
  'forgets-request': SUSPICION,
  'lateness-excuses-all': SUSPICION,
  'resumes-impatiently': SUSPICION,
  'permits-before-storing':
    'no delivery shows it: a member that is killed in between has granted nothing yet',
  'waits-for-dead-source': PROGRESS,
  'never-asks-next-incarnation': PROGRESS,
  'taken-ballot-kept': PROGRESS,
  'unreachable-ballot-kept': PROGRESS,
  'installs-twice': PROGRESS,
  'marker-of-any-incarnation': 'it needs a third leader after a member has lost its memory',
  'unkeyed-marker': WRAPS,
  'old-completions-count': WRAPS,
  'truncates-last': TRUNCATION,
  'old-incarnation-delivered': TRUNCATION,
  'recovers-too-early': PROGRESS,
  'mixed-snapshot': SNAPSHOT,
  'held-for-dead': TRUNCATION,
  'never-left-behind': TRUNCATION,
  'looks-at-base-once': TRUNCATION,
  'session-goes-on': PROGRESS,
  'replies-sent-once': PROGRESS,
  'same-notification': PROGRESS,
  'parent-starves': PROGRESS,
  'answered-too-early': PROGRESS,
  'reply-of-any-entry-group':
    'it needs a client that reuses a call slot for a message with another entry group',
  'client-never-resends': PROGRESS,
};
