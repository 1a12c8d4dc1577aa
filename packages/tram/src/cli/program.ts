/**
 * All commands of `tram`. Each command registers itself from a file of its own and loads what it needs
 * inside its action, so that `tram --help` stays fast.
 *
 * Data goes to stdout, everything else to stderr.
 */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { FORMAT_VERSION } from '../journal/format.js';
import { ARENA_VERSION } from '../memory/arena.js';
import { registerBackup } from './backup.js';
import { registerCheck } from './check.js';
import { registerDown } from './down.js';
import { registerHost } from './host.js';
import { registerJournal } from './journal.js';
import { registerKill } from './kill.js';
import { registerLead } from './lead.js';
import { registerRecover } from './recover.js';
import { registerRestart } from './restart.js';
import { registerRestore } from './restore.js';
import { registerSecret } from './secret.js';
import { registerSend } from './send.js';
import { registerStatus } from './status.js';
import { registerTail } from './tail.js';
import { registerUp } from './up.js';
import { registerWatch } from './watch.js';

const INTRODUCTION =
  'TRAM delivers messages to groups of replicas. A message may be addressed to several groups, and ' +
  'any two replicas deliver the messages that they have in common in the same order. The groups ' +
  'form a tree. A message enters at the lowest common ancestor of its destinations, and involves ' +
  'only the groups on its way down.';

const EPILOGUE = `
Examples:
  Start a cluster of processes, use it, kill a host and start it again, and end the cluster:
    $ tram up
    $ tram send --to 1,4 --text hello
    $ tram status
    $ tram kill g1/0 && tram send --to 1,4 --text "still here"
    $ tram restart g1/0
    $ tram down

  Check a recorded history against the properties of atomic multicast:
    $ tram check trace.jsonl

  The same for programs, with the history from a pipe:
    $ cat trace.jsonl | tram check - --json

  Use the verdict in a script (exit code 3: a property is violated):
    $ tram check trace.jsonl > verdict.txt || echo "failed with exit code $?"

Errors go to stderr: a message and a hint. With --json an error is one line with a JSON object:
  {"error":{"code":"TRAM_NOT_FOUND","message":"…","hint":"…","retry":"safe"}}

Exit codes:
  0    success
  1    failure
  2    wrong usage, or an input that can't be read
  3    verification failed: a property is violated
  4    timeout
  5    tram host: another machine asked it to restart
  130  interrupted
`;

export function createProgram(): Command {
  const program = new Command('tram')
    .description(INTRODUCTION)
    .version(
      version(),
      '--version',
      'print the version, the memory version, and the format of journals',
    )
    .helpOption('-h, --help', 'show help for a command')
    .addHelpText('after', EPILOGUE)
    .showHelpAfterError('(run with --help for usage)')
    .exitOverride();
  registerUp(program);
  registerStatus(program);
  registerWatch(program);
  registerSend(program);
  registerTail(program);
  registerDown(program);
  registerRecover(program);
  registerJournal(program);
  registerHost(program);
  registerSecret(program);
  registerKill(program);
  registerRestart(program);
  registerLead(program);
  registerBackup(program);
  registerRestore(program);
  registerCheck(program);
  return program;
}

function version(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string };
  return `${version} (memory version ${ARENA_VERSION}, journal format ${FORMAT_VERSION})`;
}
