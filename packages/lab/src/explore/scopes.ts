/** The scopes that the explorer exhausts. docs/explorer.md says what is free in each, and what is fixed. */
import type { Scope } from './scope.js';

const ONE_CLIENT_EACH = { Leader: { turn: 'each member has messages of one client at most' } };

/** Both directions between any two of these. */
function between(letters: string): string[] {
  return [...letters].flatMap((from) =>
    [...letters].filter((to) => to !== from).map((to) => from + to),
  );
}

const A_AND_B = [
  { name: 'a', to: [0], at: 'A' },
  { name: 'b', to: [0], at: 'BC' },
];

const LIST: readonly Scope[] = [
  {
    name: 'takeover',
    title: 'a member takes over from a leader that works; a pause, and a kill and resume',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'B',
    pauses: { who: 'A', times: 1 },
    resumes: { who: 'BC', times: 1 },
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'small',
    title: 'a member takes over from a leader that works, and nothing else happens',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'B',
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'rivals',
    title: 'two candidates',
    groups: 1,
    placed: [
      { name: 'b', to: [0], at: 'B' },
      { name: 'c', to: [0], at: 'C' },
    ],
    campaigns: 'BC',
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'restart',
    title: 'a member loses its memory and recovers, while another takes over',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'B',
    restarts: { who: 'C', times: 1 },
    beats: { who: 'C', times: 1 },
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'feed',
    title: 'the leader of a parent group changes while the child takes from the feed',
    groups: 2,
    placed: [{ name: 'a', to: [0, 1], at: 'ABC' }],
    campaigns: 'B',
    resumes: { who: 'A', times: 1 },
    directLinks: [...between('ABC'), ...between('DEF')],
  },
  {
    name: 'session',
    title: 'a client crashes, and a new session takes its slot while the leader changes',
    groups: 1,
    placed: [],
    campaigns: 'B',
    sessions: { who: 'D', times: 1, to: [0] },
    directLinks: between('ABC'),
  },
];

export const SCOPES: ReadonlyMap<string, Scope> = new Map(LIST.map((scope) => [scope.name, scope]));
