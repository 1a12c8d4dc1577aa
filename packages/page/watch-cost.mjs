/**
 * Measures what `tram watch` costs a cluster of 64 groups of three replicas: throughput with and without a watcher, in turns,
 * within one run. The watcher is stopped (SIGSTOP) in between, so that both have the same cluster and the same compiled code.
 * `node packages/page/watch-cost.mjs [rounds]` on a machine that does nothing else.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { cpuSecondsOf } from 'tram-lab/dist/bench/load/cpu.js';
import { mixedSets } from 'tram-lab/dist/bench/load/destinations.js';
import { startTram } from 'tram-lab/dist/bench/systems/tram.js';
import { Overlay, SHAPES } from 'tram-multicast/internal/protocol/overlay.js';

const GROUPS = 64;
const TRAM = fileURLToPath(new URL('../tram/dist/cli/main.js', import.meta.url));
const LOAD = { clients: 2, outstanding: 64, payloadBytes: 64, warmUpSeconds: 0.4 };
/** One look of the watcher falls into each. */
const WINDOW_S = 0.5;

const rounds = Number(process.argv[2] ?? 45);
const sets = mixedSets(new Overlay(SHAPES.base(GROUPS)));
const setup = {
  groups: GROUPS,
  replicas: 3,
  clientsMax: 2,
  outstandingMax: 64,
  payloadBytesMax: 64,
};
const name = `watch-cost-${process.pid}`;
const cluster = await startTram({ tree: 'base', memory: 'processes', hosts: 3, name }, setup);
const watcher = spawn(process.execPath, [TRAM, 'watch', '--name', name, '--port', '0', '--json']);
const [printed] = await once(watcher.stdout, 'data');
const response = await fetch(new URL('/api/events', JSON.parse(printed).url));
let bytes = 0;
const reading = (async () => {
  for await (const chunk of response.body) bytes += chunk.length;
})().catch(() => undefined);

const rates = { without: [], with: [] };
let watcherSeconds = 0;
const load = cluster.measure({ ...LOAD, seconds: 2 + 2 * rounds * WINDOW_S, sets });
await pause(2);
for (let round = 0; round < rounds; round++) {
  const order = round % 2 === 0 ? ['without', 'with'] : ['with', 'without'];
  for (const which of order) {
    watcher.kill(which === 'with' ? 'SIGCONT' : 'SIGSTOP');
    const usedBefore = cpuSecondsOf(watcher.pid);
    const before = progress();
    await pause(WINDOW_S);
    const after = progress();
    rates[which].push(((after.answered - before.answered) * 1000) / (after.atMs - before.atMs));
    if (which === 'with') watcherSeconds += cpuSecondsOf(watcher.pid) - usedBefore;
  }
}
await load;
watcher.kill('SIGKILL');
await reading;
await cluster.close();

const watchedSeconds = rounds * WINDOW_S;
const ratios = rates.with.map((rate, round) => rate / rates.without[round]);
console.log(
  `without: ${perSecond(rates.without)}, with: ${perSecond(rates.with)} (medians of ${rounds})`,
);
console.log(
  `with / without: median ${median(ratios).toFixed(3)}, half of them from ${part(ratios, 0.25).toFixed(3)} to ${part(ratios, 0.75).toFixed(3)}`,
);
console.log(
  `the watcher used ${((100 * watcherSeconds) / watchedSeconds).toFixed(1)} % of a core, and sent ${Math.round(bytes / 1000 / watchedSeconds)} kB/s`,
);

function progress() {
  const { answered } = cluster.status();
  return { answered, atMs: performance.now() };
}

function pause(seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

function part(values, below) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * below)];
}

function median(values) {
  return part(values, 0.5);
}

function perSecond(values) {
  return `${Math.round(median(values)).toLocaleString('en-US')} messages a second`;
}
