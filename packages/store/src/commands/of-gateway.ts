/** The rows of commands that the gateway carries out. */

import type { Category, CommandSpec, Flag } from './spec.js';

type Row = (
  name: string,
  arity: number,
  flags: readonly Flag[],
  since: string,
  summary: string,
  differs?: string,
) => CommandSpec;

export function ofGateway(category: Category): Row {
  return (name, arity, flags, since, summary, differs) => ({
    name,
    arity,
    flags,
    category,
    since,
    summary,
    ...(differs && { differs }),
  });
}
