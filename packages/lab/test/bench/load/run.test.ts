/** The process of a load never outlives its measurement, even if it could not exit by itself. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type * as TramModule from '../../../src/bench/systems/tram.js';

const built = new URL('../../../dist/bench/systems/tram.js', import.meta.url).href;
const { tram }: typeof TramModule = await import(built);

/** The processes that run loads for this process. */
function loads(): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      const [, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      return parent === String(process.pid) && command.includes('bench/load/worker.js');
    } catch {
      // Not a process, or one that has ended meanwhile.
      return false;
    }
  });
}

test('its process has ended when the measurement is there', async () => {
  const setup = { groups: 1, replicas: 1, clientsMax: 1, outstandingMax: 8, payloadBytesMax: 64 };
  const running = await tram({ tree: 'base', memory: 'processes' }).start(setup);
  try {
    const load = { clients: 1, outstanding: 8, payloadBytes: 64, sets: [{ low: 1, high: 0 }] };
    const measuring = running.measure({ ...load, warmUpSeconds: 0.05, seconds: 0.05 });
    expect(loads()).toHaveLength(1);
    await measuring;
    expect(loads()).toEqual([]);
  } finally {
    await running.close();
  }
});
