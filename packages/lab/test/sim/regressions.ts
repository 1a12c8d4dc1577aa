/** Seeds that once found a bug, with what they found. They must hold for ever. */
export const REGRESSIONS: readonly { readonly seed: number; readonly found: string }[] = [
  { seed: 137, found: "a feed's first number changed without being published" },
  { seed: 148, found: 'suspicion that never became accurate on slow links' },
  { seed: 1022, found: 'a torn truncation taken for an empty log' },
  { seed: 1213, found: 'an adopted log whose start was overwritten meanwhile' },
  { seed: 1942, found: 'a feed not rewound by a member that leads again' },
  { seed: 2135, found: "a dead session's reply kept in place of a live one's" },
  { seed: 4037, found: 'a restarted member counted before it had a snapshot' },
  { seed: 10019, found: 're-checks that were always started anew' },
  { seed: 104708, found: 'answers overwritten by answers before they had arrived' },
  { seed: 104970, found: 'snapshot chunks asked for too often to arrive' },
  { seed: 12987672, found: 'writing on over a gap after a broken connection' },
  { seed: 918238, found: 'replies sent again faster than they can arrive' },
  { seed: 16720050, found: 'a run taken for drained before those who slept had woken' },
  {
    seed: 11750478,
    found: "half a message in a dead member's feed that hid the whole one in another",
  },
  { seed: 23833, found: 'a log truncated beyond what was decided' },
  { seed: 300660, found: 'a feed written again while more of it was still being lost' },
];
