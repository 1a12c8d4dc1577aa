import type { Options } from '../../src/sim/plan.js';

export interface Regression {
  readonly seed: number;
  readonly found: string;
  readonly options?: Options;
}

/** Seeds that have found a bug, with a description of the bug. They must hold in every later version. */
export const REGRESSIONS: readonly Regression[] = [
  { seed: 137, found: "a feed's first number changed without being published" },
  { seed: 148, found: 'suspicion that never became accurate on slow links' },
  { seed: 1022, found: 'a torn truncation mistaken for an empty log' },
  { seed: 1213, found: 'an adopted log whose start was overwritten meanwhile' },
  { seed: 1942, found: 'a feed not rewound by a member that leads again' },
  { seed: 2135, found: "a dead session's reply kept in place of a live one's" },
  { seed: 4037, found: 'a restarted member counted before it had a snapshot' },
  { seed: 10019, found: 're-checks that restarted again and again' },
  { seed: 104708, found: 'answers overwritten by answers before they had arrived' },
  { seed: 104970, found: 'snapshot chunks requested again before they could arrive' },
  { seed: 12987672, found: 'writes that continued over a gap after a broken connection' },
  { seed: 918238, found: 'replies sent again faster than they can arrive' },
  { seed: 16720050, found: 'a run considered drained before paused members had continued' },
  {
    seed: 11750478,
    found: "half a message in a dead member's feed that hid the complete one in another feed",
  },
  { seed: 264, found: 'an interrupted step that went on after its member was killed' },
  { seed: 4334, found: 'a bound on waiting that forgot how much an allowance grows' },
  { seed: 6591, found: 'interruptions so dense that nothing got done' },
  { seed: 23833, found: 'a log truncated beyond what was decided' },
  {
    seed: 20105,
    found: 'a snapshot counted on although the memory beside it was gone',
    options: {
      groups: 1,
      replicas: 3,
      ringBytes: 0,
      faults: ['outage', 'kill', 'pause', 'stop', 'restart'],
    },
  },
  {
    seed: 663,
    found:
      'real-time order that was called unknown because the only client crashed before the first reply',
    options: { order: 'strict' },
  },
  { seed: 100387, found: 'reads of rows that were posted faster than they could arrive' },
  { seed: 1470, found: 'ticks that took all room in a small log' },
  { seed: 20049, found: 'a member killed while another one of three was left behind' },
  {
    seed: 3127,
    found:
      'a run considered drained while a message of a crashed client was on its way down the tree',
    options: { order: 'strict' },
  },
  {
    seed: 4408,
    found: 'a cancel answered before the service was told of it',
    options: { order: 'strict' },
  },
  {
    seed: 496,
    found: 'journals of a parent and a child whose snapshots waited for each other',
    options: { durability: 'always' },
  },
  {
    seed: 5200182,
    found: 'the same after a member lagged and a disk was replaced',
    options: { durability: 'always', groups: 2, replicas: 3 },
  },
  {
    seed: 2802173,
    found: 'ticks and other own entries that took all room in a small log',
    options: { durability: 'everySecond' },
  },
  {
    seed: 60769,
    found: 'snapshots that took all room from a group that its quorum needed',
    options: { durability: 'always' },
  },
  {
    seed: 52072,
    found: 'a snapshot that found no room, because another group filled the ring again and again',
    options: { durability: 'always' },
  },
  {
    seed: 202058,
    found: 'slow disks that took more snapshots at marks than the quorum needed',
    options: { durability: 'always' },
  },
  {
    seed: 212,
    found: 'a run that never ended, because members with slow disks were never all level at once',
    options: { durability: 'always', groups: 4 },
  },
  { seed: 300660, found: 'a feed written again while more of it was still being lost' },
  { seed: 704414, found: 'a member made slow before it led, where only followers may be slow' },
  { seed: 5005263, found: 'the same of a leader that hung while it campaigned anew' },
];
