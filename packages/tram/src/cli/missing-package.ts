/** An optional dependency that a command needs and that is not installed. */
import { readFileSync } from 'node:fs';

/** As Node words it for an `import` of a package: there is no field with the name. */
const NOT_FOUND = /^Cannot find package '([^']+)'/;

/** What to tell the user if `error` is due to an optional dependency that is missing, else `undefined`. */
export function messageFor(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') return undefined;
  const name = NOT_FOUND.exec(error.message)?.[1] ?? '';
  const range = optionalDependencies()[name];
  if (range === undefined) return undefined;
  return `this command needs the package ${name}, which is not installed: npm install "${name}@${range}"`;
}

function optionalDependencies(): Readonly<Record<string, string>> {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { optionalDependencies: Record<string, string> })
    .optionalDependencies;
}
