/**
 * Tests on machines made of network namespaces need root and iproute2. On a build machine that runs as root they must be
 * possible (`.ci/setup` installs what they need); elsewhere the tests are skipped, with the reason.
 */
import type { TestContext } from 'vitest';
import { Machines } from '../../chaos/namespaces.mjs';

const reason = Machines.missing();
export const hasMachines: boolean = reason === undefined;

if (reason !== undefined) console.warn(reason);

export function needMachines(context: TestContext): void {
  if (reason !== undefined && process.getuid?.() === 0 && process.env['CI']) {
    throw new Error(reason);
  }
  context.skip(reason !== undefined, reason);
}
