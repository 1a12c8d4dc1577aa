/** `tram demo`: a first look at atomic multicast, in a simulated cluster that loses a leader. */
import type { Command } from 'commander';
import { describeBallot } from '../protocol/ballot.js';
import { contains } from '../protocol/overlay.js';
import type { Sent } from '../sim/ledger.js';
import type { Plan } from '../sim/plan.js';
import type { ReplicaHost, World } from '../sim/world.js';
import { formatVerdict } from './check.js';
import { count, paint } from './colors.js';
import { ExitCode } from './exit-codes.js';

const CRASHED_GROUP = 2;
const CRASH_AT_US = 1500;
/** Below the group whose leader crashes: whatever goes to both of them and enters above needs it. */
const WATCHED = [4, 5] as const;
const FOLLOWED = 5;

const HELP = `
Eight groups of three replicas each, in a tree; three clients that multicast to one to eight groups;
in the middle of it the leader of group ${CRASHED_GROUP} crashes. Everything runs in one thread and in simulated
time, so that every run prints the same. To see much worse things happen, try "tram sim --help".
`;

export function registerDemo(program: Command): void {
  program
    .command('demo')
    .helpGroup('Look at it:')
    .summary('watch a small cluster order messages and survive the crash of a leader')
    .description('Runs a small simulated cluster that loses a leader, and explains what happens.')
    .addHelpText('after', HELP)
    .action(async () => {
      process.exitCode = await demo();
    });
}

async function demo(): Promise<number> {
  const { World } = await import('../sim/world.js');
  const { Rules } = await import('../protocol/rules.js');
  const { judge } = await import('../check/judge.js');
  const world = new World(await makePlan(), new Rules());
  introduce(world);
  elect(world);
  crash(world);
  const [group] = WATCHED;
  const deliveredBefore = world.ledger.orders[group]!.length;
  takeOver(world);
  world.run();
  say(`${time(world)}  every message is delivered and every client has its replies\n`);
  showDeliveries(world);
  followMessages(world, deliveredBefore);
  const verdict = judge(world.ledger.history);
  heading('What the judge says about the whole history');
  process.stdout.write(formatVerdict(verdict));
  return verdict.outcome === 'holds' ? ExitCode.fine : ExitCode.verificationFailed;
}

async function makePlan(): Promise<Plan> {
  const { PACE } = await import('../protocol/edges.js');
  const { SHAPES } = await import('../protocol/overlay.js');
  const groups = 8;
  const ringBytes = 16_384;
  return {
    seed: 3,
    parents: SHAPES.base(groups),
    sizes: {
      groups,
      replicas: 3,
      clients: 3,
      payloadBytesMax: 64,
      replyBytesMax: 16,
      logBytes: ringBytes,
      inboxBytes: ringBytes,
      feedBytes: ringBytes,
      callsMax: 8,
      snapshotChunkBytes: 4096,
      origin: 0,
      salt: 1,
    },
    timing: {
      heartbeatUs: 100,
      suspectAfterUs: 500,
      askAgainUs: 100,
      backOffUs: 200,
      resendAfterUs: 1500,
    },
    pace: PACE,
    weather: { delayUs: 2, jitterUs: 4, tornPercent: 0, lateCompletionPercent: 0 },
    stepUs: 4,
    messages: 240,
    isBursty: false,
    messageEveryUs: 12,
    singleGroupPercent: 40,
    serviceFailsEvery: 0,
    faults: new Set(),
    incidents: [
      {
        kind: 'crash',
        group: CRASHED_GROUP,
        hitsLeader: true,
        member: 0,
        atUs: CRASH_AT_US,
        afterPosts: 1,
        durationUs: 0,
        leavesMemory: false,
        isAmbush: false,
      },
    ],
    holes: [],
  };
}

// --- the story, in order -----------------------------------------------------------------------

