/**
 * Is what a test needs on this machine? On a build machine it must be (`.ci/setup` installs it); elsewhere a test
 * without it is skipped, with the reason.
 */
import { spawnSync } from 'node:child_process';
import type { TestContext } from 'vitest';
import { libfabric } from '../../../src/memory/fabric/libfabric.js';

export function needLibfabric(context: TestContext): void {
  try {
    libfabric();
  } catch (error) {
    miss(context, String(error));
  }
}

/** The compiler, with libfabric's headers. */
export function needHeaders(context: TestContext): void {
  const source = '#include <rdma/fabric.h>\n';
  const { status } = spawnSync('cc', ['-E', '-'], { input: source });
  if (status !== 0) miss(context, 'no C compiler or no headers: apt-get install gcc libfabric-dev');
}

function miss(context: TestContext, reason: string): void {
  if (process.env['CI']) throw new Error(reason);
  console.warn(reason);
  context.skip(true, reason);
}
