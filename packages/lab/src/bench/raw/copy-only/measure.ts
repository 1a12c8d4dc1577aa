/**
 * Measures the copy-only loop: the throughput and the latency of the copies that TRAM needs for the same messages, with
 * nothing else. It is the limit that `tram-lab bench order` prints beside TRAM's figures. One thread or process has the
 * clients, another one all leaders.
 */
import { inlineGenerously } from 'tram-multicast/internal/hosting/v8-flags.js';
import { type RawMemory, runPair, TurnWaiter } from '../pair.js';
import { Clients } from './clients.js';
import { Copier } from './copier.js';
import { Leaders } from './leaders.js';
import { type CopyLoad, Plan } from './plan.js';

export interface CopyOnlyOptions extends CopyLoad {
  readonly memory: RawMemory;
  readonly seconds: number;
}

export interface CopyOnly {
  readonly messagesPerSecond: number;
  /** From the offer of a message to its last reply. */
  readonly latencyNsP50: number;
}

export type CopyJob = CopyClientsJob | CopyLeadersJob;

interface CopyClientsJob {
  readonly role: 'copyClients';
  readonly load: CopyLoad;
  readonly seconds: number;
}

interface CopyLeadersJob {
  readonly role: 'copyLeaders';
  readonly load: CopyLoad;
}

const WARM_UP_MS = 300;
/** Turns without work between two looks at the word that ends the loop. */
const TURNS_PER_LOOK = 64;

export async function measureCopyOnly(options: CopyOnlyOptions): Promise<CopyOnly> {
  const { memory, seconds, ...load } = options;
  const result = await runPair(memory, new Plan(load).words, [
    { role: 'copyClients', load, seconds },
    { role: 'copyLeaders', load },
  ]);
  return result as CopyOnly;
}

export function runCopyClients(words: Int32Array, { load, seconds }: CopyClientsJob): CopyOnly {
  inlineGenerously();
  const clients = new Clients(new Copier(words), new Plan(load));
  runFor(clients, WARM_UP_MS);
  const before = clients.answered;
  const startMs = clients.nowMs;
  clients.latency.reset();
  runFor(clients, seconds * 1000);
  const messages = clients.answered - before;
  const elapsedMs = clients.nowMs - startMs;
  const latencyNsP50 = clients.latency.percentile(50);
  clients.stop();
  const waiter = new TurnWaiter();
  while (clients.outstanding > 0) waiter.note(clients.step());
  Atomics.store(words, clients.plan.stopAt, 1);
  return { messagesPerSecond: (messages * 1000) / elapsedMs, latencyNsP50 };
}

function runFor(clients: Clients, durationMs: number): void {
  const untilMs = clients.nowMs + durationMs;
  const waiter = new TurnWaiter();
  while (clients.nowMs < untilMs) waiter.note(clients.step());
}

export function runCopyLeaders(words: Int32Array, { load }: CopyLeadersJob): void {
  inlineGenerously();
  const plan = new Plan(load);
  const leaders = new Leaders(new Copier(words), plan);
  const waiter = new TurnWaiter();
  for (let turn = 1; ; turn++) {
    const work = leaders.step();
    waiter.note(work);
    if (work > 0 || turn % TURNS_PER_LOOK > 0) continue;
    if (Atomics.load(words, plan.stopAt) === 1) return;
  }
}