function introduce(world: World): void {
  const { groups, replicas, clients } = world.plan.sizes;
  heading('Atomic multicast: messages to any set of groups, in an order that all of them agree on');
  say(
    `${count(groups, 'group')} of ${count(replicas, 'replica')} in a tree, ${count(clients, 'client')}.`,
  );
  say(
    'A message enters at the lowest group that has all its destinations below it, and goes down.\n',
  );
  say(`${world.overlay.describe()}\n`);
}

function elect(world: World): void {
  heading('What happens, in simulated time');
  const groups = world.plan.parents.map((_, group) => group);
  world.runUntil(() => groups.every((group) => world.leaderOf(group)));
  const leaders = groups.map((group) => nameOf(world.leaderOf(group)!));
  say(`${time(world)}  every group has a leader: ${leaders.join(' ')}`);
}

function crash(world: World): void {
  const leader = world.leaderOf(CRASHED_GROUP)!;
  world.runUntil(() => leader.state === 'down');
  const { messages, deliveries } = world.ledger;
  const sent = `${count(messages, 'message')} sent, ${count(deliveries, 'delivery', 'deliveries')}`;
  const victim = paint('red', `${nameOf(leader)}, the leader of g${CRASHED_GROUP}, crashes`);
  say(`${time(world)}  so far ${sent}; clients go on`);
  say(`${time(world)}  ${victim} in the middle of a step (its ballot was ${ballotOf(leader)})`);
}

function takeOver(world: World): void {
  const crashedUs = world.nowUs;
  world.runUntil(() => world.leaderOf(CRASHED_GROUP) !== undefined);
  const leader = world.leaderOf(CRASHED_GROUP)!;
  const successor = paint('green', `${nameOf(leader)} takes over`);
  const afterUs = Math.round(world.nowUs - crashedUs);
  say(`${time(world)}  ${successor} with ballot ${ballotOf(leader)}, ${afterUs} µs later:`);
  say('           a majority granted it the lead, and it continues from what they had logged');
}

function showDeliveries(world: World): void {
  heading('What was delivered where');
  say('group   deliveries   first messages, in the order of the group');
  world.ledger.orders.forEach((order, group) => {
    const first = order.slice(0, 5).map((sent) => sent.id);
    say(`g${group}      ${String(order.length).padStart(10)}   ${first.join('  ')}`);
  });
  say('');
}

/** Messages that meet at two groups: there they stand in the same order. */
function followMessages(world: World, deliveredBefore: number): void {
  const { orders } = world.ledger;
  const [here, there] = WATCHED;
  const followed = orders[here]!.slice(deliveredBefore)
    .filter((sent) => orders[there]!.includes(sent))
    .slice(0, FOLLOWED);
  heading(
    `Messages followed: the next ones that g${here} and g${there} both delivered after the crash`,
  );
  for (const sent of followed) {
    const places = WATCHED.map((group) => `g${group} as #${orders[group]!.indexOf(sent) + 1}`);
    const to = destinationsOf(world, sent).map((group) => `g${group}`);
    say(
      `${sent.id} to ${to.join(',')} entered at g${sent.entry} → delivered at ${places.join(', ')}`,
    );
  }
  say(`Downwards the numbers grow at g${here} and at g${there}: both have the same order.\n`);
}

// --- words -------------------------------------------------------------------------------------

function destinationsOf(world: World, sent: Sent): number[] {
  const groups = world.plan.parents.map((_, group) => group);
  return groups.filter((group) => contains(sent.destinationsLow, sent.destinationsHigh, group));
}

function ballotOf({ replica }: ReplicaHost): string {
  return describeBallot(replica.member.promised);
}

function nameOf({ group, member }: ReplicaHost): string {
  return `${group}/${member}`;
}

function time(world: World): string {
  return paint('dim', `${String(Math.round(world.nowUs)).padStart(6)} µs`);
}

function heading(text: string): void {
  say(paint('bold', text));
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
