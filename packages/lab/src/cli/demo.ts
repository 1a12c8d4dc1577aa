/**
 * `tram-lab demo`: a first look at atomic multicast. It runs a cluster of threads in this process with clients that
 * multicast at a steady rate, crashes a host that leads groups, restarts it, and shows figures and the verdict of the
 * judge on the history.
 */
import { type Command, Option } from 'commander';
import type { Verdict } from 'tram-multicast/internal/check/judge.js';
import { count, paint } from 'tram-multicast/internal/cli/colors.js';
import { ExitCode } from 'tram-multicast/internal/cli/exit-codes.js';
import { integer } from 'tram-multicast/internal/cli/number-option.js';
import type { Client } from 'tram-multicast/internal/client.js';
import type { Cluster } from 'tram-multicast/internal/cluster.js';
import type { GroupStatus } from 'tram-multicast/internal/hosting/status.js';
import { PAGE_DEFAULTS } from 'tram-multicast/internal/page/page-options.js';
import type { Answered, DemoLoad } from './demo-load.js';
import type { DemoView } from './demo-view.js';

const GROUPS = 8;
const HOSTS = 3;
const CLIENTS = 4;
/** Modest, because every delivery at every replica is recorded and judged. */
const MESSAGES_PER_SECOND = 3000;
const CRASH_AFTER_MS = 2500;
const RESTART_AFTER_MS = 5000;
const END_AFTER_MS = 7500;
const DRAW_EVERY_MS = 100;
const OPTIONS = {
  order: 'strict',
  groups: GROUPS,
  replicas: HOSTS,
  hosts: HOSTS,
  // A crash then affects a part of the groups.
  leaders: 'spread',
  tree: 'base',
  memory: 'threads',
  clients: CLIENTS,
} as const;
/** An inner group of the tree: messages for the groups below pass through it. */
const VICTIM_GROUP = 1;

const INTRODUCTION = `
A service that must not lose data keeps several copies of it: a group of
replicas. A service that must scale splits its data among many groups. Atomic
multicast delivers a message to all replicas of any set of groups, and no two
replicas disagree on the order of the messages that both deliver. A bank can
then move money between two groups, or audit all of them, with one message, and
an audit never sees half of a transfer.

TRAM arranges the groups in a tree. A message enters at the lowest common
ancestor of its destinations, is ordered there, and goes down the tree.
`;

/** What each group does for one message. */
const PATH: Readonly<Record<number, string>> = {
  1: 'a message for g4 and g7 enters here and is ordered',
  2: 'relays it to g4, in that order',
  4: 'delivers it',
  3: 'relays it to g7, in that order',
  7: 'delivers it; g0, g5 and g6 do no work for it',
};

const CONCLUSION = `
All destinations delivered every message, in one order. That includes the
messages that were in flight when their leader crashed: the next leader found
them in the memory of a majority. Only their clients waited a moment longer.

Where to go next:
  README.md             the quick start: a service of your own in a few lines
  examples/bank         transfers between groups, and audits of all groups
  npx tram up           a cluster of processes to use, watch and kill
  npx tram-lab sim      thousands of simulated runs with many faults, judged
  docs/guarantees.md    what TRAM guarantees, and what it does not
`;

const HELP = `
The demo runs eight groups of three replicas on three threads of this process. Each thread hosts one replica of every
group. Four clients multicast ${MESSAGES_PER_SECOND} messages per second to one to eight groups each. The demo kills a thread that leads
some of the groups, and starts it again. It takes about ten seconds.

With --page the demo runs the same cluster and clients until Ctrl-C, without a history and its verdict. It prints the
address of a page, on which you crash and restart hosts and choose leaders.

The times depend on the machine and its load. To measure throughput, use "tram-lab bench".

Exit codes:
  0    success
  3    the judge has found a violation
  130  interrupted
`;

