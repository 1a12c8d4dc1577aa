/**
 * A participant of the contract suite in a thread, a process, or a host of its own. Started by `stage-real.ts`. It maps its
 * arena, begins an incarnation of the given participant, and then executes jobs: a single action, or a player in a tight loop.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import {
  ArenaMap,
  HOST,
  HOST_STATE,
  nextHostStart,
  PARTICIPANT,
  withHostState,
} from 'tram-multicast/internal/memory/arena.js';
import { openArenaFile } from 'tram-multicast/internal/memory/processes/arena-file.js';
import { native } from 'tram-multicast/internal/memory/processes/native.js';
import { beginIncarnation, SharedMemory } from 'tram-multicast/internal/memory/shared.js';
import { threadsArena } from 'tram-multicast/internal/memory/threads.js';
import { Layout } from 'tram-multicast/internal/protocol/layout.js';
import { DONE, newPlayer, newPuppet } from './play.mjs';
import { NO_WIRE, openWire } from './wire.mjs';

const settings = parentPort !== null ? workerData : JSON.parse(process.argv[2]);
const { mode, shape, id, resumes } = settings;
const scratchWords = () => shape.scratchWords;
const layout = Object.assign(new Layout(shape.sizes), { scratchWords });
const map = new ArenaMap(layout, shape.hosts, 0, 0, shape.placement, 0, shape.parcelWords);
/** With `memory: 'machines'`, the arenas of all hosts: only planted bugs use those of others. */
const arenas = mode === 'machines' ? settings.paths.map(openArenaFile) : [];
const arena = openArena();
const { words } = arena;

function openArena() {
  if (mode === 'threads') return threadsArena(settings.buffer);
  return mode === 'machines' ? arenas[map.hostOf(id)] : openArenaFile(settings.path);
}

const line = map.host(map.hostOf(id));
if (mode !== 'threads') arena.lockHost(map.hostOf(id), words[line + HOST.pid]);
Atomics.store(words, line + HOST.pid, process.pid);
Atomics.store(words, line + HOST.state, nextHostStart(words[line + HOST.state]));
const incarnation = beginIncarnation(arena, map, id, resumes);
Atomics.store(
  words,
  line + HOST.state,
  withHostState(words[line + HOST.state], HOST_STATE.running),
);

const wire = mode === 'machines' ? openWire(settings, map, arena) : NO_WIRE;
const memory = wire.network?.memory(id) ?? new SharedMemory(id, arena, map);
const puppet = newPuppet(memory);
const permissionAt = (peer) => map.participant(peer) + PARTICIPANT.permission;
const wordsWith = (peer) => (arenas[map.hostOf(peer)] ?? arena).words;
const context = {
  permissionOf: (peer) => Atomics.load(wordsWith(peer), permissionAt(peer)),
  permissionPlainly: (peer) => wordsWith(peer)[permissionAt(peer)],
  arena,
  map,
};

const isLinux = process.platform === 'linux';
const word = new Int32Array(new SharedArrayBuffer(4));
/** Yields the core: there may be more participants than cores. */
const relax = isLinux ? native().yieldProcessor : () => Atomics.wait(word, 0, 0, 0.05);

/** Pins each participant to a core: on a busy machine the kernel might run racing participants on one core in turn. */
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
/** Idle steps before the core is yielded. With `memory: 'machines'` each step is long. */
const idleStepsMax = mode === 'machines' ? 10 : 2000;
/** A tight loop receives no messages, so it checks from time to time whether its parent still runs. */
const stepsPerLook = mode === 'machines' ? 1 << 14 : 1 << 20;

function play(name, options) {
  const player = newPlayer(name, memory, options, context);
  let idle = 0;
  for (let steps = 1; ; steps++) {
    wire.poll();
    const did = player.step();
    wire.flush();
    if (did === DONE) return player.result();
    if (steps % stepsPerLook === 0 && process.ppid !== parent) process.exit(1);
    idle = did === 0 ? idle + 1 : 0;
    if (idle < idleStepsMax) continue;
    relax();
    idle = 0;
  }
}

const jobs = { ...puppet, play };

function answer({ call, job, args, isHeldUp }) {
  try {
    const value = jobs[job](...args);
    wire.settle(isHeldUp);
    return { call, value };
  } catch (error) {
    return { call, error };
  }
}

const send = (message) =>
  parentPort === null ? process.send(message) : parentPort.postMessage(message);

await wire.meet(settings.meets);
(parentPort ?? process).on('message', (message) => send(answer(message)));
process.on('disconnect', () => process.exit(1));
send({ incarnation });
wire.serve();
