import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = fileURLToPath(new URL('./packages/tram/src', import.meta.url));

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
    include: ['packages/*/test/**/*.test.ts'],
    testTimeout: 60_000,
    // Built files import the built library: Node resolves their imports, not the aliases above.
    server: { deps: { external: [/\/packages\/\w+\/dist\//] } },
  },
});
