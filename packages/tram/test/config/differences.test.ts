/** Which options of a user differ from those of a cluster that exists. */
import { expect, test } from 'vitest';
import { type ClusterConfig, resolveConfig } from '../../src/config/config.js';
import { differingOptions } from '../../src/config/differences.js';
import type { ClusterOptions } from '../../src/config/options.js';
import { NO_SALT } from '../../src/protocol/layout.js';

const OPTIONS = {
  groups: 3,
  replicas: 3,
  tree: 'depth',
  hosts: 3,
  leaders: 'spread',
  service: './service.mjs',
  clients: 4,
  payloadBytesMax: 100,
  replyBytesMax: 200,
  callsMax: 10,
  logBytes: 5000,
  inboxBytes: 4000,
  feedBytes: 3000,
  heartbeatMs: 2.5,
  suspectAfterMs: 300,
  resendAfterMs: 40,
  trace: 'history',
  durability: 'everySecond',
  journal: 'journals',
  snapshotBytes: 8192,
} as const satisfies ClusterOptions;

/** As an arena stores it. */
function configOf(options: ClusterOptions): ClusterConfig {
  const config = resolveConfig({ memory: 'processes', ...options }, NO_SALT, '/srv');
  return JSON.parse(JSON.stringify(config)) as ClusterConfig;
}

test('none, if all are the same or left out', () => {
  const config = configOf(OPTIONS);
  expect(differingOptions(OPTIONS, config, '/srv')).toEqual([]);
  expect(differingOptions({}, config, '/srv')).toEqual([]);
  const sameInOtherWords = { tree: [-1, 0, 1], service: '/srv/service.mjs', trace: '/srv/history' };
  expect(differingOptions(sameInOtherWords, config, '/')).toEqual([]);
});

test('each one that differs is named', () => {
  const others = {
    groups: 4,
    replicas: 5,
    tree: 'simple',
    hosts: 6,
    leaders: 'together',
    service: './other.mjs',
    clients: 5,
    payloadBytesMax: 101,
    replyBytesMax: 201,
    callsMax: 11,
    logBytes: 5001,
    inboxBytes: 4001,
    feedBytes: 3001,
    heartbeatMs: 3,
    suspectAfterMs: 301,
    resendAfterMs: 41,
    trace: 'elsewhere',
    durability: 'always',
    journal: 'otherJournals',
    snapshotBytes: 4096,
  } as const satisfies Record<keyof typeof OPTIONS, unknown>;
  const config = configOf(OPTIONS);
  for (const [option, value] of Object.entries(others)) {
    expect(differingOptions({ [option]: value }, config, '/srv')).toEqual([option]);
  }
});

test('a service is another one if the cluster has none', () => {
  expect(differingOptions({ service: 'x.mjs' }, configOf({ groups: 1 }))).toEqual(['service']);
});
