/** The history of a cluster with a journal: a later era continues the directory of the era from which it was recovered. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolveConfig } from '../../src/config/config.js';
import { beginEraTrace } from '../../src/hosting/oversight.js';
import { eraName, writeOnce } from '../../src/hosting/trace.js';
import { NO_ERA } from '../../src/journal/recovery-asks.js';
import { NO_SALT } from '../../src/protocol/layout.js';

const config = resolveConfig(
  { groups: 1, replicas: 1, durability: 'always', journal: '/nowhere' },
  NO_SALT,
);
let parent = '';
let trace = '';

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'tram-eras-'));
  trace = join(parent, 'trace');
});

afterEach(() => rmSync(parent, { recursive: true }));

/** As each host does. */
function beginEra(era: number): void {
  writeOnce(trace, eraName(era), { event: 'era', era, durability: 'always' });
}

test('the first era begins a history, and a later one continues it', () => {
  beginEraTrace(config, trace, NO_ERA);
  beginEra(1);
  writeFileSync(join(trace, 'client-1.jsonl'), '');
  writeFileSync(join(trace, 'end.jsonl'), '{"event":"end","quiescent":true}\n');
  beginEraTrace(config, trace, 1);
  expect(readdirSync(trace)).toEqual(['client-1.jsonl', 'era-1.jsonl', 'groups.jsonl']);
});

test('an era has one line, whichever hosts write it', () => {
  beginEra(2);
  beginEra(2);
  expect(readdirSync(trace)).toEqual(['era-2.jsonl']);
  expect(readFileSync(join(trace, 'era-2.jsonl'), 'utf8')).toBe(
    '{"event":"era","era":2,"durability":"always"}\n',
  );
});

test('the first era does not touch a history that clients were part of', () => {
  beginEraTrace(config, trace, NO_ERA);
  beginEra(1);
  writeFileSync(join(trace, 'client-1.jsonl'), '');
  expect(() => beginEraTrace(config, trace, NO_ERA)).toThrow('holds a history already');
});

test('the first era does not touch a history without eras', () => {
  beginEraTrace(config, trace, NO_ERA);
  expect(() => beginEraTrace(config, trace, NO_ERA)).toThrow('holds a history already');
});

test('the first era begins anew after a start that failed', () => {
  beginEraTrace(config, trace, NO_ERA);
  beginEra(1);
  writeFileSync(join(trace, 'replica-0-0.jsonl'), '');
  beginEraTrace(config, trace, NO_ERA);
  expect(readdirSync(trace)).toEqual(['groups.jsonl']);
});

test('a directory without the era from which the cluster is recovered is refused', () => {
  beginEraTrace(config, trace, NO_ERA);
  beginEra(1);
  expect(() => beginEraTrace(config, trace, 3)).toThrow(
    `${trace} does not have the history of era 3, from which the cluster is recovered`,
  );
});
