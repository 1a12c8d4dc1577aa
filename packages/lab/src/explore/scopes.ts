/** The scopes of the explorer. docs/explorer.md says what is free in each, and what is fixed. */
import type { Scope } from './scope.js';

const ONE_CLIENT_EACH = { Leader: { turn: 'each member has messages of one client at most' } };
const ONE_CLIENT = {
  Leader: { turn: 'there is one client', clientsFirst: 'the group has no parent' },
};

/** Both directions between any two of these. */
function between(letters: string): string[] {
  return [...letters].flatMap((from) =>
    [...letters].filter((to) => to !== from).map((to) => from + to),
  );
}

/** The leader has one message, and the others have another. */
const A_THEN_B = [
  { names: 'a', to: [0], at: 'A' },
  { names: 'b', to: [0], at: 'BC' },
];

/** The same, but the leader's message arrives at any time. */
const A_AND_B = [{ ...A_THEN_B[0], arrives: true }, A_THEN_B[1]];

const LIST: readonly Scope[] = [
  {
    name: 'small',
    title: 'a member takes over from a leader that works',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'B',
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'takeover',
    title: 'a member takes over from a leader that works; one pause, and one kill and resume',
    groups: 1,
    placed: A_THEN_B,
    campaigns: 'B',
    pauses: { who: 'A', times: 1 },
    resumes: { who: 'C', times: 1 },
    unobserved: ONE_CLIENT_EACH,
    directLinks: ['AB', 'CA', 'CB'],
  },
  {
    name: 'rivals',
    title: 'two candidates',
    groups: 1,
    placed: [
      { names: 'b', to: [0], at: 'B' },
      { names: 'c', to: [0], at: 'C' },
    ],
    campaigns: 'BC',
    unobserved: ONE_CLIENT_EACH,
    // So C has A at its side.
    directLinks: between('AC'),
  },
  {
    name: 'again',
    title: 'the leader campaigns again, against another candidate',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'AC',
    unobserved: ONE_CLIENT_EACH,
    // So A has B at its side.
    directLinks: between('AB'),
  },
  {
    name: 'late',
    title: 'the leader campaigns again, and another candidate lags behind',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'AB',
    directLinks: ['AC', 'CA', 'CB'],
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'lagging',
    isLong: true,
    title: 'the leader campaigns again, and another candidate and its follower lag behind',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'AB',
    directLinks: ['CA', 'CB'],
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'repeat',
    title: 'a candidate asks twice, and a member that has granted is killed and resumes',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'B',
    beats: { who: 'B', times: 1 },
    resumes: { who: 'C', times: 1 },
    directLinks: between('AB'),
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'broken',
    title:
      'a link to the third member breaks while another takes over; refused writes may be stopped',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'B',
    breaks: { links: ['AC', 'BC'], times: 1 },
    stops: true,
    directLinks: ['AB', 'CA', 'CB'],
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'death',
    title: 'a member is killed within a step and resumes, while another takes over',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'B',
    freeSteps: 'C',
    deaths: { who: 'C', times: 1 },
    unobserved: ONE_CLIENT_EACH,
    directLinks: between('AB'),
  },
  {
    name: 'restart',
    title: 'a member loses its memory and recovers, while another takes over',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'B',
    restarts: { who: 'C', times: 1 },
    directLinks: ['AB', 'CA', 'CB'],
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'relapse',
    title: 'the same, and the member that recovers is killed and resumes',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'B',
    restarts: { who: 'C', times: 1 },
    resumes: { who: 'C', times: 1 },
    directLinks: ['AB', 'BA', 'CA', 'CB'],
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'recovery',
    isLong: true,
    title: 'the same, and the links between the other two are not direct',
    groups: 1,
    placed: A_AND_B,
    campaigns: 'B',
    restarts: { who: 'C', times: 1 },
    resumes: { who: 'C', times: 1 },
    directLinks: ['CA', 'CB'],
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'behind',
    title: 'a member lags while the log fills up, and catches up',
    groups: 1,
    logBytes: 256,
    delivered: [{ name: 'a', to: [0] }],
    placed: [{ names: 'bcde', to: [0], at: 'AB', arrives: true }],
    beats: { who: 'AC', times: 2 },
    directLinks: ['AB', 'BA', 'BC', 'CA', 'CB'],
    unobserved: ONE_CLIENT,
  },
  {
    name: 'backlog',
    isLong: true,
    title: 'the log fills up while the link to a member is broken, and it catches up',
    groups: 1,
    logBytes: 256,
    delivered: [{ name: 'a', to: [0] }],
    placed: [{ names: 'bcdefg', to: [0], at: 'A', arrives: true }],
    beats: { who: 'AC', times: 2 },
    breaks: { links: ['AC'], times: 1 },
    directLinks: ['AB', 'BA', 'BC', 'CA', 'CB'],
    unobserved: ONE_CLIENT,
  },
  {
    name: 'full',
    title: 'a member lags while the log fills up, and another takes over',
    groups: 1,
    logBytes: 256,
    delivered: [{ name: 'a', to: [0] }],
    placed: [{ names: 'bcde', to: [0], at: 'AB' }],
    beats: { who: 'AC', times: 2 },
    campaigns: 'B',
    directLinks: ['AB', 'BA', 'CA', 'CB'],
    unobserved: ONE_CLIENT,
  },
  {
    name: 'snapshot',
    title: 'a member loses its memory and fetches a snapshot',
    groups: 1,
    logBytes: 256,
    delivered: [
      { name: 'a', to: [0] },
      { name: 'b', to: [0] },
      { name: 'c', to: [0] },
    ],
    placed: [{ names: 'd', to: [0], at: 'ABC', arrives: true }],
    restarts: { who: 'C', times: 1 },
    beats: { who: 'C', times: 2 },
    campaigns: 'C',
    directLinks: ['AB', 'BA', 'AC', 'CA'],
    unobserved: ONE_CLIENT,
  },
  {
    name: 'server',
    isLong: true,
    title: 'a member loses its memory and fetches a snapshot, and its server is killed and resumes',
    groups: 1,
    logBytes: 256,
    delivered: [
      { name: 'a', to: [0] },
      { name: 'b', to: [0] },
      { name: 'c', to: [0] },
    ],
    placed: [{ names: 'd', to: [0], at: 'ABC', arrives: true }],
    restarts: { who: 'C', times: 1 },
    resumes: { who: 'B', times: 1 },
    beats: { who: 'BC', times: 2 },
    directLinks: ['AB', 'BA', 'AC', 'CA'],
    unobserved: ONE_CLIENT,
  },
  {
    name: 'free',
    title: 'a member takes over from a leader; the steps of both are free, and one kill and resume',
    groups: 1,
    placed: A_THEN_B,
    campaigns: 'B',
    resumes: { who: 'C', times: 1 },
    freeSteps: 'AB',
    unobserved: ONE_CLIENT_EACH,
    directLinks: ['AB', 'AC', 'BA', 'CA', 'CB'],
  },
  {
    name: 'freer',
    isLong: true,
    title: 'the same, and the link from the leader to the third member is not direct',
    groups: 1,
    placed: A_THEN_B,
    campaigns: 'B',
    resumes: { who: 'C', times: 1 },
    freeSteps: 'AB',
    unobserved: ONE_CLIENT_EACH,
    directLinks: ['AB', 'BA', 'CA', 'CB'],
  },
  {
    name: 'five',
    title: 'five members, of which one takes over',
    groups: 1,
    replicas: 5,
    placed: [
      { names: 'ax', to: [0], at: 'A' },
      { names: 'b', to: [0], at: 'B' },
    ],
    campaigns: 'B',
    // So A has E at its side, and B has D. C decides.
    directLinks: [...between('AE'), ...between('BD'), 'AB', 'AD', 'BE', 'CA'],
    unobserved: ONE_CLIENT_EACH,
  },
  {
    name: 'feed',
    title: 'the leader of a parent group changes while the child takes from the feed',
    groups: 2,
    delivered: [{ name: 'a', to: [0, 1] }],
    placed: [{ names: 'bc', to: [0, 1], at: 'ABC', arrives: true }],
    campaigns: 'BE',
    directLinks: [...between('ABC'), ...between('DEF'), ...to('F')],
  },
  {
    name: 'session',
    title: 'a client crashes, and a new session takes its slot while the leader changes',
    groups: 1,
    placed: [],
    campaigns: 'B',
    sessions: { who: 'D', times: 1, to: [0], messages: 1 },
    directLinks: between('ABC'),
  },
  {
    name: 'torn',
    title: 'the messages of a client land in two parts each',
    groups: 1,
    placed: [],
    sessions: { who: 'D', times: 0, to: [0], messages: 2 },
    torn: ['DA'],
    campaigns: 'B',
    beats: { who: 'A', times: 1 },
    directLinks: [...between('ABC'), 'DB', 'DC'],
  },
];

/** From every member of the parent group. */
function to(letter: string): string[] {
  return [...'ABC'].map((from) => from + letter);
}

export const SCOPES: ReadonlyMap<string, Scope> = new Map(LIST.map((scope) => [scope.name, scope]));
