#!/usr/bin/env node
/**
 * The `tram-lab` command, which tests and measures TRAM. Each command registers itself from a file of its own
 * and loads what it needs inside its action, so that `tram-lab --help` stays fast.
 *
 * Data goes to stdout, everything else to stderr.
 */
import { Command } from 'commander';
import { run } from 'tram-multicast/internal/cli/run.js';
import { registerBench } from './bench.js';
import { registerChaos } from './chaos.js';
import { registerDemo } from './demo.js';
import { registerExplore } from './explore.js';
import { registerSim } from './sim.js';

const INTRODUCTION =
  'Tests and measures TRAM: a demo, a deterministic simulator with random faults, an explorer of all states ' +
  'of small clusters, benchmarks that ' +
  'compare TRAM with other systems, and chaos tests on real processes and machines.';

const EPILOGUE = `
Examples:
  Watch a cluster survive a crash of leaders:
    $ tram-lab demo

  Search for errors with random faults, on all cores:
    $ tram-lab sim --seeds 2000

  Visit all states of small scopes:
    $ tram-lab explore

  One run, which is the same on every machine, event for event:
    $ tram-lab sim --seed 7 --trace trace.jsonl

  Throughput and latency on this machine:
    $ tram-lab bench order

  Kill and stop real processes under load, and check the history:
    $ tram-lab chaos --seed 1

Exit codes:
  0    success
  1    failure
  2    wrong usage
  3    verification failed: a property is violated
  4    timeout
  130  interrupted
`;

function createProgram(): Command {
  const program = new Command('tram-lab')
    .description(INTRODUCTION)
    .helpOption('-h, --help', 'show help for a command')
    .addHelpText('after', EPILOGUE)
    .showHelpAfterError('(run with --help for usage)')
    .exitOverride();
  registerDemo(program);
  registerSim(program);
  registerExplore(program);
  registerBench(program);
  registerChaos(program);
  return program;
}

await run(createProgram(), process.argv);
