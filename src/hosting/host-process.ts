/**
 * The process of a host: `node host-process.js ARENA HOST [--fresh]`, started by `Cluster.start` for
 * `memory: 'processes'` and by `tram up` and `tram restart`.
 */
import {
  ARENA,
  ARENA_STATE,
  HOST,
  HOST_STATE,
  hostStateOf,
  withHostState,
} from '../memory/arena.js';
import { type ArenaFile, openArenaFile } from '../memory/processes.js';
import type { Agent } from '../runtime/duty.js';
import { Commons } from './commons.js';
import { Host } from './host.js';
import { pacingOf } from './pacing.js';

const [path, hostText, freshness] = process.argv.slice(2);
const host = Number(hostText);
const arena = openArenaFile(path!);
const commons = Commons.attach(arena);

// A predecessor that is merely paused must not wake up beside us; the lock ends with the process.
arena.lockHost(host, Atomics.load(arena.words, commons.map.host(host) + HOST.pid));

const running = await Host.start(commons, {
  host,
  resumes: freshness !== '--fresh',
  pacing: pacingOf(commons.config),
  report: (report) => process.send?.(report),
  watch: watchOthers(arena, commons, host),
});
process.on('SIGTERM', () => running.stop());
// Whoever started a cluster and dies leaves it running: it can be attached to, and taken down.
process.on('disconnect', () => undefined);
await running.run();
if (Atomics.load(arena.words, ARENA.state) === ARENA_STATE.closing) process.disconnect?.();
arena.close();
process.exit(0);

/** A lock that is gone tells at once that its process is. */
function watchOthers(file: ArenaFile, { map }: Commons, self: number): Agent {
  const { words } = file;
  return {
    doWork: () => {
      for (let other = 0; other < map.hosts; other++) {
        const at = map.host(other) + HOST.state;
        const state = Atomics.load(words, at);
        if (other === self || hostStateOf(state) !== HOST_STATE.running) continue;
        if (file.isHostLocked(other)) continue;
        Atomics.compareExchange(words, at, state, withHostState(state, HOST_STATE.ended));
      }
      return 0;
    },
  };
}
