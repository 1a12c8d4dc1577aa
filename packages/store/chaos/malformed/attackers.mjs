/**
 * A process of attackers, so that they do not hold up the client that is watched. Arguments: the path of the socket, the port, how many
 * connections say nothing, for how many seconds, the seed, and the names of the attacks. It sends its parent `attacking`, and at the end
 * its counts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../random.mjs';
import { attack, connectIdle } from './attacks.mjs';

/** Of each kind at a time. */
const ATTACKERS = 3;

const [path, port, connections, seconds, seed, ...names] = process.argv.slice(2);
const idle = await connectIdle(Number(port), Number(connections));
process.send?.('attacking');
const end = performance.now() + Number(seconds) * 1000;
/** @type {Record<string, number>} */
const counts = {};
await Promise.all(
  names.flatMap((name, i) =>
    Array.from({ length: ATTACKERS }, async (_, k) => {
      const random = new Random(Number(seed) + i * ATTACKERS + k);
      const count = await attack(name, path, random, () => performance.now() > end);
      counts[name] = (counts[name] ?? 0) + count;
    }),
  ),
);
const kept = idle.filter(
  ({ closed, destroyed, readyState }) => !closed && !destroyed && readyState === 'open',
);
counts['connections that say nothing'] = kept.length;
for (const socket of idle) socket.destroy();
await sleep(100);
process.send?.(counts);
process.disconnect?.();
