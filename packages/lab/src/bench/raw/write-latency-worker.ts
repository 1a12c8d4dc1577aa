/** One side of `write-latency.ts`: the writer, or the thread of all targets. */
import { parentPort, workerData } from 'node:worker_threads';
import { ClusterContext } from 'tram-multicast/internal/hosting/cluster-context.js';
import { OPEN } from 'tram-multicast/internal/memory/contract.js';
import type { SharedMemory } from 'tram-multicast/internal/memory/shared.js';
import { threadsArena } from 'tram-multicast/internal/memory/threads.js';
import type { WriteJob, WriteLatency } from './write-latency.js';

/** The guard that all targets permit. */
const GUARD = 1;
/** The place of the record in a target's region. */
const RECORD_AT = 64;
/** The place of acknowledgements in the writer's region, each in a pair of cache lines of its own. */
const ACKNOWLEDGEMENTS_AT = 64;
const APART_WORDS = 32;
/** A record's first word is its number; this number ends the stream. */
const END = -1;
const TAG = 1;
/** Repetitions between two reads of the clock. */
const BLOCK = 20;

class Writer {
  private readonly memory: SharedMemory;
  private readonly record: Int32Array;
  private readonly words: number;
  private number = 0;

  constructor(
    context: ClusterContext,
    private readonly job: WriteJob,
  ) {
    const { layout } = context;
    this.memory = context.memory(layout.clientParticipant(0));
    this.words = Math.ceil(job.recordBytes / 4);
    this.record = this.memory.scratch(this.words);
  }

  /** @returns the duration of a repetition, for each block */
  writeFor(seconds: number): number[] {
    const blocksNs: number[] = [];
    const endMs = performance.now() + seconds * 1000;
    let beforeMs = performance.now();
    do {
      for (let i = 0; i < BLOCK; i++) this.writeToAll();
      const nowMs = performance.now();
      blocksNs.push(((nowMs - beforeMs) * 1e6) / BLOCK);
      beforeMs = nowMs;
    } while (beforeMs < endMs);
    return blocksNs;
  }

  end(): void {
    this.record[0] = END;
    for (let target = 0; target < this.job.targets; target++) this.post(target);
  }

  private writeToAll(): void {
    const { targets, isTogether } = this.job;
    this.number = (this.number + 1) & 0x7fffffff;
    this.record[0] = this.number;
    for (let target = 0; target < targets; target++) {
      this.post(target);
      if (!isTogether) this.await(target);
    }
    if (!isTogether) return;
    for (let target = 0; target < targets; target++) this.await(target);
  }

  private post(target: number): void {
    this.memory.write(target, RECORD_AT, this.record, 0, this.words, GUARD, TAG);
  }

  private await(target: number): void {
    const { memory, number } = this;
    while (!memory.poll());
    if (memory.completion.outcome !== 'ok') throw new Error('a write was refused');
    if (this.job.awaits === 'completion') return;
    const at = ACKNOWLEDGEMENTS_AT + target * APART_WORDS;
    while (Atomics.load(memory.own, at) !== number);
  }
}

function write(context: ClusterContext, job: WriteJob): WriteLatency {
  const writer = new Writer(context, job);
  writer.writeFor(job.warmUpSeconds);
  const blocksNs = writer.writeFor(job.seconds).sort((a, b) => a - b);
  writer.end();
  return { latencyNsP50: blocksNs[blocksNs.length >> 1] };
}

/** Acknowledges records until every target has seen the end. */
function acknowledge(context: ClusterContext, { targets }: WriteJob): void {
  const writer = context.layout.clientParticipant(0);
  const memories = Array.from({ length: targets }, (_, target) => context.memory(target));
  const seen = new Int32Array(targets);
  const word = new Int32Array(1);
  for (let ended = 0; ended < targets; ) {
    for (let target = 0; target < targets; target++) {
      const memory = memories[target];
      const number = Atomics.load(memory.own, RECORD_AT);
      if (number === seen[target]) continue;
      seen[target] = number;
      if (number === END) ended++;
      word[0] = number;
      const to = ACKNOWLEDGEMENTS_AT + target * APART_WORDS;
      memory.write(writer, to, word, 0, 1, OPEN, 0);
    }
  }
}

const job = workerData as WriteJob;
const context = ClusterContext.attach(threadsArena(job.address));
for (let target = 0; target < job.targets; target++) context.memory(target).permit(GUARD);
parentPort!.postMessage(job.role === 'write' ? write(context, job) : acknowledge(context, job));
