/**
 * The commands that make, list and remove network namespaces: `ip`, `bridge` and `tc`. Called by `namespaces.mjs`.
 *
 * The name of a namespace contains the pid of the process that made it. A namespace whose process no longer exists is a
 * left-over, and the next run removes it.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { isAlive, signal } from './processes.mjs';

const SYSTEM_FOLDERS = '/usr/sbin:/sbin';
const PROGRAMS = [
  { program: 'ip', option: '-Version', package: 'iproute2' },
  { program: 'bridge', option: '-Version', package: 'iproute2' },
  { program: 'tc', option: '-Version', package: 'iproute2' },
  { program: 'nsenter', option: '--version', package: 'util-linux' },
];

/**
 * Why namespaces cannot be made here and how to change that, in one sentence.
 * @returns {string | undefined} nothing if they can be made
 */
export function missingForNamespaces() {
  if (process.platform !== 'linux') return 'network namespaces exist on Linux only: use Linux';
  if (process.getuid?.() !== 0) return 'only root may make network namespaces: run as root';
  const absent = PROGRAMS.find(({ program, option }) => attempt(program, [option]).error);
  if (absent) return `${absent.program} is missing: apt-get install -y ${absent.package}`;
  const refusal = tryNamespace();
  return refusal && `network namespaces can't be made (${refusal}): allow it, as --privileged does`;
}

/** A name for the namespaces of one run. @param {string} prefix */
export function newRun(prefix) {
  return `${prefix}-${process.pid}-${randomBytes(3).toString('hex')}`;
}

/** @returns {string | undefined} the error, if making a namespace fails */
function tryNamespace() {
  const name = `${newRun('tram')}-probe`;
  try {
    batch([], [`netns add ${name}`]);
    batch(['-n', name], ['link add bridge type bridge', 'link add port type veth']);
    return undefined;
  } catch (error) {
    return /** @type {Error} */ (error).message.split('\n')[0];
  } finally {
    removeNamespaces([name]);
  }
}

/** Removes the namespaces of runs whose process was killed. @param {string} prefix */
export function removeLeftovers(prefix) {
  const leftovers = namespaceNames().filter((name) => {
    const owner = /^-(\d+)-[0-9a-f]{6}-\w+$/.exec(name.slice(prefix.length))?.[1];
    return name.startsWith(prefix) && owner !== undefined && !isAlive(Number(owner));
  });
  for (const name of leftovers) killAllIn(name);
  removeNamespaces(leftovers);
}

/** Names that do not exist are ignored: another run may remove the same left-overs. @param {string[]} names */
export function removeNamespaces(names) {
  const present = new Set(namespaceNames());
  const removals = names.filter((name) => present.has(name)).map((name) => `netns delete ${name}`);
  const { stderr } = attempt('ip', ['-force', '-batch', '-'], removals.join('\n'));
  const left = namespaceNames().filter((name) => names.includes(name));
  if (left.length > 0) throw new Error(`can't remove ${left}: ${stderr.trim()}`);
}

/** @returns {string[]} */
function namespaceNames() {
  return run('ip', ['netns', 'list'])
    .split('\n')
    .map((line) => line.split(' ')[0])
    .filter(Boolean);
}

/** @param {string} namespace */
export function pidsIn(namespace) {
  return attempt('ip', ['netns', 'pids', namespace]).stdout.split('\n').filter(Boolean).map(Number);
}

/** @param {string} namespace */
export function killAllIn(namespace) {
  for (const pid of pidsIn(namespace)) signal(pid, 'SIGKILL');
}

/** Runs several commands of `ip` in one process. @param {string[]} options @param {string[]} lines */
export function batch(options, lines) {
  run('ip', [...options, '-batch', '-'], lines.join('\n'));
}

/** @param {string} program @param {string[]} args @param {string} [input] @returns what it prints */
export function run(program, args, input) {
  const { error, status, stdout, stderr } = attempt(program, args, input);
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr.trim()}`);
  return stdout;
}

/** As `run`, but a failure is returned and not thrown. @param {string} program @param {string[]} args @param {string} [input] */
export function attempt(program, args, input = '') {
  const env = { ...process.env, PATH: `${process.env.PATH}:${SYSTEM_FOLDERS}`, LC_ALL: 'C' };
  return spawnSync(program, args, { encoding: 'utf8', input, env });
}
