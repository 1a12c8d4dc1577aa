/** The version of the package. Gateways and shards have to be of the same one. */

import { readFileSync } from 'node:fs';

const file = new URL('../package.json', import.meta.url);

export const VERSION = (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