export function registerDemo(program: Command): void {
  program
    .command('demo')
    .helpGroup('Look at it:')
    .summary('watch a small cluster order messages and survive a crash of leaders')
    .description('Runs a small cluster, crashes some of its leaders, and explains what happens.')
    .addOption(
      new Option(
        '--json',
        'print figures and verdict as one JSON object, and nothing else',
      ).conflicts('page'),
    )
    .option('--page', 'show it in a browser, and go on until Ctrl-C')
    .option('--port <port>', 'with --page: the port', integer(0, 65_535), PAGE_DEFAULTS.port)
    .addHelpText('after', HELP)
    .action(async (flags: { json?: boolean; page?: boolean; port: number }) => {
      process.exitCode = flags.page
        ? await demoOnPage(flags.port)
        : await demo(flags.json === true);
    });
}

/** The cluster and its clients on the page of `tram watch`, where the user crashes hosts. */
async function demoOnPage(port: number): Promise<number> {
  const { catchInterruption, pauseUnless } = await import(
    'tram-multicast/internal/cli/interruption.js'
  );
  const { Cluster } = await import('tram-multicast/internal/cluster.js');
  const { DemoLoad } = await import('./demo-load.js');
  const { signal, release } = catchInterruption();
  const cluster = await Cluster.start({ ...OPTIONS, name: 'demo', page: { port, control: true } });
  try {
    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => cluster.connect()));
    // A message that fails because the cluster is ended is no news.
    const load = new DemoLoad(clients, GROUPS, MESSAGES_PER_SECOND, () => undefined);
    say(`${paint('bold', 'Open this page:')} ${cluster.page}`);
    say(
      `It shows ${GROUPS} groups of ${HOSTS} replicas and ${CLIENTS} clients. Crash a host there, and watch others take over.`,
    );
    say('Ctrl-C ends it.');
    while (!signal.aborted) {
      await pauseUnless(signal, DRAW_EVERY_MS);
      load.forget();
    }
    load.stop();
    return ExitCode.interrupted;
  } finally {
    await cluster.destroy();
    release();
  }
}

async function demo(json: boolean): Promise<number> {
  const { catchInterruption } = await import('tram-multicast/internal/cli/interruption.js');
  const { mkdtempSync, rmSync } = await import('node:fs');
  const { tmpdir } = await import('node:os');
  const { join } = await import('node:path');
  const { signal, release } = catchInterruption();
  const directory = mkdtempSync(join(tmpdir(), 'tram-demo-'));
  try {
    if (!json) await introduce();
    const trace = join(directory, 'trace');
    const story = await run(trace, json, signal);
    if (story === undefined) return ExitCode.interrupted;
    const verdict = await judgeTrace(trace);
    if (json) say(JSON.stringify({ ...figuresOf(story, verdict), verdict }, null, 2));
    else await conclude(story, verdict);
    return verdict.outcome === 'violated' ? ExitCode.verificationFailed : ExitCode.fine;
  } finally {
    rmSync(directory, { recursive: true, force: true });
    release();
  }
}

async function introduce(): Promise<void> {
  const { SHAPES } = await import('tram-multicast/internal/protocol/overlay.js');
  const { treeOf } = await import('tram-multicast/internal/cli/status-view.js');
  heading('Atomic multicast, in ten seconds');
  say(INTRODUCTION.trimEnd());
  say('');
  for (const { group, label } of treeOf(SHAPES.base(GROUPS))) {
    say(`  ${label.padEnd(14)}${paint('dim', PATH[group] ?? '')}`.trimEnd());
  }
  say(`\nEach group has ${HOSTS} replicas, one on each of ${HOSTS} threads.`);
  const load = `${CLIENTS} clients send ${count(MESSAGES_PER_SECOND, 'message')} per second`;
  say(`${load}, to 1 to ${GROUPS} groups each.\n`);
}

// --- the story ---------------------------------------------------------------------------------

/** What happened, for the figures. Times count from the start of the load. */
interface Story {
  readonly answered: readonly Answered[];
  readonly seconds: number;
  readonly crash: Crash;
  /** From the restart until all its replicas were members again. */
  readonly recoveredMs: number;
}

