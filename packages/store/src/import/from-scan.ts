/**
 * Copies the keys of a running server, one by one: SCAN, and PTTL and DUMP for each key. Every server allows that. Keys that are written
 * meanwhile are copied as they were at some moment, or not at all if they are new.
 */

import { readableDump } from '../engine/rdb/dump.js';
import { StoreError } from '../options.js';
import { type Bytes, ErrorReply, type Reply } from '../resp/reply.js';
import type { Connection } from './connection.js';
import type { Importer, ImportOptions } from './importer.js';
import { Progress, progressLine, type Screen, Stopwatch } from './progress.js';

/** How many keys are asked for at a time. */
const KEYS_AT_ONCE = '500';

/** @throws StoreError */
export async function importByScan(
  source: Connection,
  importer: Importer,
  { database }: ImportOptions,
  screen: Screen,
): Promise<void> {
  await importer.requireEmptyStore();
  okay(await source.ask(['SELECT', String(database)]));
  const keysMax = await countKeys(source, importer, database);
  for (const code of await librariesOf(source, importer)) await importer.library(code);
  const watch = new Stopwatch();
  const progress = new Progress(screen, () =>
    progressLine('copying', watch.seconds, { keys: importer.tally.keys, keysMax }),
  );
  try {
    for (let cursor = ''; cursor !== '0'; ) {
      const from = cursor === '' ? '0' : cursor;
      const page = okay(await source.ask(['SCAN', from, 'COUNT', KEYS_AT_ONCE])) as [
        Bytes,
        Bytes[],
      ];
      cursor = page[0];
      for (const name of page[1]) copy(source, importer, name);
      await source.settled();
    }
    await importer.settled();
  } finally {
    progress.end();
  }
}

function copy(source: Connection, importer: Importer, name: Bytes): void {
  let ttl = 0;
  source.send(['PTTL', name], (reply) => {
    ttl = okay(reply) as number;
  });
  source.send(['DUMP', name], async (reply) => {
    const dump = okay(reply) as Bytes | null;
    // It has expired, or was deleted.
    if (dump === null || ttl === -2) return;
    if (dump.length > importer.valueBytesMax) return importer.tooLong({ name });
    // RESTORE takes 0 as: never expires.
    const time = ttl === -1 ? 0 : Math.max(1, ttl);
    await importer.restore(name, String(time), readableDump(dump), []);
  });
}

/** Tells the importer which other databases have keys. @returns how many this one has */
async function countKeys(
  source: Connection,
  { tally }: Importer,
  database: number,
): Promise<number> {
  let own = 0;
  const info = okay(await source.ask(['INFO', 'keyspace'])) as Bytes;
  for (const [, index, keys] of info.matchAll(/^db(\d+):keys=(\d+)/gm)) {
    if (Number(index) === database) own = Number(keys);
    else tally.addOther(Number(index), Number(keys));
  }
  return own;
}

async function librariesOf(source: Connection, { tally }: Importer): Promise<Bytes[]> {
  const reply = await source.ask(['FUNCTION', 'LIST', 'WITHCODE']);
  if (!(reply instanceof ErrorReply)) {
    return (reply as Bytes[][]).map((fields) => fields[fields.indexOf('library_code') + 1]);
  }
  // Versions before 7 have none.
  if (!reply.message.startsWith('ERR unknown command')) tally.refusedLibraries.push(reply.message);
  return [];
}

function okay(reply: Reply): Reply {
  if (!(reply instanceof ErrorReply)) return reply;
  const hint = 'Give the import a user that may run SELECT, INFO, SCAN, PTTL and DUMP.';
  throw new StoreError(`Redis refuses: ${reply.message}`, hint);
}
