/** `tram send`: multicasts messages as a client, and prints the replies of the groups. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type Command, Option } from 'commander';
import type { Client } from '../client.js';
import { ReplyError, TramError } from '../errors.js';
import type { StallMessage } from '../hosting/stall.js';
import { configOption, nameOption, type Which } from './cluster-name.js';
import { count as counted, paint } from './colors.js';
import { ExitCode } from './exit-codes.js';
import { groupList } from './group-list.js';
import { catchInterruption } from './interruption.js';
import { integer, milliseconds } from './number-option.js';
import { readableLine, readableReplies } from './readable.js';
import type { Trouble } from './status-view.js';

interface SendFlags extends Which {
  readonly to: number[];
  readonly text?: string;
  readonly file?: string;
  readonly count: number;
  readonly timeoutMs: number;
  readonly json?: boolean;
}

interface Answer {
  /** From 1 on. */
  readonly number: number;
  readonly latencyUs: number;
  readonly replies: ReadonlyMap<number, Uint8Array>;
}

const DEFAULT_TIMEOUT_MS = 5000;
/** How many messages are under way at one time. */
const WINDOW = 32;

const HELP = `
The payload is --text, the contents of --file, or what the command reads from stdin. A reply is
printed as text if it is UTF-8 without control characters, and in hexadecimal otherwise.

After a second without a reply, the command writes to stderr which groups it waits for, and why if
it knows. A message that was sent but not answered in time may still be delivered: see
TRAM_OUTCOME_UNKNOWN in docs/errors.md.

Examples:
  $ tram send --to 1,4 --text "hello"
  $ tram send --to 0 --file order.json
  $ date | tram send --to 0,1,2,3
  $ tram send --config cluster.yaml --to 1,4 --text hello

  Some load; only the summary is shown:
    $ tram send --to 1,4 --text x --count 10000 > /dev/null

Exit codes:
  0    all groups have replied
  1    there is no such cluster, it can't be reached, or the service has failed
  2    there is no such group, the payload is too large, or the file can't be read
  4    not all groups have replied in time
  130  interrupted
`;

export function registerSend(program: Command): void {
  program
    .command('send')
    .helpGroup('Run a cluster:')
    .summary('multicast a message and print the replies')
    .description(
      'Connects to a cluster, multicasts a message to some groups, and prints their replies.',
    )
    .addOption(nameOption())
    .addOption(configOption())
    .requiredOption('--to <groups>', 'destinations, separated by commas: 1,4', groupList)
    .addOption(new Option('--text <text>', 'the payload').conflicts('file'))
    .option('--file <file>', 'read the payload from this file')
    .option('--count <n>', 'how many times to send it', integer(1, 1e9), 1)
    .option(
      '--timeout-ms <ms>',
      'how long to wait for the replies',
      milliseconds,
      DEFAULT_TIMEOUT_MS,
    )
    .option('--json', 'print one JSON object per message')
    .addHelpText('after', HELP)
    .action(async (flags: SendFlags) => {
      process.exitCode = await send(flags);
    });
}

async function send(flags: SendFlags): Promise<number> {
  const { Client } = await import('../client.js');
  const { locate } = await import('./attached.js');
  const location = await locate(flags);
  const payload = await payloadOf(flags);
  const interruption = catchInterruption();
  const stopSaying = flags.json ? () => undefined : sayStalls();
  const client = await (location.memory === 'machines'
    ? Client.join(location.config)
    : Client.connect(location.name));
  try {
    await sendAll(client, payload, flags, interruption.signal);
    await client.close();
    return ExitCode.fine;
  } catch (error) {
    client.destroy();
    if (interruption.signal.aborted) return ExitCode.interrupted;
    throw await explained(error, flags);
  } finally {
    stopSaying();
    interruption.release();
  }
}