interface Crash {
  readonly host: number;
  readonly atMs: number;
  /** The groups that it led, and the time until each had another leader, if it had one by the end. */
  readonly takeovers: readonly { readonly group: number; readonly afterMs: number | undefined }[];
}

/** Returns `undefined` if it was interrupted. */
async function run(
  trace: string,
  isQuiet: boolean,
  signal: AbortSignal,
): Promise<Story | undefined> {
  const { Cluster } = await import('tram-multicast/internal/cluster.js');
  const cluster = await Cluster.start({ ...OPTIONS, trace });
  try {
    const clients = await Promise.all(Array.from({ length: CLIENTS }, () => cluster.connect()));
    const story = await tellStory(cluster, clients, isQuiet, signal);
    if (!signal.aborted) await cluster.close();
    return story;
  } finally {
    await cluster.destroy();
  }
}

async function tellStory(
  cluster: Cluster,
  clients: readonly Client[],
  isQuiet: boolean,
  signal: AbortSignal,
): Promise<Story | undefined> {
  const { DemoLoad } = await import('./demo-load.js');
  const { pauseUnless } = await import('tram-multicast/internal/cli/interruption.js');
  const { demoView } = await import('./demo-view.js');
  const failures: unknown[] = [];
  const load = new DemoLoad(clients, GROUPS, MESSAGES_PER_SECOND, (error) => failures.push(error));
  const view = isQuiet
    ? undefined
    : startView(
        cluster,
        demoView(() => load.elapsedMs / 1000),
      );
  const until = (ms: number): Promise<void> => pauseUnless(signal, ms - load.elapsedMs);
  try {
    view?.tell('clients begin');
    await until(CRASH_AFTER_MS);
    if (signal.aborted) return undefined;
    const crash = await crashLeaders(cluster, load, view);
    await until(RESTART_AFTER_MS);
    if (signal.aborted) return undefined;
    const recoveredMs = await restart(cluster, crash.host, load, view);
    await until(END_AFTER_MS);
    if (signal.aborted) return undefined;
    load.stop();
    const seconds = load.elapsedMs / 1000;
    await Promise.all(clients.map((client) => client.close()));
    view?.tell('clients are done: every message is answered');
    // No message may fail: each is answered after some time.
    if (failures.length > 0) throw failures[0];
    return { answered: load.answered, seconds, crash, recoveredMs };
  } finally {
    load.stop();
    view?.end();
  }
}

/** Draws periodically from now on. */
function startView(cluster: Cluster, view: DemoView): DemoView {
  const draw = (): void => view.draw(cluster.status());
  draw();
  const timer = setInterval(draw, DRAW_EVERY_MS);
  return {
    tell: (news) => view.tell(news),
    draw,
    end: () => {
      clearInterval(timer);
      draw();
      view.end();
    },
  };
}

/** Crashes the host that leads `VICTIM_GROUP`, and observes which replicas take over. */
async function crashLeaders(
  cluster: Cluster,
  load: DemoLoad,
  view: DemoView | undefined,
): Promise<Crash> {
  const { subscribe } = await import('node:diagnostics_channel');
  const { groups } = cluster.status();
  const leadingHost = ({ leader = 0, replicas }: GroupStatus): number => replicas[leader].host;
  const host = leadingHost(groups[VICTIM_GROUP]);
  const led = groups.filter((group) => leadingHost(group) === host).map(({ group }) => group);
  const takeovers = led.map((group) => ({ group, afterMs: undefined as number | undefined }));
  const atMs = load.elapsedMs;
  subscribe('tram:leader', (message) => {
    const { group, member } = message as { group: number; member: number };
    const takeover = takeovers.find((one) => one.group === group);
    if (takeover === undefined || takeover.afterMs !== undefined) return;
    takeover.afterMs = load.elapsedMs - atMs;
    const name = paint('green', `g${group}/${member} takes over`);
    view?.tell(`${name}, ${milliseconds(takeover.afterMs)} after the crash`);
  });
  const names = led.map((group) => `g${group}`).join(', ');
  view?.tell(`${paint('red', `host ${host} crashes`)}: it led ${names}`);
  await cluster.crash(host);
  return { host, atMs, takeovers };
}

