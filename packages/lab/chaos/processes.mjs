/** What the kernel says about processes of this machine: whether they run, how much memory they use, the time they share. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const KIBIBYTES_PER_MEBIBYTE = 1024;

/** @param {number} pid */
export function isAlive(pid) {
  return signal(pid, 0);
}

/** @param {number} pid @param {NodeJS.Signals | 0} name @returns {boolean} whether the process exists */
export function signal(pid, name) {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH';
  }
}

/**
 * Have all its threads ended? A process that is killed may be a zombie while one of its threads still waits for a disk.
 * @param {number} pid
 */
export function hasEnded(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`).every((task) => {
      const status = readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8');
      // The state follows the name, which is in parentheses and may contain anything.
      return 'ZX'.includes(status[status.lastIndexOf(')') + 2]);
    });
  } catch {
    // It is gone, or went while we looked.
    return !existsSync(`/proc/${pid}`);
  }
}

/** The processes of a process group, also those that have ended and are still listed. @param {number} group  its leader @returns {number[]} */
export function membersOf(group) {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const status = readFileSync(`/proc/${name}/stat`, 'utf8');
      // After the name: the state, the parent, the group.
      const [, , found] = status.slice(status.lastIndexOf(')') + 2).split(' ');
      return Number(found) === group ? [Number(name)] : [];
    } catch {
      // It went while we looked.
      return [];
    }
  });
}

/** Memory that no other process uses. The cluster's shared memory has a fixed size and is not counted. @param {number} pid */
export function privateMebibytes(pid) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kibibytes = Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
  return kibibytes / KIBIBYTES_PER_MEBIBYTE;
}

/** The monotonic clock, which all processes of a machine share. */
export function nowUs() {
  return Number(process.hrtime.bigint() / 1000n);
}
