import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = fileURLToPath(new URL('./packages/tram/src', import.meta.url));

/** Tests that start clusters and mostly wait for them. Two files run at a time. */
const CLUSTERS = [
  'packages/tram/test/{attached-cluster,deferred-replies,documents,package,services}.test.ts',
  'packages/{lab,tram}/test/cli/**/*.test.ts',
  'packages/tram/test/hosting/{leaders,orderly-stop,rejoin,rolling-restart}.test.ts',
  'packages/tram/test/hosting/{stall,stray-errors,supervisor}.test.ts',
  'packages/tram/test/hosting/machines/{machine,operator,outdated,replaced}.test.ts',
];

/** Tests that keep threads, processes or machines busy. They need the cores for themselves, so they run one at a time. */
const ALONE = [
  'packages/tram/test/cluster.test.ts',
  'packages/tram/test/memory/fabric/**/*.test.ts',
  'packages/tram/test/memory/machines/network.test.ts',
  'packages/lab/test/{bench,chaos,contract,litmus}/**/*.test.ts',
];

/** Tests of one thread that run many seeds. */
const SEEDS = [
  'packages/lab/test/baselines/{passing/protocols,ramcast/replica}.test.ts',
  'packages/lab/test/protocol/suspicion.test.ts',
  'packages/lab/test/sim/{seeds,mutations,judged,errata}.test.ts',
];

const TESTS = 'packages/*/test/**/*.test.ts';

export default defineConfig({
  resolve: {
    // The lab's tests run on the library's sources, not on the last build.
    alias: [
      { find: /^tram-multicast$/, replacement: `${source}/index.ts` },
      { find: /^tram-multicast\/check$/, replacement: `${source}/check/index.ts` },
      { find: /^tram-multicast\/internal\/(.*)\.js$/, replacement: `${source}/$1.ts` },
    ],
  },
  test: {
    testTimeout: 60_000,
    // Built files import the built library: Node resolves their imports, not the aliases above.
    server: { deps: { external: [/\/packages\/\w+\/dist\//] } },
    projects: [
      {
        extends: true,
        test: {
          name: 'quick',
          include: [TESTS],
          exclude: [...CLUSTERS, ...ALONE, ...SEEDS],
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: 'seeds', include: SEEDS, maxWorkers: 2, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: { name: 'clusters', include: CLUSTERS, maxWorkers: 2, sequence: { groupOrder: 2 } },
      },
      {
        extends: true,
        test: { name: 'alone', include: ALONE, maxWorkers: 1, sequence: { groupOrder: 3 } },
      },
    ],
  },
});
