/** Stages on shared memory: worker threads over a SharedArrayBuffer, node processes over a mapped file. */
import { Worker } from 'node:worker_threads';
import {
  type Arena,
  HOST,
  HOST_STATE,
  withHostState,
} from 'tram-multicast/internal/memory/arena.js';
import type { ParticipantId } from 'tram-multicast/internal/memory/contract.js';
import {
  type ArenaFile,
  arenaPath,
  createArenaFile,
  removeArenaFile,
} from 'tram-multicast/internal/memory/processes/arena-file.js';
import { threadsArena } from 'tram-multicast/internal/memory/threads.js';
import type { SharedStage } from './stage.js';
import {
  COUNTERPART,
  forkCounterpart,
  type Line,
  RealStage,
  SHAPE,
  writeArenaHeader,
} from './stage-real.js';

abstract class OneArenaStage extends RealStage implements SharedStage {
  abstract readonly arena: Arena;

  word(participant: ParticipantId, at: number): number {
    return Atomics.load(this.arena.words, this.map.region(participant) + at);
  }

  noteEnd(participant: ParticipantId): void {
    const at = this.map.host(this.map.hostOf(participant)) + HOST.state;
    const state = Atomics.load(this.arena.words, at);
    Atomics.store(this.arena.words, at, withHostState(state, HOST_STATE.ended));
  }
}

export class ThreadsStage extends OneArenaStage {
  readonly arena: Arena;
  private readonly buffer: SharedArrayBuffer;

  constructor(seed: number) {
    super(seed);
    this.buffer = new SharedArrayBuffer(this.map.words * 4);
    this.arena = threadsArena(this.buffer);
  }

  protected call(participant: ParticipantId, resumes: boolean): Line {
    const workerData = {
      mode: 'threads',
      buffer: this.buffer,
      shape: SHAPE,
      id: participant,
      resumes,
    };
    const worker = new Worker(COUNTERPART, { workerData });
    let why = 'the thread was terminated';
    worker.on('error', (error) => {
      why = String(error.stack);
    });
    return {
      send: (message) => worker.postMessage(message),
      onMessage: (listener) => worker.on('message', listener),
      onEnd: (listener) => worker.on('exit', () => listener(why)),
      kill: () => void worker.terminate(),
      signal: () => {
        throw new Error('a thread takes no signals');
      },
      pid: 0,
    };
  }
}

export class ProcessesStage extends OneArenaStage {
  readonly arena: ArenaFile;
  private static count = 0;

  constructor(seed: number) {
    super(seed);
    const path = arenaPath(`contract-${process.pid}-${ProcessesStage.count++}`);
    this.arena = createArenaFile(path, this.map.words);
    writeArenaHeader(this.arena.words);
  }

  protected call(id: ParticipantId, resumes: boolean): Line {
    const { path } = this.arena;
    return forkCounterpart({ mode: 'processes', path, shape: SHAPE, id, resumes });
  }

  override noteEnd(participant: ParticipantId): void {
    const host = this.map.hostOf(participant);
    if (this.arena.isHostLocked(host)) throw new Error(`host ${host} still holds its lock`);
    super.noteEnd(participant);
  }

  override async close(): Promise<void> {
    await super.close();
    this.arena.close();
    removeArenaFile(this.arena.path);
  }
}
