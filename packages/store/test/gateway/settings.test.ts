import { describe, expect, it } from 'vitest';
import { parseMemory, Settings } from '../../src/gateway/settings.js';

describe('settings', () => {
  it('begin with what the store was started with', () => {
    const settings = new Settings({ maxclients: '5', requirepass: 'x' });
    expect(settings.maxClients).toBe(5);
    expect(settings.needsPassword).toBe(true);
    expect(settings.bulkBytesMax).toBe(512 * 1024 ** 2);
    expect(settings.outputLimit('pubsub')).toEqual({
      hardBytes: 32 * 1024 ** 2,
      softBytes: 8 * 1024 ** 2,
      softSeconds: 60,
    });
  });

  it('take effect', () => {
    const settings = new Settings();
    const { own } = settings.check([
      ['timeout', '3'],
      ['Proto-Max-Bulk-Len', '2mb'],
      ['client-output-buffer-limit', 'pubsub 1mb 0 0'],
    ]);
    settings.set(own);
    expect(settings.timeoutMs).toBe(3000);
    expect(settings.bulkBytesMax).toBe(2 * 1024 ** 2);
    expect(settings.outputLimit('pubsub').hardBytes).toBe(1024 ** 2);
    expect(settings.outputLimit('normal').hardBytes).toBe(0);
    expect(settings.matching(['proto*', 'TIMEOUT'])).toEqual([
      ['proto-max-bulk-len', '2097152'],
      ['timeout', '3'],
    ]);
  });

  it.each([
    ['nothing', '1', "Unknown option or number of arguments for CONFIG SET - 'nothing'"],
    ['constructor', '1', "Unknown option or number of arguments for CONFIG SET - 'constructor'"],
    ['maxmemory', '1constructor', "'maxmemory') - argument must be a memory value"],
    ['port', '1', "'port') - can't set immutable config"],
    ['maxmemory', '1.5gb', "'maxmemory') - argument must be a memory value"],
    ['maxmemory-policy', 'all', 'argument(s) must be one of the following: volatile-lru, '],
    ['maxmemory-samples', '0', 'argument must be between 1 and 64 inclusive'],
    ['timeout', 'x', "'timeout') - argument couldn't be parsed into an integer"],
    ['maxclients', '0', "'maxclients') - argument must be between 1 and 4294967295 inclusive"],
    ['proto-max-bulk-len', 'x', 'argument must be a memory value'],
    ['activedefrag', 'x', "argument must be 'yes' or 'no'"],
    ['client-output-buffer-limit', 'pubsub 1', 'Wrong number of arguments'],
    ['client-output-buffer-limit', 'x 1 1 1', 'Invalid client class'],
  ])('refuse %s %s', (name, value, message) => {
    const settings = new Settings();
    const pairs = [
      ['hz', '20'],
      [name, value],
    ] as const;
    expect(() => settings.check(pairs)).toThrow(message);
  });

  it('are those of this gateway, or those of the shards', () => {
    const checked = new Settings().check([
      ['HZ', '20'],
      ['MaxMemory', '2mb'],
      ['maxmemory-policy', 'AllKeys-LRU'],
    ]);
    expect(checked.own).toEqual([['hz', '20']]);
    expect(checked.ofShards).toEqual({
      maxmemory: '2097152',
      'maxmemory-policy': 'allkeys-lru',
    });
  });

  it('can not be set twice at once', () => {
    const pairs = [
      ['hz', '20'],
      ['HZ', '30'],
    ] as const;
    expect(() => new Settings().check(pairs)).toThrow('duplicate parameter');
  });
});

it.each([
  ['0', 0],
  ['1k', 1000],
  ['1KB', 1024],
  ['2gb', 2 * 1024 ** 3],
  ['1.5gb', undefined],
  ['1x', undefined],
  ['', undefined],
])('parseMemory %s', (text, bytes) => {
  expect(parseMemory(text)).toBe(bytes);
});
