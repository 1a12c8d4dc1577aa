/** Where libfabric is not installed, the error says how to install it. */
import { expect, test } from 'vitest';
import { Libfabric } from '../../../src/memory/fabric/libfabric.js';
import type { Koffi } from '../../../src/memory/koffi.js';

test('a missing library is told with the command that installs it', () => {
  const koffi = {
    load: (path: string | null) => {
      if (path !== null) throw new Error('cannot open shared object file');
      return { func: () => () => 0 };
    },
  } as unknown as Koffi;
  expect(() => new Libfabric(koffi)).toThrow(
    expect.objectContaining({
      code: 'TRAM_FABRIC_MISSING',
      hint: 'apt-get install libfabric1',
    }),
  );
});
