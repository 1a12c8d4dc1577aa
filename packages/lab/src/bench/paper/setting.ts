/** Under which circumstances something was measured: results of different ones are not mixed. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BenchMemory } from '../load/run.js';

export interface Setting {
  readonly profile: string;
  /** What was asked for; experiments that need a certain memory use that. */
  readonly memory: BenchMemory;
  readonly version: string;
  /** Of the sources, where they are a checkout. Not part of what makes settings equal. */
  readonly commit?: string;
  /** A fingerprint of the code that is measured: it changes with every change of it. */
  readonly code: string;
  readonly processor: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
}

const PROJECT = fileURLToPath(new URL('../../../../../', import.meta.url));
/** Of these, nothing runs while something is measured. */
const NOT_MEASURED = ['bench/figures/', 'bench/paper/', 'bench/text/', 'check/', 'cli/'];

export function currentSetting(profile: string, memory: BenchMemory): Setting {
  const { version } = JSON.parse(readFileSync(join(PROJECT, 'packages/tram/package.json'), 'utf8'));
  const commit = currentCommit();
  return {
    profile,
    memory,
    version,
    ...(commit !== undefined && { commit }),
    code: fingerprint(),
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release().split('-')[0]} ${process.arch}`,
    node: process.version.slice(1),
  };
}

function currentCommit(): string | undefined {
  if (!existsSync(join(PROJECT, '.git'))) return undefined;
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      cwd: PROJECT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    // No git here: the fingerprint tells versions apart.
    return undefined;
  }
}

function fingerprint(): string {
  const hash = createHash('sha256');
  for (const name of ['tram', 'lab']) {
    const root = join(PROJECT, 'packages', name, 'dist');
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
      .map((path) => path.split(sep).join('/'))
      .filter((path) => path.endsWith('.js'))
      .filter((path) => !NOT_MEASURED.some((folder) => path.startsWith(folder)));
    for (const path of files.sort()) hash.update(path).update(readFileSync(join(root, path)));
  }
  return hash.digest('hex').slice(0, 12);
}
