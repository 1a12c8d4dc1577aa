/**
 * The other thread or the other process of the contract suite. It maps the arena, begins a life as the
 * process that it is told, and then does what it is asked: a single thing, or a player in a tight loop.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import {
  ArenaMap,
  HOST,
  HOST_STATE,
  nextHostLife,
  PROCESS,
  withHostState,
} from '../../dist/memory/arena.js';
import { Layout } from '../../dist/memory/layout.js';
import { native } from '../../dist/memory/native.js';
import { openArenaFile } from '../../dist/memory/processes.js';
import { beginLife, SharedMemory } from '../../dist/memory/shared.js';
import { threadsArena } from '../../dist/memory/threads.js';
import { DONE, newPlayer, newPuppet } from './play.mjs';

/** Idle steps before somebody else may run on this core. */
const IDLE_STEPS_MAX = 2000;
/** A tight loop hears nothing; so now and then it looks whether anybody is left who waits for it. */
const STEPS_PER_LOOK = 1 << 20;

const isThread = parentPort !== null;
const { buffer, path, shape, id, resumes } = isThread ? workerData : JSON.parse(process.argv[2]);
const arena = isThread ? threadsArena(buffer) : openArenaFile(path);
const scratchWords = () => shape.scratchWords;
const layout = Object.assign(new Layout(shape.sizes), { scratchWords });
const map = new ArenaMap(layout, shape.hosts, 0, 0);
const { words } = arena;

const line = map.host(map.hostOf(id));
if (!isThread) arena.lockHost(map.hostOf(id), words[line + HOST.pid]);
Atomics.store(words, line + HOST.pid, process.pid);
Atomics.store(words, line + HOST.state, nextHostLife(words[line + HOST.state]));
const incarnation = beginLife(arena, map, id, resumes);
Atomics.store(
  words,
  line + HOST.state,
  withHostState(words[line + HOST.state], HOST_STATE.running),
);

const memory = new SharedMemory(id, arena, map);
const puppet = newPuppet(memory);
const permissionAt = (peer) => map.process(peer) + PROCESS.permission;
const context = {
  permissionOf: (peer) => Atomics.load(words, permissionAt(peer)),
  permissionPlainly: (peer) => words[permissionAt(peer)],
  arena,
  map,
};

const isLinux = process.platform === 'linux';
const word = new Int32Array(new SharedArrayBuffer(4));
/** Let others run: we may be more than there are cores. */
const relax = isLinux ? native().yieldProcessor : () => Atomics.wait(word, 0, 0, 0.05);

/** Those who race must not take turns on one core, as a kernel has it that is busy otherwise. */
function takeCore(which) {
  const [, list] = /Cpus_allowed_list:\s*(.*)/.exec(
    readFileSync('/proc/thread-self/status', 'utf8'),
  );
  const cores = list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
  const core = cores[which % cores.length];
  const mask = new Uint8Array(128);
  mask[core >> 3] = 1 << (core & 7);
  const libc = createRequire(import.meta.url)('koffi').load(null);
  libc.func('sched_setaffinity', 'int', ['int', 'size_t', 'void *'])(0, mask.length, mask);
}
if (isLinux) takeCore(id);

const parent = process.ppid;

function play(name, options) {
  const player = newPlayer(name, memory, options, context);
  let idle = 0;
  for (let steps = 1; ; steps++) {
    const did = player.step();
    if (did === DONE) return player.result();
    if (steps % STEPS_PER_LOOK === 0 && process.ppid !== parent) process.exit(1);
    idle = did === 0 ? idle + 1 : 0;
    if (idle < IDLE_STEPS_MAX) continue;
    relax();
    idle = 0;
  }
}

const jobs = { ...puppet, play };

function answer({ call, job, args }) {
  try {
    return { call, value: jobs[job](...args) };
  } catch (error) {
    return { call, error };
  }
}

if (isThread) {
  parentPort.on('message', (message) => parentPort.postMessage(answer(message)));
  parentPort.postMessage({ incarnation });
} else {
  process.on('message', (message) => process.send(answer(message)));
  process.send({ incarnation });
}
