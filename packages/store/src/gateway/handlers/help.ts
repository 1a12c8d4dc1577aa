/** The HELP of commands that consist of subcommands, from the table. */

import { CONTAINERS } from '../../commands/lookup.js';
import { Simple } from '../../resp/reply.js';
import type { Immediate } from '../carriers.js';

export const HELP_HANDLERS: Readonly<Record<string, Immediate>> = Object.fromEntries(
  [...CONTAINERS].map(([name, subcommands]) => [
    `${name}|help`,
    () => [
      new Simple(`${name.toUpperCase()} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:`),
      ...subcommands.flatMap((subcommand) => [
        new Simple(subcommand.name.slice(name.length + 1).toUpperCase()),
        new Simple(`    ${subcommand.summary}`),
      ]),
    ],
  ]),
);
