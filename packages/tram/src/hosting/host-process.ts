/**
 * The process of a host: `node host-process.js ARENA HOST [--fresh] [--plan] [--log]`, started by `Cluster.start` for
 * `memory: 'processes'` and by `tram up` and `tram restart`. With `--log` it logs events as text. With `--plan` it takes part
 * in a recovery, and gets the plan in a message.
 *
 * The process that started the cluster may end first. The hosts of a *detached* cluster then go on: clients connect to it
 * by its name, and `tram down` ends it. The hosts of any other cluster end too: the released lock of the starter shows
 * them that it has ended, however it has.
 */
import { once } from 'node:events';
import { TramError } from '../errors.js';
import type { EraPlan } from '../journal/recovery-asks.js';
import { ARENA, ARENA_STATE, HOST } from '../memory/arena.js';
import { type ArenaFile, openArenaFile } from '../memory/processes/arena-file.js';
import { ClusterContext } from './cluster-context.js';
import { failureOf, Host, type HostFailure, type HostReport } from './host.js';
import { localJournal } from './journal-start.js';
import { LeftFiles } from './left-snapshots.js';
import { OtherHosts } from './other-hosts.js';
import { pacingOf } from './pacing.js';

const [path, hostText, ...flags] = process.argv.slice(2);
const host = Number(hostText);
const isLogged = flags.includes('--log');
const log = isLogged
  ? (text: string): void => console.error(`${new Date().toISOString()} host ${host}: ${text}`)
  : (): void => undefined;

// An interrupt at the terminal is handled by the process that started us, which may close the cluster in order.
if (!isLogged) process.on('SIGINT', () => undefined);

try {
  await live(openArenaFile(path));
  process.exit(0);
} catch (error) {
  fail(error);
}

async function live(arena: ArenaFile): Promise<void> {
  const context = ClusterContext.attach(arena);
  // A stopped predecessor must not continue beside us. Its lock ends with its process.
  const line = context.map.host(host);
  arena.lockHost(host, Atomics.load(arena.words, line + HOST.pid));
  if (!arena.holdLifeline(line + HOST.lifeline))
    log('has no lifeline: others learn later if it dies');
  arena.touch();
  const names = context.map.participantsOf(host).map((replica) => context.nameOf(replica));
  log(
    `process ${process.pid} starts ${names.join(', ')}${flags.includes('--fresh') ? ' afresh' : ''}`,
  );
  const plan = flags.includes('--plan') ? await planFromStarter() : undefined;
  const running = await Host.start(context, {
    host,
    resumes: !flags.includes('--fresh'),
    pacing: pacingOf(context.config),
    report: tell,
    watch: new OtherHosts(context, arena, host),
    arena: path,
    left: new LeftFiles(arena, (text) => tell({ what: 'trouble', text })),
    journal: localJournal(context, host, plan, tell),
  });
  process.on('SIGTERM', () => running.stop());
  await running.run();
  const left = running.leave();
  if (left.length > 0) log(`has left the state of ${left.join(', ')} for its next start`);
  const isClosing = Atomics.load(arena.words, ARENA.state) === ARENA_STATE.closing;
  log(isClosing ? 'ends with its cluster' : 'ends: it was asked to by SIGTERM');
  arena.close();
}

function tell(report: HostReport): void {
  if (report.what === 'ready') log('runs');
  else if (report.what === 'trouble' || report.what === 'progress') log(report.text);
  else log(`g${report.group}/${report.member} leads its group under ballot ${report.ballot}`);
  send(report);
}

async function planFromStarter(): Promise<EraPlan> {
  const [plan] = await once(process, 'message');
  return plan;
}

/** Sends an event to the process that started this one, if it still runs. */
function send(report: HostReport | HostFailure, then: () => void = () => undefined): void {
  if (process.connected) process.send!(report, then);
  else then();
}

function fail(error: unknown): void {
  const isBug = !(error instanceof TramError);
  // The process that started us has been told and logs it itself.
  if (isBug || !process.connected || isLogged) console.error(error);
  if (isBug) process.exit(1);
  send(failureOf(error), () => process.exit(1));
}