async function payloadOf({ text, file }: SendFlags): Promise<Uint8Array> {
  if (text !== undefined) return new TextEncoder().encode(text);
  const { readFile } = await import('node:fs/promises');
  const { buffer } = await import('node:stream/consumers');
  if (file === undefined && process.stdin.isTTY) {
    process.stderr.write('reading the payload from the terminal: end it with Ctrl-D\n');
  }
  try {
    return await (file === undefined ? buffer(process.stdin) : readFile(file));
  } catch (cause) {
    const { message } = cause as Error;
    throw new TramError('TRAM_INVALID_ARGUMENT', `can't read the payload: ${message}`, { cause });
  }
}

/** Keeps up to `WINDOW` messages under way, and prints their answers in the order of sending. */
async function sendAll(
  client: Client,
  payload: Uint8Array,
  flags: SendFlags,
  signal: AbortSignal,
): Promise<void> {
  const { count, timeoutMs, to } = flags;
  const startedMs = performance.now();
  const underWay: Promise<Answer>[] = [];
  for (let number = 1; number <= count || underWay.length > 0; number++) {
    if (number <= count) {
      const sentMs = performance.now();
      const answer = client.multicast(to, payload, { timeoutMs, signal }).then((replies) => ({
        number,
        latencyUs: Math.round((performance.now() - sentMs) * 1000),
        replies,
      }));
      // When a message fails, those after it are not awaited any more.
      answer.catch(() => undefined);
      underWay.push(answer);
    }
    if (number < Math.min(count, WINDOW)) continue;
    print(await underWay.shift()!, flags);
  }
  if (count > 1) summarize(count, performance.now() - startedMs);
}

function print(answer: Answer, { json, count }: SendFlags): void {
  const { number, latencyUs, replies } = answer;
  const sorted = [...replies].sort(([one], [other]) => one - other);
  if (json) {
    const line = { number, latencyUs, replies: readableReplies(replies) };
    process.stdout.write(`${JSON.stringify(line)}\n`);
    return;
  }
  const place = count > 1 ? `${String(number).padStart(String(count).length)}  ` : '';
  const lines = sorted.map(([group, reply]) => {
    const text = readableLine(reply);
    return `${place}g${group}  ${reply.length === 0 ? paint('dim', text) : text}\n`;
  });
  process.stdout.write(lines.join(''));
}

function summarize(count: number, tookMs: number): void {
  const rate = Math.round(count / (tookMs / 1000)).toLocaleString('en-US');
  process.stderr.write(
    `${counted(count, 'message')} answered in ${(tookMs / 1000).toFixed(2)} s: ${rate} per second\n`,
  );
}

/** Adds what the memory of the cluster shows about the reason why a message was not answered. */
async function explained(error: unknown, flags: SendFlags): Promise<unknown> {
  const isUnanswered =
    error instanceof TramError &&
    (error.code === 'TRAM_OUTCOME_UNKNOWN' || error.code === 'TRAM_TIMEOUT');
  if (!isUnanswered) return error;
  const troubles = await troublesNow(flags);
  if (troubles.length === 0) return error;
  const hint = troubles.map(({ what, advice }) => `${what}: ${advice}`).join('\n  ');
  const { code, message, retry } = error;
  const options = { hint, retry, cause: error };
  return error instanceof ReplyError
    ? new ReplyError(error.code, message, error, options)
    : new TramError(code, message, options);
}

async function troublesNow(flags: SendFlags): Promise<readonly Trouble[]> {
  const { withSeen } = await import('./attached.js');
  const { read } = await import('../hosting/reading.js');
  const { troublesOf } = await import('./status-view.js');
  try {
    return await withSeen(flags, async (cluster) => troublesOf(cluster, read(cluster.context)));
  } catch (error) {
    // The cluster can't be seen any more: then the error of the message says more than this one.
    if (error instanceof TramError) return [];
    throw error;
  }
}

/** Says once for each reason why an answer takes long. @returns how to stop it */
function sayStalls(): () => void {
  let said = '';
  const say = (message: unknown): void => {
    const { missingGroups, reason } = message as StallMessage;
    const names = missingGroups.map((group) => `g${group}`).join(', ');
    const text = `waiting for ${names || 'the hosts'}${reason && `: ${reason}`}\n`;
    if (text !== said) process.stderr.write(text);
    said = text;
  };
  subscribe('tram:stalled', say);
  return () => unsubscribe('tram:stalled', say);
}