async function restart(
  cluster: Cluster,
  host: number,
  load: DemoLoad,
  view: DemoView | undefined,
): Promise<number> {
  const startedMs = load.elapsedMs;
  view?.tell(`host ${host} starts again, with empty memory`);
  await cluster.restart(host, { fresh: true });
  const tookMs = load.elapsedMs - startedMs;
  view?.tell(`${paint('green', `host ${host} is back`)} after ${milliseconds(tookMs)}`);
  return tookMs;
}

async function judgeTrace(directory: string): Promise<Verdict> {
  const { openDirectory } = await import('tram-multicast/internal/cli/trace-source.js');
  const { readTrace } = await import('tram-multicast/internal/check/trace.js');
  const { judge } = await import('tram-multicast/internal/check/judge.js');
  return judge(await readTrace((await openDirectory(directory)).chunks));
}

// --- figures -----------------------------------------------------------------------------------

interface Figures {
  readonly messages: number;
  readonly deliveries: number;
  readonly messagesPerSecond: number;
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number };
  readonly crash: {
    readonly host: number;
    readonly takeovers: readonly { readonly group: number; readonly afterMs: number | null }[];
    /** The longest latency of a message that was in flight at the crash or sent soon after. */
    readonly feltMs: number;
  };
  readonly recoveredMs: number;
}

function figuresOf({ answered, seconds, crash, recoveredMs }: Story, verdict: Verdict): Figures {
  const latencies = answered.map(({ tookMs }) => tookMs).sort((one, other) => one - other);
  const at = (percent: number): number =>
    latencies[Math.min(latencies.length - 1, Math.floor((latencies.length * percent) / 100))] ?? 0;
  const felt = answered.filter(
    ({ sentMs, tookMs }) => sentMs + tookMs >= crash.atMs && sentMs < RESTART_AFTER_MS,
  );
  return {
    messages: answered.length,
    deliveries: verdict.counts.deliveries,
    messagesPerSecond: Math.round(answered.length / seconds),
    latencyMs: { p50: rounded(at(50)), p99: rounded(at(99)), max: rounded(at(100)) },
    crash: {
      host: crash.host,
      takeovers: crash.takeovers.map(({ group, afterMs }) => ({
        group,
        afterMs: rounded(afterMs),
      })),
      feltMs: rounded(felt.reduce((most, { tookMs }) => Math.max(most, tookMs), 0)),
    },
    recoveredMs: rounded(recoveredMs),
  };
}

/** To microseconds. */
function rounded<Time extends number | undefined>(ms: Time): Time extends number ? number : null;
function rounded(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms * 1000) / 1000;
}

async function conclude(story: Story, verdict: Verdict): Promise<void> {
  const { formatVerdict } = await import('tram-multicast/internal/cli/check.js');
  const figures = figuresOf(story, verdict);
  const { latencyMs, crash } = figures;
  const times = crash.takeovers.flatMap(({ afterMs }) => afterMs ?? []);
  heading('\nFigures of this run on this machine');
  const perSecond = figures.messagesPerSecond.toLocaleString('en-US');
  say(`  ${count(figures.messages, 'message')} answered, ${perSecond} per second`);
  say(`  ${count(figures.deliveries, 'delivery', 'deliveries')} at replicas`);
  say(
    `  latency p50 ${milliseconds(latencyMs.p50)}, p99 ${milliseconds(latencyMs.p99)}, until the last destination has replied`,
  );
  say(
    `  the crash left ${count(crash.takeovers.length, 'group')} without a leader for up to ${milliseconds(Math.max(0, ...times))};`,
  );
  say(`  the message that the crash delayed most took ${milliseconds(crash.feltMs)}`);
  heading('\nThe verdict of the judge on what every replica delivered');
  process.stdout.write(formatVerdict(verdict));
  heading('\nWhat you have seen');
  process.stdout.write(CONCLUSION.slice(1));
}

// --- words -------------------------------------------------------------------------------------

function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

function heading(text: string): void {
  say(paint('bold', text));
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
