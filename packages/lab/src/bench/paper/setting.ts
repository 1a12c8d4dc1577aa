/** The setting of a measurement: code, machine and profile. Results of different settings are not mixed. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BenchMemory } from '../load/run.js';

export interface Setting {
  readonly profile: string;
  /** As requested; some experiments need a certain kind of memory and use that. */
  readonly memory: BenchMemory;
  readonly version: string;
  /** Of the sources, if they are a git checkout. Not compared. */
  readonly commit?: string;
  /** A fingerprint of the measured code. */
  readonly code: string;
  readonly processor: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
}

const PROJECT = fileURLToPath(new URL('../../../../../', import.meta.url));
/** Code in these folders does not run during measurements. */
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
    // Without git the fingerprint distinguishes versions.
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
