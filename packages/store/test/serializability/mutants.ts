/** Builds of the store with one planted error each: a line of a compiled module is replaced. */

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

interface Edit {
  readonly module: string;
  readonly replace: string;
  readonly by: string;
}

export interface Mutation extends Edit {
  readonly name: string;
}

/** So that a few bytes do not fit into a message or a reply, and that a gateway listens again before the simulation is over. */
export const TIGHT: readonly Edit[] = [
  {
    module: 'messages/message.js',
    replace: 'PAYLOAD_BYTES_MAX = 64 * 1024',
    by: 'PAYLOAD_BYTES_MAX = 256',
  },
  {
    module: 'messages/message.js',
    replace: 'REPLY_BYTES_MAX = 16 * 1024',
    by: 'REPLY_BYTES_MAX = 64',
  },
  { module: 'backend/mail.js', replace: 'RETRY_MS = 100', by: 'RETRY_MS = 0' },
];

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'commands do not wait for transactions that are in line before them',
    module: 'shard/shard.js',
    replace: 'if (!this.#mayPass(claim)) {\n                batch',
    by: 'if (false) {\n                batch',
  },
  {
    name: 'a transaction learns what keys hold before it is first on them',
    module: 'shard/shard.js',
    replace: 'return isFirst ? this.#prepared(transaction) : undefined;',
    by: 'return this.#prepared(transaction);',
  },
  {
    name: 'a shard aborts an overdue transaction by itself',
    module: 'shard/shard.js',
    replace: 'this.#transactions.tellOverdue(this.#nowMs);',
    by: `for (const { id, tellMs } of this.#transactions.state)
            if (tellMs <= this.#nowMs)
                this.#abort(id);`,
  },
  {
    name: 'a decision takes effect although the transaction was aborted',
    module: 'backend/transactions.js',
    replace: 'if (replies === undefined)\n                return undefined;',
    by: 'if (replies === undefined)\n                continue;',
  },
  {
    name: 'watched keys are not compared once they are held',
    module: 'backend/transactions.js',
    replace: 'return watched.some(([key, version]) => keys.get(key).version !== version);',
    by: 'return false;',
  },
  {
    name: 'what waits does so on its first key only, so others pass it on the rest',
    module: 'shard/line.js',
    replace: 'const claim = [...new Set(keys)];',
    by: 'const claim = keys.slice(0, 1);',
  },
  {
    name: 'a snapshot forgets the line',
    module: 'shard/shard.js',
    replace: 'for (const item of state.line)',
    by: 'for (const item of [])',
  },
  {
    name: 'gateways do not abort transactions of others',
    module: 'backend/mail.js',
    replace: 'this.postman.send(kind, transaction',
    by: 'if (kind === KIND.keep) this.postman.send(kind, transaction',
  },
  {
    name: 'a shard drops what a transaction has uploaded before the transaction ends',
    module: 'shard/shard.js',
    replace: 'isOwned ? Infinity : this.#nowMs + KEPT_MS',
    by: 'this.#nowMs + KEPT_MS',
  },
  {
    name: 'what a batch uploads to several shards belongs to no transaction',
    module: 'backend/postman.js',
    replace: 'kind === KIND.batch && letters.length > 1',
    by: 'false',
  },
  {
    name: 'a transaction does not claim what its scripts have turned out to use',
    module: 'backend/transactions.js',
    replace: 'if (scratch.missing.size > 0)',
    by: 'if (false)',
  },
  {
    name: 'a script at a shard claims only the keys that it declares',
    module: 'commands/claims.js',
    replace: 'if (command.reaches)',
    by: 'if (false)',
  },
];

const DIST = fileURLToPath(new URL('../../dist/', import.meta.url));

/** @returns the folder of a build with these edits, and a function that removes it */
export function plant(edits: readonly Edit[]): { folder: URL; remove(): void } {
  // Beside the build, so that Node finds the same packages.
  const folder = mkdtempSync(join(DIST, '..', '.mutant-'));
  cpSync(DIST, folder, { recursive: true });
  for (const { module, replace, by } of edits) {
    const path = join(folder, module);
    const text = readFileSync(path, 'utf8');
    if (text.split(replace).length !== 2) throw new Error(`${module} has no line "${replace}"`);
    writeFileSync(
      path,
      text.replace(replace, () => by),
    );
  }
  return {
    folder: pathToFileURL(`${folder}/`),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
