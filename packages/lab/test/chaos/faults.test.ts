/** How faults are injected: restarts that TRAM would refuse. */
import { expect, test } from 'vitest';
import { TramError } from '../../../tram/test/built.js';

const { Faults } = (await import(new URL('../../chaos/faults.mjs', import.meta.url).href)) as {
  Faults: new (cluster: object, clients: object, log: () => void) => Restarting;
};

interface Restarting {
  restart(host: number, fresh: boolean): Promise<void>;
}

test('hosts are restarted with empty memory one at a time, also after one that fails', async () => {
  const underWay: number[] = [];
  const most: number[] = [];
  const restart = async (host: number) => {
    underWay.push(host);
    most.push(underWay.length);
    await new Promise((resolve) => setTimeout(resolve, 1));
    underWay.splice(underWay.indexOf(host), 1);
    if (host === 0) throw new Error('it was killed again');
  };
  const faults = new Faults({ restart }, {}, () => undefined);
  const restarts = [0, 1, 2].map((host) => faults.restart(host, true));
  const outcomes = await Promise.allSettled(restarts);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  expect(most).toEqual([1, 1, 1]);
});

test('a restart with empty memory is tried again while others have to fetch the state', async () => {
  let refusals = 0;
  const restart = async () => {
    if (refusals < 2) throw new TramError('TRAM_LAST_COPY', `refused ${++refusals} times`);
  };
  await new Faults({ restart }, {}, () => undefined).restart(0, true);
  expect(refusals).toBe(2);
});
