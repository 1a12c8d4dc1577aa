/**
 * The guided tours: what is done in each, and what is said about it. The cluster of a tour has its leaders already.
 * Times are those of the run, so a tour waits for lines of the story, never for a time.
 */

export type Move =
  /** Commands are given (docs/scenarios.md). */
  | { readonly act: readonly string[] }
  /** The run goes on to a line of its story that begins with these words. */
  | { readonly until: string }
  /** So many visible changes. */
  | { readonly steps: number }
  /** Until nothing more is told. */
  | { readonly untilQuiet: true }
  | { readonly judge: true };

export interface Stop {
  readonly text: string;
  readonly moves?: readonly Move[];
  /** The replica to inspect. */
  readonly look?: string;
}

export interface Tour {
  readonly name: string;
  readonly title: string;
  readonly cluster: string;
  readonly stops: readonly Stop[];
}

const act = (...commands: string[]): Move => ({ act: commands });
const until = (words: string): Move => ({ until: words });
const steps = (count: number): Move => ({ steps: count });
const untilQuiet: Move = { untilQuiet: true };
const judge: Move = { judge: true };

const END =
  'The judge has read the history: nothing is violated. Now go on by yourself: break something.';

export const TOURS: readonly Tour[] = [
  {
    name: 'one-message',
    title: 'One message',
    cluster: 'groups=1 replicas=3 clients=1',
    stops: [
      {
        text: 'One group of three replicas. 0/0 leads: the others have *granted* its ballot 1.0, and each has given it a key with which it may write their logs.',
        look: '0/0',
      },
      {
        text: 'The client multicasts “hello”. It writes the message into the memory of every replica, by itself: no replica runs any code for that.',
        moves: [act('multicast c0 to 0 "hello"'), steps(1)],
      },
      {
        text: 'The leader finds the message in its inbox and puts it into its log. The entry is *undecided* (dashed). The writes to the logs of the others are on their way.',
        moves: [steps(5)],
        look: '0/0',
      },
      {
        text: 'The writes have succeeded at a majority, so the entry is *decided*: no later leader can lose it. The leader delivers it and writes the reply to the client.',
        moves: [until('0/0 delivers')],
      },
      {
        text: 'The leader tells the followers how far the log is decided, and they deliver too. The client has its reply.',
        moves: [untilQuiet, judge],
      },
    ],
  },
  {
    name: 'two-groups',
    title: 'Two groups',
    cluster: 'groups=2 tree=-1,0 replicas=3 clients=1',
    stops: [
      { text: 'Group 0 is the parent of group 1. Each has a leader and a log of its own.' },
      {
        text: 'A message to both groups enters at their lowest common ancestor: that is group 0. Group 1 hears nothing from the client.',
        moves: [act('multicast c0 to 0,1 "both"'), steps(2)],
      },
      {
        text: 'Group 0 has decided the message, and delivers it. Its leader writes the entry into the *feed* of each replica of group 1.',
        moves: [until('0/0 delivers'), steps(1)],
        look: '1/0',
      },
      {
        text: 'The leader of group 1 takes it from its feed, orders it in its own log, and delivers it. Both groups reply.',
        moves: [until('1/0 delivers')],
        look: '1/0',
      },
      {
        text: 'A message to group 1 alone enters there. Group 0 does no work for it: TRAM is *partially genuine*.',
        moves: [untilQuiet, act('multicast c0 to 1 "one"'), until('c0 has all replies')],
      },
      { text: END, moves: [untilQuiet, judge] },
    ],
  },
  {
    name: 'leader-dies',
    title: 'A leader dies',
    cluster: 'groups=1 replicas=5 clients=1',
    stops: [
      { text: 'Five replicas, so two of them may fail. 0/0 leads.' },
      {
        text: 'A message comes, and the leader stops in the middle of its append: 0/1 has the entry, 0/2, 0/3 and 0/4 do not.',
        moves: [
          act('pause 0/0 before a write to 0/2', 'multicast c0 to 0 "hello"'),
          until('0/0 pauses'),
          steps(1),
        ],
      },
      {
        text: 'It crashes, and its memory is lost. Nobody knows whether the entry was decided.',
        moves: [act('crash 0/0')],
        look: '0/1',
      },
      {
        text: 'The others no longer see its heartbeat. 0/1 campaigns with a higher ballot: it asks all members for their logs.',
        moves: [until('0/1 campaigns'), steps(2)],
        look: '0/1',
      },
      {
        text: 'A member that grants takes the permission to write its log away from the old leader. Among the logs of a majority, the new leader adopts the one that reaches furthest. It keeps “hello”, because it could have been decided.',
        moves: [until('0/1 goes on')],
        look: '0/1',
      },
      {
        text: 'The new leader writes its whole log under its own ballot, to all members that have granted it the log. Then it leads, and delivers.',
        moves: [until('0/1 delivers')],
        look: '0/1',
      },
      { text: END, moves: [untilQuiet, judge] },
    ],
  },
  {
    name: 'deposed-leader',
    title: 'A deposed leader writes',
    cluster: 'groups=1 replicas=3 clients=2',
    stops: [
      {
        text: '0/0 leads. The message “late” reaches only 0/0, since the links from c0 to the others are held. 0/0 pauses before it writes the entry to 0/1.',
        moves: [
          act('hold c0 -> 0/1, 0/2', 'pause 0/0 before a write to 0/1', 'multicast c0 to 0 "late"'),
          until('0/0 pauses'),
        ],
        look: '0/0',
      },
      {
        text: 'The others suspect it. 0/1 asks for the lead, and 0/2 grants: look at what its memory *permits* now. The key of 0/0 is no longer valid there.',
        moves: [until('0/2 grants')],
        look: '0/2',
      },
      {
        text: '0/1 leads, and decides “other” in the place where 0/0 has “late”.',
        moves: [until('0/1 leads'), act('multicast c1 to 0 "other"'), until('c1 has all replies')],
        look: '0/1',
      },
      {
        text: '0/0 wakes up. It does not know that it was deposed, and posts the writes that it still had to do.',
        moves: [act('resume 0/0'), steps(1)],
        look: '0/0',
      },
      {
        text: 'Its writes are refused: they name a key that the memory of the others no longer permits. It has decided nothing, so it steps down.',
        moves: [until('0/0 steps down')],
        look: '0/0',
      },
      {
        text: 'It gets the log of the new leader, and delivers “other”. Its own entry is gone from its log; it was never decided.',
        moves: [until('0/0 delivers')],
        look: '0/0',
      },
      {
        text: 'When “late” arrives at the new leader, it is ordered, once, after “other”. The judge finds nothing.',
        moves: [act('release c0 -> 0/1, 0/2'), untilQuiet, judge],
        look: '0/0',
      },
    ],
  },
  {
    name: 'why-a-tree',
    title: 'Why order across groups needs a tree',
    cluster: 'groups=3 tree=-1,0,0 replicas=3 clients=2',
    stops: [
      {
        text: 'Two messages go to groups 1 and 2 at the same time. If each group ordered them for itself, group 1 could deliver a before b, and group 2 b before a: a cycle that nobody can repair afterwards.',
      },
      {
        text: 'So both messages enter at the lowest common ancestor, group 0, although it is not a destination. Here the message of c0 is slow on its way to the leader, so b may come first.',
        moves: [
          act('slow c0 -> 0/0 by 40us', 'multicast c0 to 1,2 "a"', 'multicast c1 to 1,2 "b"'),
          steps(3),
        ],
        look: '0/0',
      },
      {
        text: 'The log of group 0 fixes the order of the two, once. Its entries go down the feeds in this order. We make the feeds to group 2 slow.',
        moves: [act('slow 0/0 -> 2/0, 2/1, 2/2 by 300us'), until('group 0 relays "a"'), steps(1)],
        look: '0/0',
      },
      {
        text: 'Group 1 has delivered both, and group 2 neither. It does not matter: what reaches group 2 later has the same order.',
        moves: [until('1/0 delivers "a"')],
        look: '1/0',
      },
      {
        text: 'Meanwhile a message to group 2 alone, c, is ordered there at once. It waits for nobody: it can be in no cycle, since only group 2 orders it.',
        moves: [act('multicast c1 to 2 "c"'), until('2/0 delivers "c"')],
        look: '2/0',
      },
      {
        text: 'Group 2 delivers b and a in the order of group 0. The judge confirms it: the order is acyclic. It also sees that c overtook b although c1 had a reply to b. That is allowed here; the last tour shows a cluster that forbids it.',
        moves: [untilQuiet, judge],
        look: '2/0',
      },
    ],
  },
  {
    name: 'real-time-order',
    title: 'Real-time order and the gate',
    cluster: 'groups=2 tree=-1,0 replicas=3 clients=2 order=strict',
    stops: [
      {
        text: 'This cluster promises *real-time order*: if a client has received a reply to m, and somebody then multicasts m′, then no replica delivers m′ before m. We hold all that group 0 writes to group 1.',
        moves: [act('hold 0/0 -> 1/0, 1/1, 1/2')],
      },
      {
        text: 'A message to both groups. Group 0 delivers it, but holds its reply: group 1 does not have the message, so somebody who saw the reply could ask group 1, and be answered without it. The *gate* of group 0 has not passed this entry.',
        moves: [act('multicast c0 to 0,1 "both"'), until('0/0 holds a reply')],
        look: '0/0',
      },
      {
        text: 'The reply to a later message to group 0 alone, “after”, is held as well: it would show the first one. A message to group 1 alone is answered at once. It comes before “both” there, and nobody can have known better.',
        moves: [
          untilQuiet,
          act('multicast c1 to 0 "after"', 'multicast c1 to 1 "other"'),
          until('c1 has all replies'),
        ],
        look: '1/0',
      },
      {
        text: 'The link works again. Group 1 decides “both”, and tells its parent that all it was sent is *settled*.',
        moves: [act('release 0/0 -> 1/0, 1/1, 1/2'), until('1/0 delivers "both"')],
        look: '1/0',
      },
      {
        text: 'Now the gate of group 0 passes the entries, and it sends the replies that it held. Deliveries never waited, only replies.',
        moves: [until('0/0 sends replies')],
        look: '0/0',
      },
      { text: END, moves: [untilQuiet, judge] },
    ],
  },
];

export function findTour(name: string): Tour | undefined {
  return TOURS.find((tour) => tour.name === name);
}
