import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const packages = fileURLToPath(new URL('./packages/', import.meta.url));

/**
 * The lab's tests run on the build, of the library as well. They need it anyway, for mutants and processes, and the modules
 * that Vitest transforms are half as fast as those that Node loads. A store that is started is the built one, because hosts load its
 * service.
 */
const asBuilt: Plugin = {
  name: 'as-built',
  enforce: 'pre',
  resolveId: (id, importer) => {
    if (!id.startsWith('.') || importer === undefined) return undefined;
    const path = resolve(dirname(importer), id);
    const isBuilt =
      path.startsWith(`${packages}lab/src/`) || path === `${packages}store/src/index.js`;
    return isBuilt ? path.replace('/src/', '/dist/') : undefined;
  },
};

/** Tests that start clusters, servers or commands, and mostly wait for them. Other tests use the cores meanwhile. */
const CLUSTERS = [
  'packages/lab/test/bench/{durable/durable,load/run,machines/machines,peers/peers,store/store}.test.ts',
  'packages/lab/test/bench/systems/**/*.test.ts',
  'packages/lab/test/chaos/{client-crash,machines-cluster,machines-round,namespaces,power,round}.test.ts',
  'packages/lab/test/contract/machines.test.ts',
  'packages/tram/test/{attached-cluster,backup,cluster,deferred-replies,documents,package,services}.test.ts',
  'packages/{lab,tram}/test/cli/**/*.test.ts',
  'packages/page/test/**/*.test.ts',
  'packages/store/test/{cluster,gateway}/**/*.test.ts',
  'packages/tram/test/page/server.test.ts',
  'packages/tram/test/hosting/{awake,leaders,local-recovery,orderly-stop,own-journal}.test.ts',
  'packages/tram/test/hosting/{rejoin,rolling-restart}.test.ts',
  'packages/tram/test/hosting/{stall,stray-errors,supervisor}.test.ts',
  'packages/tram/test/hosting/machines/{durable,end-machine,machine,operator,outdated,replaced,threads}.test.ts',
];

/** Tests that keep several threads or processes busy. They need the cores for themselves, so they run one at a time. */
const ALONE = [
  'packages/tram/test/memory/fabric/**/*.test.ts',
  'packages/tram/test/memory/machines/network.test.ts',
  'packages/lab/test/bench/paper/run-real.test.ts',
  'packages/lab/test/bench/raw/**/*.test.ts',
  'packages/lab/test/bench/{order/order,strict/strict}.test.ts',
  'packages/lab/test/chaos/unauthenticated-round.test.ts',
  'packages/lab/test/contract/{arena-file,contract}.test.ts',
  'packages/lab/test/litmus/**/*.test.ts',
];

/** Tests of one thread that run many seeds, or measure their heap. Each has a process of its own. */
const SEEDS = [
  'packages/lab/test/baselines/{passing/protocols,ramcast/replica}.test.ts',
  'packages/lab/test/contract/simulated.test.ts',
  'packages/lab/test/protocol/suspicion.test.ts',
  'packages/lab/test/sim/{seeds,mutations,judged,errata}.test.ts',
  'packages/store/test/{engine/memory,serializability/simulation}.test.ts',
];

const TESTS = 'packages/*/test/**/*.test.ts';

/** They begin first: with one of them the last worker would go on alone. A fresh clone has no record of earlier runs. */
const LONGEST = [
  'sim/mutations',
  'cli/remote-host',
  'hosting/machines/machine',
  'hosting/machines/durable',
  'attached-cluster',
  'contract/machines',
  'chaos/machines-round',
  'cli/up',
  'peers/peers',
  'cli/local-host',
  'hosting/orderly-stop',
  'hosting/rolling-restart',
];

/** How many files run at a time, except for those that run alone. On two cores, at least one of them waits most of the time. */
const WORKERS = 3;

/** After the longest ones, mixes files that wait and files that compute, so that both kinds run side by side. */
class Mixed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const longest = LONGEST.flatMap((name) =>
      sorted.filter(({ moduleId }) => moduleId.endsWith(`/${name}.test.ts`)),
    );
    const others = sorted.filter((file) => !longest.includes(file));
    const of = (name: string) => others.filter(({ project }) => project.name === name);
    const waiting = of('clusters');
    const computing = [...of('seeds'), ...of('quick')];
    const mixed = waiting.flatMap((file, i) => [
      file,
      ...(i % 2 === 1 ? computing.splice(0, 1) : []),
    ]);
    return [...longest, ...mixed, ...computing, ...of('alone')];
  }
}

export default defineConfig({
  plugins: [asBuilt],
  test: {
    testTimeout: 60_000,
    env: {
      // Hosts of tests end before it pays (docs/operating.md).
      TRAM_WARM_UP: 'off',
      // If it is set, Node reads certificates at every start, which takes as long as the rest of its start. No test needs them.
      NODE_EXTRA_CA_CERTS: '',
    },
    sequence: { sequencer: Mixed },
    // Node loads the build, and resolves its imports.
    server: { deps: { external: [/\/packages\/\w+\/dist\//] } },
    projects: [
      {
        extends: true,
        test: {
          name: 'quick',
          include: [TESTS],
          exclude: [...CLUSTERS, ...ALONE, ...SEEDS],
          // They leave nothing behind, so many of them run in one process.
          isolate: false,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: 'seeds', include: SEEDS, maxWorkers: WORKERS, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: {
          name: 'clusters',
          include: CLUSTERS,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: ALONE, maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
