/** Bare writes are measured, to a target that spins and to one that waits. */
import { expect, test } from 'vitest';
import { needLibfabric } from '../../../../tram/test/memory/fabric/present.js';
import type * as BareFabricModule from '../../../src/bench/raw/bare-fabric.js';

const built = new URL('../../../dist/bench/raw/bare-fabric.js', import.meta.url).href;

test('all figures are measured', async (context) => {
  needLibfabric(context);
  const { measureBareFabric }: typeof BareFabricModule = await import(built);
  const { spinning, waiting } = await measureBareFabric({ writes: 100 });
  for (const figure of [...Object.values(spinning), ...Object.values(waiting)]) {
    expect(figure).toBeGreaterThan(0);
  }
});
